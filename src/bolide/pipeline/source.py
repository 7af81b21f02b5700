"""The format `rocketmq`: `spark.read.format("rocketmq").option("nameserver", …).option("subscribe", …).load()`.

Spark makes a `RocketMQSource` on the driver, asks it for the schema and a reader, plans partitions there, and sends
the reader to the tasks.  A reader is therefore plain data: it holds options and columns, never a connection.
"""

import asyncio
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.schema import arrow_schema, check_schema, whole_schema
from bolide.pipeline.task import read_batches


class RocketMQSource(DataSource):
    """Topics of a RocketMQ cluster, bolide's or Apache's."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> StructType:
        return whole_schema()

    def reader(self, schema: StructType) -> "RocketMQReader":
        return RocketMQReader(dict(self.options), schema)


class RocketMQReader(DataSourceReader):
    """One batch read.  `schema` is the whole one or the columns that the user chose."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        check_schema(schema)
        self._options = parse_options(options)
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(one) for one in asyncio.run(plan_read(self._options))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_batches(self._options, partition.value, arrow_schema(self._schema))
