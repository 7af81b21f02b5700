"""One batch read, as Spark wants it: partitions planned on the driver, read by tasks.

Spark sends the reader to the tasks.  It is therefore plain data: it holds options and columns, never a connection.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.options import ReadOptions, parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.pushed import EVERYTHING
from bolide.pipeline.schema import arrow_schema, check_schema
from bolide.pipeline.task import read_batches

PUSHING_WORKER = "pyspark.sql.worker.data_source_pushdown_filters"


class RocketMQReader(DataSourceReader):
    """`schema` is the whole one or the columns that the user chose."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        check_schema(schema, options)
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


def batch_reader(given: dict[str, str], schema: StructType) -> RocketMQReader:
    """The reader for this session: Spark asks for one that filters in a worker of its own kind."""
    options = parse_options(given)
    if PUSHING_WORKER not in sys.modules or not options.pushes_filters:
        return RocketMQReader(options, schema)
    from bolide.pipeline.filtering_reader import FilteringReader  # its names are newer than Spark's sources

    return FilteringReader(options, schema)
