"""Where the messages of a moment begin, with brokers that say it, that say what is nearest, and that say anything."""

import asyncio
import bisect
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide import Message, Producer
from bolide.client.queue_calls import QueueCalls
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.pipeline.cluster import Cluster
from bolide.pipeline.moments import LOOKS_MAX, Stored, first_since
from bolide.pipeline.options import parse_options
from bolide.pipeline.plan import plan_read
from bolide.pipeline.ranges import Ends
from bolide.testing import EmbeddedServer

Times = Sequence[int | None]
"""When the messages of a queue were stored; None is one that cannot be read."""


class Queue:
    """What pulls of one message bring of it."""

    def __init__(self, times: Times, first: int = 0) -> None:
        self.times, self.first = times, first
        self.looks = 0

    async def look(self, offset: int) -> tuple[Stored | None, int]:
        self.looks += 1
        if offset < self.first:
            return None, self.first
        if offset >= len(self.times):
            return None, len(self.times)
        time_ms = self.times[offset]
        return None if time_ms is None else Stored(offset, time_ms), offset + 1

    def first_since(self, moment_ms: int, told: int, *, is_end: bool = False) -> int:
        ends = Ends(self.first, len(self.times))
        return asyncio.run(first_since(moment_ms, told, ends, self.look, is_end=is_end))


def nearest(times: Sequence[int], moment_ms: int) -> int:
    """What Apache's 4.9 says, as its ConsumeQueue.getOffsetInQueueByTime finds it."""
    low, high, before, behind = 0, len(times) - 1, -1, -1
    while low <= high:
        middle = (low + high) // 2
        if times[middle] == moment_ms:
            return middle
        if times[middle] > moment_ms:
            high, behind = middle - 1, middle
        else:
            low, before = middle + 1, middle
    if -1 in (before, behind):
        return max(before, behind, 0)
    return behind if moment_ms - times[before] > times[behind] - moment_ms else before


def sides(times: Times, place: int, moment_ms: int) -> tuple[list[int], list[int]]:
    """Messages of the moment or later that are before a place, and earlier ones that are not."""
    sound = [(at, time) for at, time in enumerate(times) if time is not None]
    late = [at for at, time in sound if at < place and time >= moment_ms]
    return late, [at for at, time in sound if at >= place and time < moment_ms]


@given(st.lists(st.integers(0, 30), max_size=60).map(sorted), st.integers(-1, 31))
def test_the_first_message_of_a_moment_is_found_whatever_is_nearest(times: list[int], moment_ms: int) -> None:
    assert Queue(times).first_since(moment_ms, nearest(times, moment_ms)) == bisect.bisect_left(
        times, moment_ms
    )


@given(
    st.lists(st.integers(0, 9), max_size=60).map(sorted),
    st.integers(-1, 10),
    st.integers(0, 99),
    st.integers(0, 99),
)
def test_no_answer_of_a_broker_makes_it_another_place(
    times: list[int], moment_ms: int, told: int, first: int
) -> None:
    """Also where it names what has expired, or what is not there yet."""
    first = min(first, len(times))
    assert Queue(times, first).first_since(moment_ms, told) == bisect.bisect_left(times, moment_ms, first)


@given(
    st.lists(st.none() | st.integers(0, 9), max_size=60), st.integers(0, 9), st.integers(0, 60), st.booleans()
)
def test_it_ends_within_the_queue_also_where_times_go_back(
    times: Times, moment_ms: int, told: int, is_end: bool
) -> None:
    queue = Queue(times)
    assert 0 <= queue.first_since(moment_ms, told, is_end=is_end) <= len(times)
    assert queue.looks <= (16 if is_end else 8) * LOOKS_MAX


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=60).map(sorted),
    st.sets(st.integers(0, 59), max_size=LOOKS_MAX - 1),
    st.integers(-1, 31),
    st.integers(0, 60),
    st.booleans(),
)
def test_messages_that_cannot_be_read_lose_and_add_no_other(
    times: list[int], unreadable: set[int], moment_ms: int, told: int, is_end: bool
) -> None:
    torn = [None if at in unreadable else time for at, time in enumerate(times)]
    found = Queue(torn).first_since(moment_ms, told, is_end=is_end)
    assert sides(torn, found, moment_ms) == ([], [])


@pytest.mark.parametrize("told", [0, 30, 60, 100], ids=["earliest", "its beginning", "within", "latest"])
@pytest.mark.parametrize("moment_ms", [10, 30, 60, 80, 95, 100])
def test_a_damage_that_is_too_long_to_look_through_takes_nothing_from_a_read(
    moment_ms: int, told: int
) -> None:
    """Neither from one that begins at the moment nor from one that ends there."""
    torn = [None if 30 <= at < 80 else at for at in range(100)]
    begin = Queue(torn).first_since(moment_ms, told)
    late_before, _ = sides(torn, begin, moment_ms)
    assert late_before == []
    end = Queue(torn).first_since(moment_ms, told, is_end=True)
    assert sides(torn, end, moment_ms) == ([], [])


@given(
    st.lists(st.integers(0, 30), max_size=90).map(sorted),
    st.lists(st.tuples(st.integers(0, 89), st.integers(1, 60)), max_size=3),
    st.integers(-1, 31),
    st.integers(0, 90),
)
def test_whatever_is_damaged_a_read_to_a_moment_has_all_that_is_before_it(
    times: list[int], damages: list[tuple[int, int]], moment_ms: int, told: int
) -> None:
    unreadable = {at for begin, length in damages for at in range(begin, begin + length)}
    torn = [None if at in unreadable else time for at, time in enumerate(times)]
    assert sides(torn, Queue(torn).first_since(moment_ms, told), moment_ms)[0] == []
    assert sides(torn, Queue(torn).first_since(moment_ms, told, is_end=True), moment_ms)[1] == []


def test_an_answer_that_is_borne_out_costs_two_looks() -> None:
    queue = Queue(range(1_000_000))
    assert queue.first_since(700_000, 700_000) == 700_000
    assert queue.looks == 2
    assert queue.first_since(700_000, 699_999) == 700_000
    assert queue.looks <= 2 + 2 + 20


def test_a_read_between_two_times_is_the_same_where_the_broker_says_what_is_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"defaultTopicQueueNums": 1}
    with EmbeddedServer(settings=settings) as server, Producer(server.nameserver, group="shop") as producer:
        for number in range(50):
            producer.send(Message("orders", b"%d" % number))
        queue, times = asyncio.run(_stored(server.nameserver))

        async def offset_at(calls: QueueCalls, queue: MessageQueue, timestamp_ms: int) -> QueueOffset:
            return QueueOffset(nearest(times, timestamp_ms))

        monkeypatch.setattr(QueueCalls, "offset_at", offset_at)
        for moment_ms in {*times, times[0] - 5, times[-1] + 1, times[-1] + 5000}:
            at = bisect.bisect_left(times, moment_ms)
            latest = {"startingOffsetsByTimestampStrategy": "latest"}
            since = _planned(server.nameserver, startingTimestamp=str(moment_ms), **latest)
            assert since == [(queue, at, 50)] * (at < 50)
            before = _planned(server.nameserver, endingTimestamp=str(moment_ms))
            assert before == [(queue, 0, at)] * (at > 0)


async def _stored(nameserver: str) -> tuple[MessageQueue, list[int]]:
    """The one queue, and when its messages were stored."""
    async with Cluster(parse_options({"nameserver": nameserver, "subscribe": "orders"})) as cluster:
        (queue,) = await cluster.queues()
        marks = [(await cluster.marks({queue: at}))[queue] for at in range(50)]
    return queue, [mark.store_time_ms for mark in marks if mark is not None]


def _planned(nameserver: str, **given: str) -> list[tuple[MessageQueue, int, int]]:
    options = parse_options({"nameserver": nameserver, "subscribe": "orders"} | given)
    return [(one.queue, one.begin, one.end) for one in asyncio.run(plan_read(options))]
