"""A rate holds over every stretch of time, by a clock of the test's own."""

import asyncio
from itertools import pairwise

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from bolide.model.errors import ConfigError
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.option_table import Use
from bolide.pipeline.pace import Pace
from bolide.pipeline.write_options import WriteOptions, parse_write
from bolide.pipeline.write_task import write_batches
from bolide.testing import EmbeddedServer


class Clock:
    """Time passes only where somebody waits."""

    def __init__(self) -> None:
        self.at_ms = 1000.0

    def now_ms(self) -> int:
        return int(self.at_ms)

    def monotonic_ms(self) -> int:
        return int(self.at_ms)

    async def wait(self, seconds: float) -> None:
        self.at_ms += seconds * 1000


def moments(rate: float | None, frames: list[int], slow: dict[int, float] | None = None) -> list[float]:
    """When each frame goes; `slow` says after which of them the broker takes how many milliseconds."""
    clock, sent = Clock(), []

    async def send() -> None:
        pace = Pace(rate, clock, clock.wait)
        for number, messages in enumerate(frames):
            await pace.turn(messages)
            sent.append(clock.at_ms)
            clock.at_ms += (slow or {}).get(number, 0)

    asyncio.run(send())
    return sent


def test_frames_go_as_far_apart_as_their_messages_say() -> None:
    assert [later - sooner for sooner, later in pairwise(moments(100, [10, 20, 1, 5]))] == [100, 200, 10]


def test_without_a_rate_nobody_waits() -> None:
    assert len(set(moments(None, [1000] * 50))) == 1


def test_time_that_a_broker_took_is_not_made_up_for() -> None:
    """After a second's standstill the next frames are as far apart as ever."""
    sent = moments(100, [10] * 6, slow={2: 1000})
    assert [later - sooner for sooner, later in pairwise(sent)] == [100, 100, 1000, 100, 100]


def test_a_task_asks_its_pace_before_every_request_and_makes_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    async def turn(self: Pace, messages: int) -> None:
        asked.append(messages)

    monkeypatch.setattr(Pace, "turn", turn)
    rows = pa.record_batch({"body": pa.array([b"row %d" % at for at in range(105)], pa.binary())})
    with EmbeddedServer() as server:
        written = write_batches(
            WriteOptions(ClusterAccess(server.nameserver), topic="slow", rate=200), None, iter([rows])
        )
    assert written.rows == 105
    assert asked == [20, 20, 20, 20, 20, 5]


def test_the_option_is_a_number_of_messages() -> None:
    schema = StructType([StructField("body", BinaryType())])
    given = {"nameserver": "127.0.0.1:9876", "topic": "t"}
    assert parse_write({**given, "maxMessagesPerSecond": "50"}, schema, Use.WRITE).rate == 50
    assert parse_write(given, schema, Use.STREAM_WRITE).rate is None
    with pytest.raises(ConfigError, match="maxMessagesPerSecond is a number from 1 to"):
        parse_write({**given, "maxMessagesPerSecond": "0"}, schema, Use.WRITE)
    with pytest.raises(ConfigError, match="it is called maxMessagesPerSecond here"):
        parse_write({**given, "rateLimit": "5"}, schema, Use.WRITE)
