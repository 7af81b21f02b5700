"""What a polling consumer has fetched: order, limits, places, and answers that come too late."""

from random import Random

import pytest

from bolide.machines.consumer import Cache
from bolide.machines.fetched import ALONE_TRIES, RELEARN_AFTER, Ask, FetchedQueue
from bolide.model.limits import POLL_PULLS_AHEAD_MAX, PULL_BULK_MESSAGES_MAX
from bolide.model.offsets import GroupOffset

MESSAGE = 10  # bytes of one message; the first of them is its offset
END = 1_000


def records(begin: int, end: int) -> bytes:
    return b"".join(b"%09d;" % offset for offset in range(begin, end))


def fetched(start: int = 0, cache_bytes: int = 10**6, **limits: int) -> FetchedQueue:
    return FetchedQueue(GroupOffset(start), Cache(cache_bytes), **limits)


def asked(queue: FetchedQueue, *, whole: bool = True) -> list[Ask]:
    """Everything that may be asked for now."""
    found = []
    while (ask := queue.ask(whole=whole)) is not None:
        found.append(ask)
    return found


def answer(queue: FetchedQueue, ask: Ask, count: int, end: int = END) -> None:
    """As a broker that gives `count` messages at most, from a queue that ends there."""
    to = min(ask.begin + min(count, ask.count), end)
    queue.answered(ask, records(ask.begin, to), GroupOffset(to), end)


def give(queue: FetchedQueue, count: int | None = None) -> list[int]:
    """The offsets that a poll of so many messages gets."""
    offsets: list[int] = []
    while (block := queue.head) is not None and (count is None or len(offsets) < count):
        left = (len(block.data) - block.at) // MESSAGE
        take = left if count is None else min(left, count - len(offsets))
        to = block.at + take * MESSAGE
        offsets += [int(block.data[at : at + 9]) for at in range(block.at, to, MESSAGE)]
        queue.gave(to, GroupOffset(block.begin + take))
    return offsets


def test_what_was_fetched_is_given_out_in_order_and_in_parts() -> None:
    queue = fetched()
    (ask,) = asked(queue)
    assert (ask.begin, ask.count, ask.is_open, ask.may_wait) == (0, PULL_BULK_MESSAGES_MAX, True, True)
    answer(queue, ask, 10, end=10)
    assert (give(queue, 4), queue.given) == ([0, 1, 2, 3], 4)
    (ask,) = asked(queue)
    answer(queue, ask, 10, end=15)
    assert give(queue) == list(range(4, 15))
    assert (queue.given, queue.head) == (15, None)


def test_where_a_broker_gives_little_at_a_time_several_pulls_are_under_way() -> None:
    queue = fetched()
    (first,) = asked(queue)
    answer(queue, first, 32)
    ahead = asked(queue)
    assert [ask.begin for ask in ahead] == [32 * n for n in range(1, POLL_PULLS_AHEAD_MAX + 1)]
    assert {(ask.count, ask.is_open, ask.may_wait) for ask in ahead} == {(32, False, False)}
    for ask in reversed(ahead):
        assert give(queue, 1) == ([0] if ask is ahead[-1] else [])  # nothing is given out before its turn
        give(queue)
        answer(queue, ask, 32)
    assert give(queue) == list(range(32, 32 * (POLL_PULLS_AHEAD_MAX + 1)))


def test_where_messages_are_filtered_or_answers_are_large_one_pull_follows_the_other() -> None:
    queue = fetched()
    (first,) = asked(queue, whole=False)
    answer(queue, first, 32)
    (only,) = asked(queue, whole=False)
    assert (only.begin, only.is_open) == (32, True)
    queue = fetched()
    (first,) = asked(queue)
    queue.answered(first, bytes(512 * 1024), GroupOffset(100), END)
    (only,) = asked(queue)
    assert only.is_open


def test_a_broker_at_the_end_of_its_queue_says_nothing_about_its_reach() -> None:
    queue = fetched()
    (first,) = asked(queue)
    answer(queue, first, 1, end=1)
    (held,) = asked(queue)
    assert (held.begin, held.is_open) == (1, True)


def test_a_piece_that_comes_short_is_completed_and_the_reach_is_learned_anew() -> None:
    queue = fetched()
    (first,) = asked(queue)
    answer(queue, first, 32)
    short, *others = asked(queue)
    answer(queue, short, 20)
    (rest,) = asked(queue)
    assert (rest.begin, rest.count) == (52, 12)
    for ask in (rest, *others):
        answer(queue, ask, 32)
    (again,) = asked(queue)
    assert again.is_open
    assert give(queue) == list(range(again.begin))


def test_the_reach_is_looked_at_again_from_time_to_time() -> None:
    queue, count, open_asks = fetched(), 8, 0
    while open_asks < 3:
        for ask in asked(queue):
            open_asks += ask.is_open
            answer(queue, ask, count, end=10**6)
        give(queue)
        count = 64  # messages are smaller now
        assert queue.given < 64 * (RELEARN_AFTER + 2) * 3
    assert queue._reach == 64


@pytest.mark.parametrize("limits", [{"bytes_max": 50}, {"messages_max": 5}, {"cache_bytes": 50}])
def test_nothing_is_asked_for_while_too_much_waits(limits: dict[str, int]) -> None:
    queue = fetched(**limits)
    (ask,) = asked(queue)
    answer(queue, ask, 5)
    assert (queue.is_full, asked(queue)) == (True, [])
    give(queue, 3)
    if "messages_max" not in limits:  # bytes are free when a whole block has gone
        assert queue.is_full
    give(queue)
    assert len(asked(queue)) > 0


def test_an_answer_for_which_others_left_no_room_is_asked_for_again() -> None:
    cache = Cache(100)
    one, other = FetchedQueue(GroupOffset(0), cache), FetchedQueue(GroupOffset(0), cache)
    (late,) = asked(other)
    (ask,) = asked(one)
    answer(one, ask, 10)
    answer(other, late, 10)
    assert (other.head, asked(other)) == (None, [])
    give(one)
    (again,) = asked(other)
    assert again is late
    answer(other, again, 10)
    assert give(other) == list(range(10))


def test_a_failed_pull_is_made_again() -> None:
    queue = fetched(7)
    (ask,) = asked(queue)
    queue.failed(ask)
    assert asked(queue) == [ask]


@pytest.mark.parametrize("to", [0, 3, 500])
def test_a_seek_drops_what_was_fetched_and_what_is_under_way(to: int) -> None:
    queue = fetched()
    (first,) = asked(queue)
    answer(queue, first, 32)
    under_way = asked(queue)
    queue.seek(GroupOffset(to))
    for ask in under_way:
        answer(queue, ask, 32)
    assert (queue.head, queue._bytes, queue._cache.size_bytes, queue.given) == (None, 0, 0, to)
    (ask,) = asked(queue)
    answer(queue, ask, 32)
    assert give(queue, 2) == [to, to + 1]


def test_a_paused_queue_gives_nothing_asks_for_nothing_and_keeps_what_it_has() -> None:
    queue = fetched()
    (ask,) = asked(queue)
    queue.is_paused = True
    answer(queue, ask, 32)
    assert (queue.head, asked(queue)) == (None, [])
    queue.is_paused = False
    assert give(queue) == list(range(32))


def test_a_queue_that_begins_later_goes_on_there_and_what_was_fetched_is_given_out() -> None:
    queue = fetched()
    (first,) = asked(queue)
    answer(queue, first, 32)
    early, *late = asked(queue)
    queue.answered(late[0], b"", GroupOffset(900), END, is_moved=True)
    answer(queue, early, 32)
    for ask in late[1:]:
        answer(queue, ask, 32)
    ask, *_ = asked(queue)
    assert ask.begin == 900
    answer(queue, ask, 2)
    assert give(queue) == [*range(64), 900, 901]


def test_however_much_has_expired_a_queue_goes_on_behind_it() -> None:
    queue = fetched(messages_max=10)
    (ask,) = asked(queue)
    queue.answered(ask, b"", GroupOffset(900), END, is_moved=True)
    assert give(queue) == []
    assert queue.given == 900
    assert asked(queue)[0].begin == 900


def test_a_queue_that_ends_before_our_place_is_read_from_there_and_the_group_goes_back() -> None:
    queue = fetched(500)
    queue.done = GroupOffset(490)
    (ask,) = asked(queue)
    queue.answered(ask, b"", GroupOffset(20), 30, is_moved=True)
    assert (queue.given, queue.done) == (20, 20)
    assert asked(queue)[0].begin == 20


def test_ranges_without_a_wanted_message_move_the_place_and_cost_one_block() -> None:
    queue = fetched()
    for _ in range(5):
        (ask,) = asked(queue, whole=False)
        queue.answered(ask, b"", GroupOffset(ask.begin + 100), END)
    assert (len(queue._blocks), queue.given) == (1, 0)
    assert give(queue) == []
    assert queue.given == 500


def test_an_answer_that_brings_nothing_is_asked_for_again_with_patience() -> None:
    queue = fetched()
    (first,) = asked(queue)
    answer(queue, first, 32)
    ahead = asked(queue)
    queue.answered(ahead[0], b"", ahead[0].begin, END)
    (again,) = asked(queue)
    assert again is ahead[0]
    assert again.may_wait


def test_what_cannot_be_read_is_asked_for_alone_and_passed_over_at_last() -> None:
    queue = fetched()
    (ask,) = asked(queue)
    answer(queue, ask, 32)
    give(queue, 5)
    for _ in range(ALONE_TRIES):
        assert not queue.cannot_read()
        (ask,) = asked(queue)
        assert (ask.begin, ask.count, ask.is_open) == (5, 1, True)
        answer(queue, ask, 32)
    assert queue.cannot_read()
    assert (queue.given, queue.is_unread) == (6, False)
    (ask,) = asked(queue)
    assert (ask.begin, ask.count) == (6, PULL_BULK_MESSAGES_MAX)


def test_a_queue_that_was_let_go_gives_nothing_and_takes_no_room() -> None:
    cache = Cache(1000)
    queue = FetchedQueue(GroupOffset(0), cache)
    (ask,) = asked(queue)
    answer(queue, ask, 10)
    (late,) = asked(queue)[:1]
    queue.let_go()
    answer(queue, late, 10)
    assert (queue.head, cache.size_bytes) == (None, 0)


@pytest.mark.parametrize("seed", range(30))
def test_whatever_the_order_of_answers_every_message_is_given_out_once_and_in_order(seed: int) -> None:
    """Goal: no gap, no double, no leak.  Method: answers, failures, polls and seeks in any order, by chance."""
    rng = Random(seed)
    cache = Cache(2_000)
    queue = FetchedQueue(GroupOffset(0), cache, bytes_max=1_000, messages_max=300)
    under_way: list[Ask] = []
    at, seen = 0, 0
    while seen < 3_000:
        under_way += asked(queue, whole=rng.random() < 0.95)
        event = rng.random()
        if event < 0.6 and under_way:
            ask = under_way.pop(rng.randrange(len(under_way)))
            if rng.random() < 0.1:
                queue.failed(ask)
            else:
                answer(queue, ask, rng.choice((3, 8, 8, 8, 20)), end=10**6)
        elif event < 0.99:
            offsets = give(queue, rng.randrange(1, 40))
            assert offsets == list(range(at, at + len(offsets)))
            at += len(offsets)
            seen += len(offsets)
            assert queue.given == at
        else:
            at = rng.randrange(5_000)
            queue.seek(GroupOffset(at))
    queue.let_go()
    assert cache.size_bytes == 0
