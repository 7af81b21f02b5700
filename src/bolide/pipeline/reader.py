"""One batch read, as Spark wants it: partitions planned on the driver, read by tasks.

Spark sends the reader to the tasks.  It is therefore plain data: it holds options and columns, never a connection.
"""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.filters import EVERYTHING, push
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.schema import arrow_schema, check_schema
from bolide.pipeline.task import read_batches

PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class RocketMQReader(DataSourceReader):
    """`schema` is the whole one or the columns that the user chose."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        self._options = parse_options(options)
        check_schema(schema, self._options)
        self._schema = schema
        self._pushed = EVERYTHING

    @in_plain_words()
    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(one) for one in asyncio.run(plan_read(self._options, self._pushed))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if partition.value is None:
            return  # Spark makes one partition with nothing in it where there was none to read
        with in_plain_words():
            yield from read_batches(self._options, partition.value, arrow_schema(self._schema))


class FilteringReader(RocketMQReader):
    """Takes filters into account.  Spark refuses a reader that can, in sessions that do not push any."""

    @in_plain_words()
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        self._pushed = push(filters, self._options)
        if self._pushed.tags is not None:
            tags = " || ".join(sorted(self._pushed.tags))
            self._options = replace(self._options, wanted=replace(self._options.wanted, tags=tags))
        return filters  # all of them are Spark's to check again: we only look in fewer places


def batch_reader(options: dict[str, str], schema: StructType) -> RocketMQReader:
    """The reader for this session: Spark asks for one that filters in a worker of its own kind."""
    kind = FilteringReader if PUSHING_WORKER in sys.modules else RocketMQReader
    return kind(options, schema)
