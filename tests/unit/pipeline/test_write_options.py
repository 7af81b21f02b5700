"""What the options of a write mean."""

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from bolide.model.errors import BolideError, ConfigError
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.option_table import Use
from bolide.pipeline.write_options import WriteOptions, parse_write
from bolide.pipeline.write_task import write_batches
from bolide.testing import EmbeddedServer
from tests.unit.pipeline.test_write_task import batches

BODY = StructType().add("body", BinaryType())


def parsed(use: Use = Use.WRITE, **options: str) -> WriteOptions:
    return parse_write({"nameserver": "127.0.0.1:9876", "topic": "t", **options}, BODY, use)


def test_everything_can_be_said() -> None:
    found = parsed(Use.STREAM_WRITE, producerGroup="etl", writeTimeout="90s", idempotent="false")
    assert (found.group, found.timeout_ms, found.idempotent) == ("etl", 90_000, False)
    assert (parsed().group, parsed().timeout_ms) == ("spark-writer", 60_000)


def test_bad_rows_end_a_write_unless_they_are_to_be_left_out() -> None:
    assert [parsed().skip_bad_rows, parsed(badRows="fail").skip_bad_rows] == [False, False]
    assert parsed(badRows="Skip").skip_bad_rows
    with pytest.raises(ConfigError, match="badRows is fail or skip, not 'drop'"):
        parsed(badRows="drop")


@pytest.mark.parametrize("text", ["0s", "25h", "soon"])
def test_a_time_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="writeTimeout"):
        parsed(writeTimeout=text)


def test_a_task_gives_up_after_its_time_when_brokers_are_gone() -> None:
    """They go in the middle; by default it would try for a minute."""
    with EmbeddedServer() as server:
        began: list[float] = []

        def rows() -> Iterator[pa.RecordBatch]:
            first, *rest = batches()
            yield first
            server.stop()
            began.append(time.monotonic())
            yield from rest

        options = WriteOptions(ClusterAccess(server.nameserver), topic="sink", timeout_ms=500)
        with pytest.raises(BolideError):
            write_batches(options, None, rows())
        assert time.monotonic() - began[0] < 30
