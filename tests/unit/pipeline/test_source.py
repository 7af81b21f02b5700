"""The source as Spark calls it, without a Spark: wrong options at `load()`, writers that can be sent to tasks."""

import pickle
import sys
from types import ModuleType

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from bolide.model.errors import ConfigError
from bolide.pipeline.filtering_reader import FilteringReader
from bolide.pipeline.reader import PUSHING_WORKER, RocketMQReader
from bolide.pipeline.schema import whole_schema
from bolide.pipeline.source import RocketMQSource

NEEDED = {"nameserver": "127.0.0.1:1", "subscribe": "orders"}


def source(**changes: str) -> RocketMQSource:
    return RocketMQSource(options=NEEDED | changes)


def test_load_gives_the_schema_without_asking_anybody() -> None:
    assert source().schema() == whole_schema()


def test_load_refuses_wrong_options() -> None:
    with pytest.raises(ConfigError, match="did you mean startingOffsets"):
        source(startingofsets="earliest").schema()


def test_a_partition_that_spark_made_of_nothing_has_no_rows() -> None:
    assert list(source().reader(whole_schema()).read(InputPartition(None))) == []


def test_a_read_takes_filters_only_if_that_is_wished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would have their result for all queries of the frame."""
    monkeypatch.setitem(sys.modules, PUSHING_WORKER, ModuleType(PUSHING_WORKER))
    assert type(source().reader(whole_schema())) is RocketMQReader
    assert type(source(pushFilters="true").reader(whole_schema())) is FilteringReader


def test_writers_are_plain_data_and_refuse_what_is_no_message() -> None:
    """Spark sends them to the tasks."""
    schema = StructType().add("body", "binary").add("tags", "string")
    target = RocketMQSource(options={"nameserver": "127.0.0.1:1", "topic": "orders"})
    for writer in (target.writer(schema, False), target.streamWriter(schema, False)):
        assert pickle.dumps(writer)
    with pytest.raises(ConfigError, match=r"a message has no column .*'msgId'"):
        target.writer(whole_schema(), False)
    with pytest.raises(ConfigError, match="the column body is missing"):
        target.streamWriter(StructType().add("tags", "string"), False)
    with pytest.raises(ConfigError, match="the option idempotent is for writes of streams"):
        RocketMQSource(options={**target.options, "idempotent": "true"}).writer(schema, False)
