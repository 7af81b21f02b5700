"""Spark as the data pipeline: topics as tables.

`source.py` is the format `rocketmq` that Spark finds through `pyspark_bolide`; start there.  A read (`reader.py`) is
planned on the driver (`options.py`, `plan.py`), pulled by tasks (`task.py`, `pulls.py`), and turned into Arrow columns
by compiled code (`columns.py`, `schema.py`).  `session.py` starts a local Spark for those who have none.
"""
