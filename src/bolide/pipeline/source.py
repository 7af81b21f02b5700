"""The format `rocketmq`: `spark.read.format("rocketmq").option("nameserver", …).option("subscribe", …).load()`.

Spark makes a `RocketMQSource` on the driver.  `load()` asks it for the schema, the first action for a reader
(`reader.py`), and what it cannot do yet it says when Spark first asks for it.

This module is imported with all other sources, before anybody has asked for this one, so it must always be importable:
the rest of the room is imported when it is needed (`requirements.py` says why).
"""

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from bolide.pipeline.errors import NotOffered, in_plain_words
from bolide.pipeline.requirements import check_requirements

if TYPE_CHECKING:
    import pyarrow as pa

WHAT_THERE_IS = "What there is today is the batch read: spark.read.format('rocketmq')"
NO_STREAMS = f"the source rocketmq does not read streams (spark.readStream) yet. {WHAT_THERE_IS}"


class RocketMQSource(DataSource):
    """Topics of a RocketMQ cluster, bolide's or Apache's."""

    @in_plain_words()
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_requirements()  # here, because a read with a schema of the user's comes by nowhere else in time

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    @in_plain_words()
    def schema(self) -> StructType:
        """Called by `load()`: the moment to say what is wrong with the options."""
        from bolide.pipeline.options import parse_options
        from bolide.pipeline.schema import whole_schema

        parse_options(self.options)
        return whole_schema()

    @in_plain_words()
    def reader(self, schema: StructType) -> DataSourceReader:
        from bolide.pipeline.reader import RocketMQReader

        return RocketMQReader(dict(self.options), schema)

    @in_plain_words()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        raise NotOffered(
            f"the source rocketmq does not write yet. {WHAT_THERE_IS}; to send rows, use bolide.Producer in"
            " DataFrame.foreachPartition"
        )

    @in_plain_words()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        raise NotOffered(
            f"the source rocketmq does not write streams yet. {WHAT_THERE_IS}; to send rows, use bolide.Producer in"
            " DataStreamWriter.foreachBatch"
        )

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _NoStream()


class _NoStream(DataSourceStreamReader):
    """Says that there are no streams when Spark asks it for the first thing.

    Not when it is made: an error there is lost, because Spark's runner then fails in stopping a reader that it has not.
    """

    @in_plain_words()
    def initialOffset(self) -> NoReturn:
        raise NotOffered(NO_STREAMS)

    @in_plain_words()
    def latestOffset(self, *asked: Any) -> NoReturn:
        raise NotOffered(NO_STREAMS)

    @in_plain_words()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:
        raise NotOffered(NO_STREAMS)

    @in_plain_words()
    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        raise NotOffered(NO_STREAMS)
