"""Ranges: cut for parallel tasks without a gap, and fitted to what a queue still has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.offsets import MessageQueue
from bolide.pipeline.errors import OffsetsExpired, QueueRecreated
from bolide.pipeline.plan import QueueRange, fit_range, split_ranges

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
