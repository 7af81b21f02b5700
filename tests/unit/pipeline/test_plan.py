"""Ranges: cut for parallel tasks without a gap, and fitted to what a queue still has."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.pipeline import plan, ranges
from bolide.pipeline.errors import OffsetsExpired, QueueRecreated
from bolide.pipeline.options import Cutting, ReadOptions, parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.ranges import Ends, QueueRange, fit_range, split_ranges

QUEUE = MessageQueue("orders", "broker-a", 0)


def queue(at: int) -> MessageQueue:
    return MessageQueue("orders", "broker-a", at)


def test_enough_ranges_are_left_alone() -> None:
    whole = [QueueRange(QUEUE, 0, 10), QueueRange(queue(1), 5, 6)]
    assert split_ranges(whole, Cutting(2)) == whole


def test_the_longer_range_gets_more_parts() -> None:
    parts = split_ranges([QueueRange(QUEUE, 0, 10), QueueRange(queue(1), 100, 190)], Cutting(10))
    assert [part.queue.queue_id for part in parts] == [0] + [1] * 9


def test_a_task_has_no_more_records_than_it_may() -> None:
    parts = split_ranges([QueueRange(QUEUE, 0, 10), QueueRange(queue(1), 0, 3)], Cutting(records_max=4))
    assert [(part.begin, part.end) for part in parts] == [(0, 3), (3, 6), (6, 10), (0, 3)]


def test_a_task_has_about_the_bytes_that_it_may() -> None:
    cutting = Cutting(bytes_max=1000)
    parts = split_ranges(
        [QueueRange(QUEUE, 0, 10), QueueRange(queue(1), 0, 10)], cutting, {QUEUE: 500.0, queue(1): 10.0}
    )
    assert [part.length for part in parts] == [2, 2, 2, 2, 2, 10]


def test_more_tasks_than_spark_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "SPARK_TASKS_MAX", 10)
    assert len(split_ranges([QueueRange(QUEUE, 0, 20)], Cutting(records_max=2))) == 10
    with pytest.raises(ConfigError, match=r"20 tasks.*at most 10.*allow more per partition"):
        split_ranges([QueueRange(QUEUE, 0, 20)], Cutting(records_max=1))


@given(
    st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**6)), max_size=20),
    st.integers(1, 100),
    st.none() | st.integers(10**3, 10**7),
    st.none() | st.integers(10**5, 10**9),
)
def test_parts_join_without_gap_or_overlap(
    lengths: list[tuple[int, int]], partitions_min: int, records_max: int | None, bytes_max: int | None
) -> None:
    whole = [QueueRange(queue(at), begin, begin + length) for at, (begin, length) in enumerate(lengths)]
    sizes = {one.queue: 100.0 for one in whole}
    parts = split_ranges(whole, Cutting(partitions_min, records_max, bytes_max), sizes)
    assert all(part.begin < part.end for part in parts)
    assert all(records_max is None or part.length <= records_max for part in parts)
    for one in whole:
        own = [part for part in parts if part.queue == one.queue]
        assert [one.begin, *(part.end for part in own)][: len(own) + 1] == [
            *(part.begin for part in own),
            one.end,
        ]


def test_a_range_inside_of_the_queue_stays() -> None:
    wanted = QueueRange(QUEUE, 5, 9)
    assert fit_range(wanted, Ends(5, 9), fail=True) == wanted


def test_expired_and_recreated_are_different_errors() -> None:
    with pytest.raises(OffsetsExpired, match=r"from offset 5 to before 7 have expired.*fileReservedTime"):
        fit_range(QueueRange(QUEUE, 5, 9), Ends(7, 20), fail=True)
    with pytest.raises(QueueRecreated, match="end of the queue at 8"):
        fit_range(QueueRange(QUEUE, 5, 9), Ends(0, 8), fail=True)
    with pytest.raises(QueueRecreated):
        fit_range(QueueRange(QUEUE, 50, 50), Ends(0, 8), fail=True)


def test_without_the_wish_to_fail_the_range_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    ends = Ends(7, 20)
    assert fit_range(QueueRange(QUEUE, 5, 30), ends, fail=False) == QueueRange(QUEUE, 7, 20)
    assert fit_range(QueueRange(QUEUE, 5, 6), ends, fail=False) == QueueRange(QUEUE, 7, 7)
    assert fit_range(QueueRange(QUEUE, 50, 60), ends, fail=False) == QueueRange(QUEUE, 20, 20)
    assert len(caplog.records) == 4


class Told:
    """A cluster that says what it is told to."""

    def __init__(self, queues: int, first: int, last: int, later: int | None = None) -> None:
        self._queues = [queue(at) for at in range(queues)]
        self._ends = Ends(first, last)
        self._later = last if later is None else later

    def __call__(self, options: ReadOptions) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def queues(self) -> list[MessageQueue]:
        return self._queues

    async def ends(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        return dict.fromkeys(queues, self._ends)

    async def offsets_at(
        self, moments_ms: Mapping[MessageQueue, int], *, is_end: bool = False
    ) -> dict[MessageQueue, int]:
        return dict.fromkeys(moments_ms, self._later)


def planned(monkeypatch: pytest.MonkeyPatch, cluster: Told, **options: str) -> list[tuple[int, int]]:
    monkeypatch.setattr(plan, "Cluster", cluster)
    found = asyncio.run(plan_read(parse_options({"nameserver": "h:1", "subscribe": "orders"} | options)))
    return [(one.begin, one.end) for one in found]


def test_queues_without_messages_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    assert planned(monkeypatch, Told(4, 0, 0), minPartitions="8") == []
    assert planned(monkeypatch, Told(4, 7, 7)) == []


def test_the_largest_range_there_can_be_is_cut_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned(monkeypatch, Told(1, 0, 2**63 - 1), minPartitions="100")
    assert (len(found), found[0][0], found[-1][1]) == (100, 0, 2**63 - 1)


def test_a_time_that_nothing_matches_is_an_error_unless_the_strategy_is_latest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A time that matches is where the read begins; one for the end that matches nothing is the end."""
    times = {"startingTimestamp": "1700000000000"}
    assert planned(monkeypatch, Told(1, 0, 9, later=4), **times) == [(4, 9)]
    with pytest.raises(
        ConfigError, match=r"nothing was stored then or later in orders@broker-a:0;.*Strategy=latest"
    ):
        planned(monkeypatch, Told(1, 0, 9), **times)
    assert planned(monkeypatch, Told(1, 0, 9), **times, startingOffsetsByTimestampStrategy="latest") == []
    assert planned(monkeypatch, Told(1, 0, 9), endingTimestamp="1700000000000") == [(0, 9)]


def test_offsets_by_queue_are_for_all_queues_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    some = '{"orders": {"broker-a": {"0": 1}}}'
    assert planned(monkeypatch, Told(1, 0, 9), startingOffsets=some) == [(1, 9)]
    with pytest.raises(ConfigError, match="startingOffsets leaves out orders@broker-a:1; give -2"):
        planned(monkeypatch, Told(2, 0, 9), startingOffsets=some)
    with pytest.raises(QueueRecreated, match="names queues that are not there: orders@broker-a:0"):
        planned(monkeypatch, Told(0, 0, 9), endingOffsets=some)
