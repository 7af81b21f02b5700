"""Spark as the data pipeline: topics as tables and streams.

`source.py` is the format `rocketmq` that Spark finds through `pyspark_bolide`; start there.  What a user may say is in
`option_table.py`, what it means for a read in `options.py` (`topics.py`, `bounds.py`).  A batch (`reader.py`) is
planned on the driver (`plan.py`), a stream (`stream.py`) is followed there (`follow.py`); both ask a `cluster.py` and
decide with what asks nobody: `ranges.py`, `places.py`, `admission.py`, `filters.py`.  Tasks pull (`task.py`,
`pulls.py`), and compiled code makes Arrow columns of what comes (`arrow/columns.py`); `schema.py` has their types.

A write (`writer.py`, of streams `stream_writer.py`) is done by its tasks alone (`write_task.py`): rows are cut by topic
(`arrow/row_columns.py`), compiled code makes requests of them (`arrow/rows.py`), `sender.py` sends these, with a rate
at its `pace.py`, and `account.py` knows what is stored already.  `session.py` starts a local Spark for those who have
none.

Pipelines that are written down in one file are in `declared`.  Ready-made ones, each a command: `archive` keeps topics
as files, and proves it; `replay` sends messages once more, and `dead_letters` those that a group has given up; `stats`
tells what went through topics.
"""

from bolide.pipeline.declared.python_form import Pipeline

__all__ = ["Pipeline"]
