"""The source as Spark calls it, without a Spark: wrong options at `load()`, a clear word about what is not there."""

from typing import Any

import pytest
from pyspark.sql.datasource import InputPartition

from bolide.model.errors import ConfigError
from bolide.pipeline.errors import NotOffered
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


@pytest.mark.parametrize("ask", ["writer", "streamWriter"])
def test_writing_is_refused_with_what_there_is(ask: str) -> None:
    """Before its options are looked at: nobody should first correct them and then hear that it was in vain."""
    with pytest.raises(NotOffered, match=r"does not write .*yet.*batch read: spark\.read.*bolide\.Producer"):
        getattr(source(topic="orders"), ask)(whole_schema(), False)


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("initialOffset", ()),
        ("latestOffset", ()),
        ("latestOffset", ({}, None)),
        ("partitions", ({}, {})),
        ("read", (None,)),
    ],
)
def test_reading_a_stream_is_refused_with_what_there_is(method: str, arguments: tuple[Any, ...]) -> None:
    stream = source().streamReader(whole_schema())
    with pytest.raises(NotOffered, match=r"does not read streams \(spark\.readStream\) yet.*spark\.read\."):
        getattr(stream, method)(*arguments)
    stream.stop()
