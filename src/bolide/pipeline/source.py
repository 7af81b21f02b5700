"""The format `rocketmq`: `spark.read.format("rocketmq").option("nameserver", …).option("subscribe", …).load()`.

Spark makes a `RocketMQSource` on the driver.  `load()` asks it for the schema, the first action for a reader
(`reader.py`), a started query for a stream (`stream.py`), a write for a writer
(`writer.py`, `stream_writer.py`).

This module is imported with all other sources, before anybody has asked for this one, so it must always be importable:
the rest of the room is imported when it is needed (`requirements.py` says why).
"""

from collections.abc import Iterator, MutableMapping
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from bolide.model.errors import RequirementMissing
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.requirements import check_requirements, check_stream_read, check_stream_write


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
        from bolide.pipeline.options import check_options
        from bolide.pipeline.schema import whole_schema

        return whole_schema(check_options(self.options))

    @in_plain_words()
    def reader(self, schema: StructType) -> DataSourceReader:
        from bolide.pipeline.reader import batch_reader

        return batch_reader(dict(self.options), schema)

    @in_plain_words()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from bolide.pipeline.writer import RocketMQWriter

        return RocketMQWriter(dict(self.options), schema, overwrite=overwrite)

    @in_plain_words()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        check_stream_write()
        from bolide.pipeline.stream_writer import RocketMQStreamWriter

        return RocketMQStreamWriter(dict(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        try:
            check_stream_read()
        except RequirementMissing as error:
            return NoStream(error)
        from bolide.pipeline.stream import RocketMQStreamReader

        return RocketMQStreamReader(dict(self.options), schema)


class NoStream(DataSourceStreamReader):
    """Says why there is no stream, when it is first asked: an error before that is lost on the way to the user."""

    def __init__(self, error: RequirementMissing) -> None:
        self._error = error

    @in_plain_words()
    def initialOffset(self) -> dict[str, Any]:
        raise self._error

    @in_plain_words()
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # as it was before 4.2
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        raise self._error
