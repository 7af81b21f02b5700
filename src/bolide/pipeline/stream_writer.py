"""Writes of streams as Spark wants them.  Needs a Spark that gives such a writer Arrow batches: 4.1.

A task of a stream learns from Spark which query and batch it works for; that names what it writes (`account.py`), so
that a batch that is tried again is stored once.
"""

import logging
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from bolide.model.errors import ConfigError
from bolide.pipeline.account import Scope
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.option_table import Use
from bolide.pipeline.write_options import WriteOptions, parse_write
from bolide.pipeline.write_task import write_batches
from bolide.pipeline.writer import TaskDone

log = logging.getLogger(__name__)

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"


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
            "batch %d: %d messages stored, %d were stored before, %d rows left out",
            batchId,
            sum(written.rows for written in done),
            sum(written.stored_before for written in done),
            sum(written.left_out for written in done),
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
