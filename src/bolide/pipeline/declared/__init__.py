"""Pipelines that are declared: sources, steps and sinks in one YAML or Python file.

`definition.py` has the values; a file becomes values in `parse.py` (its nodes with their lines come from `tree.py` for
YAML and from `python_form.py` for Python), `check.py` finds what is wrong with them without Spark, `build.py` makes
frames of them, `run.py` runs these as queries, and `status.py` tells from a checkpoint how far they have come.
"""
