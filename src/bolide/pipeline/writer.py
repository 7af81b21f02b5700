"""A batch write as Spark wants it: checked on the driver, done by tasks.

Spark sends the writer to the tasks.  It is therefore plain data: options, never a connection.  Streams have a writer of
their own (`stream_writer.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from bolide.model.errors import ConfigError
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.option_table import Use
from bolide.pipeline.write_options import parse_write
from bolide.pipeline.write_task import Written, write_batches


@dataclass
class TaskDone(WriterCommitMessage):
    written: Written


class RocketMQWriter(DataSourceArrowWriter):
    """A batch: stored at least once, because Spark may run a task twice."""

    def __init__(self, options: dict[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise ConfigError("a topic cannot be overwritten, only appended to: .mode('append')")
        self._options = parse_write(options, schema, Use.WRITE)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with in_plain_words():
            return TaskDone(write_batches(self._options, None, iterator))
