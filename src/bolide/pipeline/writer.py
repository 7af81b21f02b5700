"""Writes as Spark wants them: checked on the driver, done by tasks.

Spark sends the writer to the tasks.  It is therefore plain data: options, never a connection.  A task of a stream
learns from Spark which query and batch it works for; that names what it writes (`account.py`), so that a batch that is
tried again is stored once.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from bolide.model.errors import ConfigError
from bolide.pipeline.account import Scope
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.option_table import Use
from bolide.pipeline.write_options import WriteOptions, parse_write
from bolide.pipeline.write_task import Written, write_batches

log = logging.getLogger(__name__)

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


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


class RocketMQStreamWriter(DataSourceStreamArrowWriter):
    """The batches of a stream: each stored once by brokers that keep an account of them."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_write(options, schema, Use.STREAM_WRITE)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with in_plain_words():
            return TaskDone(write_batches(self._options, _scope(self._options), iterator))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        done = [message.written for message in messages if isinstance(message, TaskDone)]
        log.info(
            "batch %d: %d messages stored, %d were stored before",
            batchId,
            sum(written.rows for written in done),
            sum(written.stored_before for written in done),
        )


def _scope(options: WriteOptions) -> Scope | None:
    """Which part of which batch this task writes, if the user wants it to be stored once."""
    task = TaskContext.get()
    if not options.idempotent or task is None:
        return None
    query, batch = task.getLocalProperty(QUERY_ID), task.getLocalProperty(BATCH_ID)
    if query is None or batch is None:
        raise ConfigError(
            "Spark does not tell the task which batch it writes, so that a retry could not be told from it:"
            " set idempotent=false to write at least once"
        )
    return Scope(query, int(batch), task.partitionId())
