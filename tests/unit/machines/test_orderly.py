"""OrderedQueue: one call at a time, in order, and only while the queue is surely ours."""

import random

import pytest

from bolide.machines import locks, orderly
from bolide.machines.consumer import RETRY_PAUSE_MS
from bolide.machines.orderly import LIFETIME_MS, TRUST_MS, OrderedQueue
from bolide.model.offsets import GroupOffset
from tests.unit.machines.test_consumer import message, offsets


def filled(first: int, end: int, **options: int) -> OrderedQueue:
    process = OrderedQueue(GroupOffset(first), **options)
    process.pulled([message(offset) for offset in range(first, end)], GroupOffset(end))
    return process


def test_nothing_is_taken_while_the_listener_has_something() -> None:
    """OR-03."""
    process = filled(0, 5)
    assert offsets(process.take(0, 2)) == [0, 1]
    assert process.take(0, 2) == []
    assert not process.has_work(0)
    process.done(commit=True)
    assert offsets(process.take(0, 9)) == [2, 3, 4]
    assert process.commit_offset == 2


def test_a_lock_is_trusted_for_half_of_what_it_lives() -> None:
    """OR-02."""
    assert (TRUST_MS, LIFETIME_MS) == (30_000, locks.LIFETIME_MS)
    process = filled(0, 5, locked_ms=1000)
    assert process.has_work(1000 + TRUST_MS)
    assert not process.has_work(1001 + TRUST_MS)
    assert process.take(1001 + TRUST_MS, 1) == []
    assert process.renewed(40_000, 41_000)
    assert offsets(process.take(41_000, 1)) == [0]


def test_a_lock_that_may_have_been_anothers_is_worth_nothing() -> None:
    process = filled(0, 5, locked_ms=0)
    assert not process.renewed(LIFETIME_MS, LIFETIME_MS + 1)
    assert process.renewed(LIFETIME_MS - 1, LIFETIME_MS)
    process.lost()
    assert not process.is_trusted(LIFETIME_MS)
    assert not process.has_work(LIFETIME_MS)


def test_a_queue_that_needs_no_lock_is_always_ours() -> None:
    assert filled(0, 1).is_trusted(10**15)


def test_unsettled_messages_are_the_next_again_and_settled_ones_are_not() -> None:
    process = filled(0, 3)
    taken = process.take(0, 2)
    process.unsettled(taken, 0)
    assert process.take(RETRY_PAUSE_MS - 1, 2) == []
    taken = process.take(RETRY_PAUSE_MS, 2)
    assert [(one.queue_offset, one.reconsume_times) for one in taken] == [(0, 1), (1, 1)]
    process.done(commit=True)
    process.unsettled(taken, RETRY_PAUSE_MS)
    assert offsets(process.take(RETRY_PAUSE_MS, 2)) == [2]


def test_a_failed_message_is_the_next_again_after_its_pause() -> None:
    """OR-05."""
    process = filled(0, 3)
    process.take(0, 2)
    process.suspended(100, 1000)
    assert process.retry_due_ms == 1100
    assert not process.has_work(1099)
    again = process.take(1100, 1)
    assert [(one.queue_offset, one.reconsume_times) for one in again] == [(0, 1)]
    process.done(commit=True)
    assert [(one.queue_offset, one.reconsume_times) for one in process.take(1100, 9)] == [(1, 1), (2, 0)]


def test_what_has_had_all_its_attempts_leaves_and_the_others_stay() -> None:
    process = filled(0, 3)
    taken = process.take(0, 3)
    process.given_away(taken[1])
    process.suspended(0, 10)
    assert offsets(process.take(10, 9)) == [0, 2]
    assert process.held.messages == 2


def test_only_a_commit_moves_the_offset_when_they_are_made_by_hand() -> None:
    """OR-06."""
    process = filled(0, 6)
    process.take(0, 2)
    process.done(commit=False)
    process.take(0, 2)
    process.done(commit=False)
    assert (process.commit_offset, process.uncommitted) == (0, 4)
    process.take(0, 1)
    process.done(commit=True)
    assert (process.commit_offset, process.uncommitted) == (5, 0)


def test_a_rollback_brings_everything_since_the_commit_again_and_counts_no_failure() -> None:
    """OR-06."""
    process = filled(0, 6)
    process.take(0, 1)
    process.done(commit=True)
    process.take(0, 2)
    process.done(commit=False)
    process.take(0, 1)
    process.rolled_back(0, 1000)
    assert not process.has_work(999)
    again = process.take(1000, 9)
    assert [(one.queue_offset, one.reconsume_times) for one in again] == [(n, 0) for n in range(1, 6)]


def test_a_failed_call_keeps_what_was_done_before_it() -> None:
    process = filled(0, 4)
    process.take(0, 1)
    process.done(commit=False)
    process.take(0, 1)
    process.suspended(0, 10)
    assert process.uncommitted == 1
    assert offsets(process.take(10, 1)) == [1]
    process.done(commit=True)
    assert process.commit_offset == 2


def test_a_queue_that_was_cut_does_not_wait_for_a_commit_by_hand() -> None:
    process = filled(5, 7)
    process.take(0, 2)
    process.done(commit=False)
    assert process.is_idle
    process.moved_back(GroupOffset(2))
    assert (process.next_offset, process.commit_offset, process.uncommitted) == (2, 2, 0)


def test_messages_that_are_not_committed_count_as_held() -> None:
    process = filled(0, 10, messages_max=10)
    process.take(0, 10)
    process.done(commit=False)
    assert "10 messages" in str(process.brake)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_fails_the_order_is_kept_and_the_offset_passes_nothing(seed: int) -> None:
    """Goal: no message is seen before one in front of it is done.  Method: random calls against a model."""
    chance = random.Random(seed)
    process = OrderedQueue(GroupOffset(0), locked_ms=0)
    now_ms, done, committed = 0, 0, 0  # offsets below are done, are committed
    for _ in range(500):
        now_ms += chance.randrange(2000)
        if process.brake is None:
            start = process.next_offset
            process.pulled([message(start + n) for n in range(3)], GroupOffset(start + 3))
        if chance.random() < 0.5 and not process.renewed(now_ms, now_ms):
            return  # nobody asked for too long: it is begun anew
        batch = process.take(now_ms, chance.randrange(1, 5))
        if not batch:
            continue
        assert now_ms - (process.locked_ms or 0) <= orderly.TRUST_MS
        assert offsets(batch) == list(range(done, done + len(batch)))
        match chance.randrange(4):
            case 0:
                process.suspended(now_ms, 500)
            case 1:
                process.rolled_back(now_ms, 500)
                done = committed
            case kind:
                done += len(batch)
                process.done(commit=kind == 3)
                committed = done if kind == 3 else committed
        assert process.commit_offset == (
            committed if committed < process.next_offset else process.next_offset
        )
