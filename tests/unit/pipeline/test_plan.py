"""Ranges: cut for parallel tasks without a gap, and fitted to what a queue still has."""

import asyncio
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.pipeline import plan
from bolide.pipeline.errors import OffsetsExpired, QueueRecreated
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import QueueRange, fit_range, plan_read, split_ranges

QUEUE = MessageQueue("orders", "broker-a", 0)


def test_enough_ranges_are_left_alone() -> None:
    ranges = [QueueRange(QUEUE, 0, 10), QueueRange(QUEUE, 5, 6)]
    assert split_ranges(ranges, 2) is ranges


def test_the_longer_range_gets_more_parts() -> None:
    short, long = QueueRange(QUEUE, 0, 10), QueueRange(MessageQueue("orders", "broker-a", 1), 100, 190)
    parts = split_ranges([short, long], 10)
    assert [part.queue.queue_id for part in parts] == [0] + [1] * 9


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 10**6)), min_size=1, max_size=20),
    st.integers(1, 100),
)
def test_parts_join_without_gap_or_overlap(lengths: list[tuple[int, int]], min_partitions: int) -> None:
    ranges = [
        QueueRange(MessageQueue("t", "b", at), begin, begin + length)
        for at, (begin, length) in enumerate(lengths)
    ]
    parts = split_ranges(ranges, min_partitions)
    for one in ranges:
        own = [part for part in parts if part.queue == one.queue]
        assert (own[0].begin, own[-1].end) == (one.begin, one.end)
        assert [part.end for part in own[:-1]] == [part.begin for part in own[1:]]
        assert all(part.begin < part.end for part in own)


def test_a_range_inside_of_the_queue_stays() -> None:
    wanted = QueueRange(QUEUE, 5, 9)
    assert fit_range(wanted, 5, 9, fail=True) == wanted


def test_expired_and_recreated_are_different_errors() -> None:
    with pytest.raises(OffsetsExpired, match="before offset 7 have expired"):
        fit_range(QueueRange(QUEUE, 5, 9), 7, 20, fail=True)
    with pytest.raises(QueueRecreated, match="end of the queue at 8"):
        fit_range(QueueRange(QUEUE, 5, 9), 0, 8, fail=True)
    with pytest.raises(QueueRecreated):
        fit_range(QueueRange(QUEUE, 50, 50), 0, 8, fail=True)


def test_without_the_wish_to_fail_the_range_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    assert fit_range(QueueRange(QUEUE, 5, 30), 7, 20, fail=False) == QueueRange(QUEUE, 7, 20)
    assert fit_range(QueueRange(QUEUE, 5, 6), 7, 20, fail=False) == QueueRange(QUEUE, 7, 7)
    assert fit_range(QueueRange(QUEUE, 50, 60), 7, 20, fail=False) == QueueRange(QUEUE, 20, 20)
    assert len(caplog.records) == 4


class Told:
    """A cluster that says what it is told to; in place of the `PullConsumer`."""

    def __init__(self, queues: int, first: int, last: int) -> None:
        self._queues = [MessageQueue("orders", "broker-a", at) for at in range(queues)]
        self._ends = (first, last)

    def __call__(self, nameserver: str, *, group: str) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def queues(self, topic: str) -> list[MessageQueue]:
        return self._queues

    async def min_offset(self, queue: MessageQueue) -> QueueOffset:
        return QueueOffset(self._ends[0])

    async def max_offset(self, queue: MessageQueue) -> QueueOffset:
        return QueueOffset(self._ends[1])


def planned(monkeypatch: pytest.MonkeyPatch, cluster: Told, **options: str) -> list[tuple[int, int]]:
    monkeypatch.setattr(plan, "PullConsumer", cluster)
    ranges = asyncio.run(plan_read(parse_options({"nameserver": "h:1", "subscribe": "orders"} | options)))
    return [(one.begin, one.end) for one in ranges]


def test_queues_without_messages_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(monkeypatch, Told(4, 0, 0), minPartitions="8") == []
    assert planned(monkeypatch, Told(4, 7, 7)) == []


def test_offsets_below_zero_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(monkeypatch, Told(1, -(2**63), 3)) == [(0, 3)]
    assert planned(monkeypatch, Told(1, -1, -1)) == []


def test_the_largest_range_there_can_be_is_cut_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = planned(monkeypatch, Told(1, 0, 2**63 - 1), minPartitions="100")
    assert (len(ranges), ranges[0][0], ranges[-1][1]) == (100, 0, 2**63 - 1)


def test_more_queues_than_tasks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SPARK_TASKS_MAX", 10)
    assert len(planned(monkeypatch, Told(10, 0, 1))) == 10
    with pytest.raises(
        ConfigError, match=r"11 queues would be as many tasks.*at most 10: subscribe to fewer"
    ):
        planned(monkeypatch, Told(11, 0, 1))
