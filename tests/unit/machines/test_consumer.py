"""ProcessQueue: what may be committed, what comes next, when to stop pulling."""

import random

import pytest

from bolide.machines.consumer import OVERDUE_MAX, RETRY_PAUSE_MS, Cache, ProcessQueue
from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.model.offsets import GroupOffset, LogOffset, QueueOffset
from bolide.record.stored import StoredMessage


def message(offset: int, body: bytes = b"x") -> StoredMessage:
    return StoredMessage(
        topic="T",
        body=body,
        properties={},
        queue_id=0,
        queue_offset=QueueOffset(offset),
        log_offset=LogOffset(offset * 100),
        broker_name="b",
        sys_flag=0,
        flag=0,
        born_timestamp_ms=0,
        born_host="",
        store_timestamp_ms=0,
        store_host="",
        reconsume_times=0,
        message_id=str(offset),
        offset_message_id=str(offset),
    )


COST = message(0).cost_bytes


def filled(first: int, end: int, **limits: int) -> ProcessQueue:
    process = ProcessQueue(GroupOffset(first), **limits)
    process.pulled([message(offset) for offset in range(first, end)], GroupOffset(end))
    return process


def offsets(messages: list[StoredMessage]) -> list[int]:
    return [message.queue_offset for message in messages]


def test_messages_come_in_the_order_of_the_queue() -> None:
    process = filled(5, 9)
    assert offsets(process.take(0, 3)) == [5, 6, 7]
    assert offsets(process.take(0, 3)) == [8]
    assert process.take(0, 3) == []
    assert process.next_offset == 9


def test_a_message_that_comes_twice_is_given_once() -> None:
    process = ProcessQueue(GroupOffset(5))
    process.pulled([message(5), message(7), message(7)], GroupOffset(8))
    assert offsets(process.take(0, 9)) == [5, 7]


def test_the_offset_stays_at_a_slow_message_and_then_jumps_to_the_end() -> None:
    """CO-08."""
    process = filled(0, 10)
    slow = process.take(0, 1)
    process.succeeded(process.take(0, 9))
    assert process.commit_offset == 0
    process.succeeded(slow)
    assert process.commit_offset == 10
    assert process.is_idle


def test_what_was_only_pulled_is_not_committed() -> None:
    assert filled(7, 9).commit_offset == 7


def test_messages_that_the_filter_left_out_move_the_offset() -> None:
    process = ProcessQueue(GroupOffset(3))
    process.pulled([], GroupOffset(20))
    assert (process.next_offset, process.commit_offset) == (20, 20)
    process.pulled([message(25)], GroupOffset(30))
    assert (process.next_offset, process.commit_offset) == (30, 25)


def test_a_failed_message_comes_again_alone_when_it_is_due_and_counts_its_tries() -> None:
    """RY-05."""
    process = filled(0, 3)
    now_ms = 1000
    process.failed(process.take(now_ms, 3), now_ms)
    assert not process.has_work(now_ms + RETRY_PAUSE_MS - 1)
    due_ms = process.retry_due_ms
    assert due_ms == now_ms + RETRY_PAUSE_MS == 6000
    for offset in range(3):
        (again,) = process.take(due_ms, 3)
        assert (again.queue_offset, again.reconsume_times) == (offset, 1)
        process.succeeded([again])
    assert process.commit_offset == 3
    assert process.retry_due_ms is None


@pytest.mark.parametrize(("times", "counted"), [(INT32_MAX, INT32_MAX), (INT32_MIN, 1)])
def test_a_message_that_was_stored_with_any_count_is_counted_on(times: int, counted: int) -> None:
    process = ProcessQueue(GroupOffset(0))
    process.pulled([message(0).replaced(reconsume_times=times)], GroupOffset(1))
    process.failed(process.take(0, 1), 0)
    (again,) = process.take(RETRY_PAUSE_MS, 1)
    assert again.reconsume_times == counted


def test_of_unsettled_messages_those_come_again_that_are_still_at_work() -> None:
    process = filled(0, 4)
    taken = process.take(0, 3)
    process.succeeded(taken[:1])
    process.failed(taken[1:2], 0)
    process.unsettled(taken, 0)
    again = [process.take(RETRY_PAUSE_MS, 1)[0] for _ in range(2)]
    assert [(one.queue_offset, one.reconsume_times) for one in again] == [(1, 1), (2, 1)]
    assert process.retry_due_ms is None
    assert offsets(process.take(RETRY_PAUSE_MS, 9)) == [3]


def test_work_that_takes_too_long_is_told_with_the_oldest_first_and_some_at_a_time() -> None:
    """RY-06."""
    process = filled(0, 40)
    old, young = process.take(0, 20), process.take(500, 20)
    assert process.overdue(999, 1000) == []
    assert offsets(process.overdue(1000, 1000)) == list(range(OVERDUE_MAX))
    process.succeeded(old)
    assert process.overdue(1000, 1000) == []
    assert offsets(process.overdue(1500, 1000)) == offsets(young)[:OVERDUE_MAX]


def test_what_was_given_up_neither_succeeds_nor_fails_later() -> None:
    """RY-06."""
    process = filled(0, 3)
    taken = process.take(0, 3)
    process.succeeded(taken[:1])  # given up
    assert offsets(process.still_open(taken)) == [1, 2]
    process.failed(taken, 0)
    assert process.held.messages == 2
    process.succeeded(taken)
    assert (process.commit_offset, process.held.size_bytes) == (3, 0)


def test_what_is_held_can_be_told() -> None:
    process = filled(5, 9)
    assert process.held == (4, 4 * COST, 5, 8, 0)
    process.succeeded(process.take(0, 2)[:1])
    assert process.held == (3, 3 * COST, 6, 8, 1)
    assert process.is_at_work
    assert ProcessQueue(GroupOffset(7)).held == (0, 0, 0, 0, 0)


def test_messages_behind_a_failed_one_go_on_but_the_offset_waits() -> None:
    process = filled(0, 5)
    process.failed(process.take(0, 1), 0)
    process.succeeded(process.take(0, 10))
    assert process.commit_offset == 0
    assert not process.is_idle


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"messages_max": 10}, "10 messages"),
        ({"bytes_max": 10 * COST}, f"{10 * COST} bytes"),
        ({"span_max": 9}, "holds back"),
    ],
)
def test_pulling_stops_at_each_limit_and_goes_on_below_it(limits: dict[str, int], why: str) -> None:
    """CO-09."""
    process = filled(0, 10, **limits)
    assert why in str(process.brake)
    process.succeeded(process.take(0, 1))
    assert process.brake is None


def test_one_stuck_message_stops_the_pulls_by_its_span() -> None:
    process = filled(0, 10, span_max=15)
    process.failed(process.take(0, 1), 0)
    process.succeeded(process.take(0, 9))
    assert process.brake is None
    process.pulled([], GroupOffset(16))
    assert "offset 0 holds back" in str(process.brake)


def test_queues_that_each_have_room_stop_each_other_when_they_hold_too_much_together() -> None:
    cache = Cache(10 * COST)
    first, second = ProcessQueue(GroupOffset(0), cache), ProcessQueue(GroupOffset(0), cache)
    first.pulled([message(offset) for offset in range(6)], GroupOffset(6))
    assert second.brake is None
    second.pulled([message(offset) for offset in range(4)], GroupOffset(4))
    assert "all queues together" in str(first.brake)
    assert first.is_crowded_out
    assert second.is_crowded_out
    second.succeeded(second.take(0, 1))
    assert first.brake is None


def test_a_queue_that_is_let_go_leaves_its_room_to_the_others_once() -> None:
    cache = Cache(10 * COST)
    process = ProcessQueue(GroupOffset(0), cache)
    process.pulled([message(offset) for offset in range(10)], GroupOffset(10))
    running = process.take(0, 5)
    process.let_go()
    assert cache.size_bytes == 0
    process.succeeded(running)  # the listener ends later
    assert cache.size_bytes == 0


def test_a_message_costs_its_properties_too() -> None:
    many = message(0).replaced(properties={str(number): "x" for number in range(1000)})
    process = ProcessQueue(GroupOffset(0), bytes_max=250_000)
    process.pulled([many], GroupOffset(1))
    assert "bytes are waiting" in str(process.brake)


def test_a_queue_that_was_cut_goes_back_only_when_nothing_is_open() -> None:
    process = filled(5, 6)
    with pytest.raises(AssertionError):
        process.moved_back(GroupOffset(2))
    process.succeeded(process.take(0, 1))
    process.moved_back(GroupOffset(2))
    assert (process.next_offset, process.commit_offset) == (2, 2)


@pytest.mark.parametrize("seed", range(30))
def test_the_offset_never_passes_a_message_that_has_not_succeeded(seed: int) -> None:
    """Goal: at least once.  Method: pull, take, succeed and fail at random; after each step compare with a model."""
    chance = random.Random(seed)
    process = ProcessQueue(GroupOffset(0))
    pending: set[int] = set()
    running: list[list[StoredMessage]] = []
    done: set[int] = set()
    now_ms = 0
    for _ in range(400):
        now_ms += chance.randrange(3000)
        match chance.randrange(4):
            case 0 if process.brake is None:
                start = process.next_offset
                new = [message(start + n) for n in range(chance.randrange(5)) if chance.random() < 0.8]
                process.pulled(new, GroupOffset(start + 5))
                pending.update(offsets(new))
            case 1:
                if batch := process.take(now_ms, chance.randrange(1, 4)):
                    running.append(batch)
            case 2 if running:
                batch = running.pop(chance.randrange(len(running)))
                process.succeeded(batch)
                done.update(offsets(batch))
                pending.difference_update(offsets(batch))
            case 3 if running:
                process.failed(running.pop(chance.randrange(len(running))), now_ms)
        assert process.commit_offset == min(pending, default=process.next_offset)
        assert process.is_idle == (not pending)
    while pending:  # and in the end everything succeeds
        now_ms += 60_000
        batch = running.pop() if running else process.take(now_ms, 4)
        process.succeeded(batch)
        pending.difference_update(offsets(batch))
    assert process.commit_offset == process.next_offset
