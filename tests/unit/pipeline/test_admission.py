"""How much a batch takes: never more than it may, never nothing while there is something, and nobody is forgotten."""

from hypothesis import given
from hypothesis import strategies as st

from bolide.model.offsets import MessageQueue
from bolide.pipeline.admission import Backlog, admit, is_enough, share
from bolide.pipeline.options import Admission


def queue(at: int) -> MessageQueue:
    return MessageQueue("orders", "broker-a", at)


BACKLOGS = st.lists(
    st.builds(
        lambda begin, length, size, age: Backlog(begin, begin + length, size, age),
        st.integers(0, 10**9),
        st.integers(0, 10**6),
        st.floats(1, 10**6),
        st.integers(0, 100),
    ),
    max_size=20,
).map(lambda backlogs: {queue(at): one for at, one in enumerate(backlogs)})


@given(BACKLOGS, st.integers(1, 10**7))
def test_a_limit_is_used_up_and_never_exceeded(waiting: dict[MessageQueue, Backlog], limit: int) -> None:
    stops = admit(waiting, Admission(offsets_max=limit))
    taken = sum(stops[queue] - one.begin for queue, one in waiting.items())
    assert taken == min(limit, sum(one.length for one in waiting.values()))
    assert all(one.begin <= stops[queue] <= one.end for queue, one in waiting.items())


@given(BACKLOGS, st.integers(1, 10**7))
def test_the_smaller_of_two_limits_counts(waiting: dict[MessageQueue, Backlog], limit: int) -> None:
    assert admit(waiting, Admission(offsets_max=limit), rows_max=limit + 5) == share_ends(waiting, limit)
    assert admit(waiting, Admission(offsets_max=limit + 5), rows_max=limit) == share_ends(waiting, limit)


def share_ends(waiting: dict[MessageQueue, Backlog], limit: int) -> dict[MessageQueue, int]:
    return {queue: waiting[queue].begin + count for queue, count in share(waiting, limit).items()}


@given(BACKLOGS, st.integers(1, 10**9))
def test_bytes_bound_a_batch_and_something_is_always_taken(
    waiting: dict[MessageQueue, Backlog], bytes_max: int
) -> None:
    stops = admit(waiting, Admission(bytes_max=bytes_max))
    counts = {queue: stops[queue] - one.begin for queue, one in waiting.items()}
    assert (sum(counts.values()) > 0) == any(one.length for one in waiting.values())
    largest = max((one.size_bytes for one in waiting.values()), default=0)
    if sum(one.length * one.size_bytes for one in waiting.values()) <= bytes_max:
        assert all(counts[queue] == one.length for queue, one in waiting.items())
    elif len(waiting) == 1:
        assert (
            sum(counts[queue] * one.size_bytes for queue, one in waiting.items())
            <= max(bytes_max, largest) * 1.001
        )


def test_shares_follow_what_waits() -> None:
    waiting = {queue(0): Backlog(0, 900), queue(1): Backlog(50, 150), queue(2): Backlog(7, 7)}
    assert share(waiting, 100) == {queue(0): 90, queue(1): 10, queue(2): 0}


def test_a_small_queue_does_not_wait_for_a_large_one() -> None:
    waiting = {queue(0): Backlog(0, 10**6), queue(1): Backlog(0, 1)}
    assert share(waiting, 10) == {queue(0): 9, queue(1): 1}


def test_with_less_than_one_for_each_who_was_read_longest_ago_comes_first() -> None:
    waiting = {
        queue(0): Backlog(0, 10**6, age=9),
        queue(1): Backlog(0, 5, age=3),
        queue(2): Backlog(0, 5, age=4),
    }
    assert share(waiting, 2) == {queue(0): 0, queue(1): 1, queue(2): 1}


def test_a_batch_waits_for_its_minimum_but_not_for_ever() -> None:
    limits = Admission(offsets_min=10, delay_max_ms=1000)
    few, enough = {queue(0): Backlog(0, 9)}, {queue(0): Backlog(0, 9), queue(1): Backlog(4, 5)}
    assert not is_enough(few, limits, 999)
    assert is_enough(few, limits, 1000)
    assert is_enough(enough, limits, 0)
    assert is_enough(few, Admission(), 0)
