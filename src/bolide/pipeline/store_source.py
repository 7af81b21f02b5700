"""The format `rocketmq-store`: `spark.read.format("rocketmq-store").load("/data/store")`, without a broker.

Like `source.py`, this module is imported before anybody has asked for it and must always be importable.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from bolide.model.errors import ConfigError
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.requirements import check_requirements

if TYPE_CHECKING:
    import pyarrow as pa

ONLY_BATCHES = (
    "the format rocketmq-store reads files in batches (spark.read), nothing else:"
    " the format rocketmq reads streams from a broker and writes to it"
)


class RocketMQStoreSource(DataSource):
    """The files of a broker's store, bolide's or Apache's."""

    @in_plain_words()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_requirements()

    @classmethod
    def name(cls) -> str:
        return "rocketmq-store"

    @in_plain_words()
    def schema(self) -> StructType:
        """Called by `load()`: the moment to say what is wrong with the options."""
        from bolide.pipeline.schema import native_schema
        from bolide.pipeline.store_options import parse_store_options

        return native_schema(parse_store_options(self.options).columns)

    @in_plain_words()
    def reader(self, schema: StructType) -> DataSourceReader:
        return RocketMQStoreReader(dict(self.options), schema)

    @in_plain_words()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        raise ConfigError(ONLY_BATCHES)


class RocketMQStoreReader(DataSourceReader):
    """One batch read: plain data, because Spark sends it to the tasks."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        from bolide.pipeline.schema import check_native_schema
        from bolide.pipeline.store_options import parse_store_options

        self._options = parse_store_options(options)
        check_native_schema(schema, self._options.columns)
        self._schema = schema

    @in_plain_words()
    def partitions(self) -> Sequence[InputPartition]:
        from bolide.pipeline.store_plan import plan_parts

        return [InputPartition(part) for part in plan_parts(self._options)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        from bolide.pipeline.schema import arrow_schema
        from bolide.pipeline.store_task import read_part

        if partition.value is None:
            return  # Spark makes one partition with nothing in it where there was none to read
        with in_plain_words():
            yield from read_part(self._options, partition.value, arrow_schema(self._schema))
