"""When queues of a topic may go: nothing comes into them any more, and every group has consumed them."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bolide.admin import shrink
from bolide.admin.shrink import Rest, queues_that_go, until_consumed
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.topic import QueueBounds

QUEUE = MessageQueue("pay", "broker-a", 8)


def rest(end: int, **behind: int) -> Rest:
    return Rest({QUEUE: QueueBounds(0, end, 0)}, behind)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> "Seconds":
    return Seconds(monkeypatch)


class Seconds:
    """Time that passes only when somebody waits, and what is seen at each look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ms = 0
        self.looks: Iterator[Rest] = iter(())
        self.last: Rest = rest(0)
        monkeypatch.setattr(shrink, "pause", self._pause)
        monkeypatch.setattr(shrink, "look", self._look)

    async def _pause(self, seconds: float) -> None:
        self.now_ms += int(1000 * seconds)

    async def _look(self, *_: object) -> Rest:
        self.last = next(self.looks, self.last)
        return self.last

    def until_consumed(self, *looks: Rest, quiet_ms: int, wait_for_groups: bool = True) -> list[int]:
        """How many more milliseconds of quiet were wanted at each look."""
        self.looks = iter(looks)
        left: list[int] = []
        servers = cast("Any", SimpleNamespace(clock=SimpleNamespace(monotonic_ms=lambda: self.now_ms)))
        work = until_consumed(
            servers,
            cast("Any", None),
            {},
            quiet_ms=quiet_ms,
            wait_for_groups=wait_for_groups,
            on_look=lambda _, left_ms: left.append(left_ms),
        )
        asyncio.run(work)
        return left


def test_producers_get_their_time_although_nothing_is_there(seconds: Seconds) -> None:
    assert seconds.until_consumed(rest(0), quiet_ms=3_000) == [3_000, 2_000, 1_000, 0]


def test_a_late_message_begins_the_quiet_time_again_and_is_waited_for(seconds: Seconds) -> None:
    looks = (rest(5, slow=0), rest(6, slow=1), rest(6, slow=1), rest(6, slow=1), rest(6, slow=0))
    assert seconds.until_consumed(*looks, quiet_ms=2_000) == [2_000, 2_000, 1_000, 0, 0]


def test_groups_count_unless_they_are_not_to(seconds: Seconds) -> None:
    assert seconds.until_consumed(rest(5, slow=1), rest(5, slow=0), quiet_ms=0) == [0, 0]
    assert seconds.until_consumed(rest(5, slow=1), quiet_ms=0, wait_for_groups=False) == [0]


def test_only_read_queues_that_become_fewer_go() -> None:
    before = {"a": TopicConfig("t", 16, 16), "b": TopicConfig("t", 4, 4), "c": TopicConfig("t", 16, 16)}
    after = {"a": TopicConfig("t", 8, 8), "b": TopicConfig("t", 8, 8), "c": TopicConfig("t", 16, 2)}
    assert queues_that_go(before, after) == {"a": range(8, 16)}
