"""Pipelines that are declared: sources, steps and sinks in one YAML or Python file.

`definition.py` has the values; a file becomes values in `parse.py` and `parse_steps.py` (its nodes with their lines
come from `tree.py` for YAML and from `python_form.py` for Python, `fields.py` reads them), `check.py` and
`check_state.py` find what is wrong with them without Spark, `build.py` and `state_steps.py` make frames of them,
`run.py` runs these as queries, and `status.py` tells from a checkpoint how far they have come.

`recipes.py` makes definitions without a file, of what a command is told.
"""
