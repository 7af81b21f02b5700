"""A stream's driver side on a cluster that is a table: where it begins, how far it goes."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import cast

import pytest

from bolide.model.errors import ConfigError, ConnectionLost
from bolide.model.offsets import MessageQueue
from bolide.pipeline.cluster import Cluster
from bolide.pipeline.errors import OffsetsExpired
from bolide.pipeline.follow import Follower
from bolide.pipeline.option_table import Use
from bolide.pipeline.options import parse_options
from bolide.pipeline.places import Mark, Place, Places
from bolide.pipeline.ranges import Ends, QueueRange

ONE, TWO = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)


class Table:
    """Queues as lists of the times at which messages were stored; the log offset follows from the time."""

    def __init__(self, **queues: list[int]) -> None:
        self.times = {ONE: queues.get("one", []), TWO: queues.get("two", [])}
        self.firsts = dict.fromkeys(self.times, 0)
        self.committed: dict[MessageQueue, int] = {}
        self.silent: set[MessageQueue] = set()
        self.assigned: set[MessageQueue] = set()
        self.asked_marks = 0

    async def queues(self, known: Collection[MessageQueue] = ()) -> list[MessageQueue]:
        if absent := self.assigned - {*self.times, *known}:
            raise ConfigError(f"nobody has {absent}")
        return sorted(self.times)

    async def ends(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        if away := [queue for queue in queues if queue in self.silent or queue not in self.times]:
            raise ConnectionLost(f"nobody has {away}")
        return {queue: Ends(self.firsts[queue], len(self.times[queue])) for queue in queues}

    async def ends_there(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        return await self.ends([queue for queue in queues if queue not in self.silent])

    async def offsets_at(
        self, moments_ms: Mapping[MessageQueue, int], *, is_end: bool = False
    ) -> dict[MessageQueue, int]:
        return {
            queue: next(
                (at for at, time in enumerate(self.times[queue]) if time >= moment), len(self.times[queue])
            )
            for queue, moment in moments_ms.items()
        }

    async def marks(self, offsets: Mapping[MessageQueue, int]) -> dict[MessageQueue, Mark | None]:
        self.asked_marks += len(offsets)
        return {queue: self._mark(queue, at) for queue, at in offsets.items()}

    def _mark(self, queue: MessageQueue, at: int) -> Mark | None:
        if not self.firsts[queue] <= at < len(self.times[queue]):
            return None
        return Mark(self.times[queue][at], self.times[queue][at] * 100)

    async def sizes(self, ranges: Iterable[QueueRange]) -> dict[MessageQueue, float]:
        return {one.queue: 100.0 for one in ranges if one.length}

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> list[MessageQueue]:
        told = {queue: at for queue, at in offsets.items() if queue not in self.silent}
        self.committed.update(told)
        return list(told)


class Held:
    ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class Stream:
    """The calls that Spark makes, one after the other."""

    def __init__(self, table: Table, clock: Held | None = None, **options: str) -> None:
        given = {"nameserver": "h:1", "subscribe": "orders", "startingOffsets": "earliest"} | options
        self.table = table
        parsed = parse_options(given, Use.STREAM)
        self.follower = Follower(cast(Cluster, table), parsed, clock or Held())

    def begin(self) -> Places:
        return asyncio.run(self.follower.begin())

    def advance(self, start: Places, *, limited: bool = True) -> Places:
        return asyncio.run(self.follower.advance(start, None, limited=limited))

    def ranges(self, start: Places, end: Places) -> list[tuple[int, int, int]]:
        return [
            (one.queue.queue_id, one.begin, one.end) for one in asyncio.run(self.follower.ranges(start, end))
        ]


def offsets(places: Places) -> list[int]:
    return [places[queue].offset for queue in sorted(places)]


def test_a_stream_reads_everything_once_in_steps() -> None:
    table = Table(one=[10, 20, 30], two=[15])
    stream = Stream(table)
    start = stream.begin()
    assert offsets(start) == [0, 0]
    end = stream.advance(start)
    assert end == {ONE: Place(3, Mark(30, 3000), begin=0), TWO: Place(1, Mark(15, 1500), begin=0)}
    assert stream.ranges(start, end) == [(0, 0, 3), (1, 0, 1)]
    assert stream.advance(end) == end
    assert stream.ranges(end, end) == []
    table.times[TWO].append(40)
    later = stream.advance(end)
    assert stream.ranges(end, later) == [(1, 1, 2)]
    assert later == {ONE: end[ONE], TWO: Place(2, Mark(40, 4000))}


def test_a_first_batch_has_what_came_before_it_runs_when_it_begins_with_the_latest() -> None:
    """Spark asks for the beginning when it plans the batch and again when it runs it: another one by then."""
    table = Table(one=[10, 20], two=[15])
    stream = Stream(table, startingOffsets="latest")
    start = stream.begin()
    table.times[ONE].append(30)
    end = stream.advance(start)
    assert stream.ranges(stream.begin(), end) == [(0, 2, 3)]
    table.times[TWO].append(40)
    assert stream.ranges(end, stream.advance(end)) == [(1, 1, 2)]


def test_a_first_batch_without_messages_begins_a_stream_that_reads_all_that_comes() -> None:
    table = Table(one=[10, 20])
    stream = Stream(table, startingOffsets="latest")
    start = stream.begin()
    end = stream.advance(start)
    assert offsets(end) == offsets(start)
    table.times[ONE].append(30)
    restarted = Stream(table, startingOffsets="latest")
    assert all(first == last for _, first, last in restarted.ranges(restarted.begin(), end))
    later = restarted.advance(end)
    assert restarted.ranges(end, later) == [(0, 2, 3)]
    table.times[TWO].append(40)
    assert restarted.ranges(later, restarted.advance(later)) == [(1, 0, 1)]


@pytest.mark.parametrize("first_rows", [3, 0])
@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": '{"orders": {"broker-a": {"0": -1}}}'},
        {"startingOffsetsByTimestamp": '{"orders": {"broker-a": {"0": 25}}}'},
    ],
    ids=["offsets", "times"],
)
def test_a_first_batch_that_is_planned_is_run_again_from_where_it_began_once_the_option_has_its_way_out(
    given: dict[str, str], first_rows: int
) -> None:
    """What is said by queue is held against the queues whenever Spark asks, and by then there may be more of them."""
    table = Table(one=[10, 20])
    del table.times[TWO]
    stream = Stream(table, None, **given | {"startingOffsetsByTimestampStrategy": "latest"})
    start = stream.begin()
    table.times[ONE] += [30] * first_rows
    end = stream.advance(start)
    table.times[TWO], table.firsts[TWO] = [15], 0
    (option,) = given
    way_out = (
        rf"{option} leaves out .* has a first batch already, startingOffsets=earliest in place of {option}"
    )
    with pytest.raises(ConfigError, match=way_out):
        Stream(table, None, **given).begin()
    restarted = Stream(table)
    again = [part for part in restarted.ranges(restarted.begin(), end) if part[1] < part[2]]
    assert again == [(0, 2, 2 + first_rows)] * (first_rows > 0)
    assert restarted.ranges(end, restarted.advance(end)) == [(1, 0, 1)]


def test_nothing_new_asks_for_no_message() -> None:
    table = Table(one=[10])
    stream = Stream(table)
    end = stream.advance(stream.begin())
    asked = table.asked_marks
    assert stream.advance(end) == end
    assert table.asked_marks == asked


def test_a_new_stream_begins_where_it_is_told() -> None:
    table = Table(one=[10, 20, 30], two=[15, 25])
    assert offsets(Stream(table, startingOffsets="latest").begin()) == [3, 2]
    assert offsets(Stream(table, startingTimestamp="20").begin()) == [1, 1]
    by_queue = '{"orders": {"broker-a": {"0": 2, "1": -1}}}'
    assert offsets(Stream(table, startingOffsets=by_queue).begin()) == [2, 2]
    times = '{"orders": {"broker-a": {"0": 30, "1": 1}}}'
    assert offsets(Stream(table, startingOffsetsByTimestamp=times).begin()) == [2, 0]


def test_a_new_stream_at_offsets_that_have_expired_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """As a batch does that begins there; a word or a time never means what is not there any more."""
    table = Table(one=[10, 20, 30, 40], two=[15, 25])
    table.firsts[ONE] = 3
    by_queue = '{"orders": {"broker-a": {"0": 1, "1": 0}}}'
    with pytest.raises(OffsetsExpired, match=r"orders@broker-a:0: the messages from offset 1 to before 3"):
        Stream(table, startingOffsets=by_queue).begin()
    assert offsets(Stream(table, startingOffsets=by_queue, failOnDataLoss="false").begin()) == [3, 0]
    assert "from offset 1 to before 3 have expired" in caplog.text
    assert offsets(Stream(table).begin()) == [3, 0]
    assert offsets(Stream(table, startingTimestamp="5").begin()) == [3, 0]


def test_a_queue_that_comes_later_is_read_from_its_beginning() -> None:
    """Also with startingOffsets=latest, as with Kafka: what came before it was noticed would be lost otherwise."""
    table = Table(one=[10])
    del table.times[TWO]
    stream = Stream(table, startingOffsets="latest")
    start = stream.begin()
    table.times[TWO] = []
    assert offsets(stream.advance(start)) == offsets(start)
    table.times[TWO] = [11, 12]
    end = stream.advance(start)
    assert offsets(end) == [1, 2]
    assert stream.ranges(start, end) == [(1, 0, 2)]


def test_a_queue_that_is_gone_for_a_while_is_read_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(one=[10], two=[11, 12])
    stream = Stream(table)
    start = stream.begin()
    times = table.times.pop(TWO)
    end = stream.advance(start)
    assert stream.advance(end) == end
    assert offsets(end) == [1, 0]
    assert caplog.text.count("are read when they are back: orders@broker-a:1") == 1
    table.times[TWO] = times
    last = stream.advance(end)
    assert stream.ranges(end, last) == [(1, 0, 2)]


def test_queues_of_a_broker_that_does_not_answer_wait_for_it(caplog: pytest.LogCaptureFixture) -> None:
    table = Table(one=[10], two=[11, 12])
    stream = Stream(table)
    start = stream.begin()
    table.silent = {TWO}
    end = stream.advance(start)
    assert stream.ranges(start, end) == [(0, 0, 1)]
    assert "are read when they are back: orders@broker-a:1" in caplog.text
    table.times[ONE].append(13)
    later = stream.advance(end)
    assert stream.ranges(end, later) == [(0, 1, 2)]
    assert stream.advance(later) == later
    assert caplog.text.count("are read when they are back") == 1
    table.silent.clear()
    assert stream.ranges(later, stream.advance(later)) == [(1, 0, 2)]


def test_an_assigned_queue_must_be_there_only_until_the_stream_has_it() -> None:
    """Name servers forget a broker that is away; a queue that is assigned by mistake never was there."""
    table = Table(one=[10], two=[11, 12])
    table.assigned = {ONE, TWO}
    stream = Stream(table)
    start = stream.begin()
    times = table.times.pop(TWO)
    end = stream.advance(start)
    assert offsets(end) == [1, 0]
    with pytest.raises(ConfigError):
        Stream(table).begin()
    with pytest.raises(ConfigError):
        asyncio.run(Stream(table).follower.fix_target())
    table.times[TWO] = times
    assert stream.ranges(end, stream.advance(end)) == [(1, 0, 2)]
    table.assigned.add(MessageQueue("orders", "broker-a", 9))
    with pytest.raises(ConfigError, match="queue_id=9"):
        Stream(table).advance(end)


# ---- limits ----------------------------------------------------------------------------------------------------


def test_a_batch_takes_what_it_may_and_all_of_it_when_spark_says_so() -> None:
    table = Table(one=list(range(1, 91)), two=list(range(1, 11)))
    stream = Stream(table, maxOffsetsPerTrigger="10")
    start = stream.begin()
    assert offsets(stream.advance(start)) == [9, 1]
    assert offsets(stream.advance(start, limited=False)) == [90, 10]
    assert offsets(Stream(table, maxBytesPerTrigger="1000").advance(start)) == [9, 1]


def test_a_batch_waits_for_its_minimum_or_its_time() -> None:
    clock, table = Held(), Table(one=[1])
    stream = Stream(table, clock, minOffsetsPerTrigger="3", maxTriggerDelay="5s")
    start = stream.begin()
    first = stream.advance(start)
    assert offsets(first) == [1, 0]  # the first does not wait
    table.times[ONE] += [2, 3]
    assert stream.advance(first) == first
    clock.ms = 4_999
    assert stream.advance(first) == first
    clock.ms = 5_000
    second = stream.advance(first)
    assert offsets(second) == [3, 0]
    table.times[ONE] += [4, 5, 6]
    assert offsets(stream.advance(second)) == [6, 0]


def test_available_now_ends_where_it_was_when_it_began() -> None:
    """Limits hold, the minimum does not, and what comes meanwhile waits for the next run: messages and queues."""
    table = Table(one=[1, 2, 3])
    del table.times[TWO]
    stream = Stream(table, maxOffsetsPerTrigger="2", minOffsetsPerTrigger="2")
    asyncio.run(stream.follower.fix_target())
    start = stream.begin()
    table.times[ONE].append(4)
    table.times[TWO] = [4]
    places = [start]
    while (following := stream.advance(places[-1])) != places[-1]:
        places.append(following)
    assert [place[ONE].offset for place in places] == [0, 2, 3]
    assert all(place.get(TWO, Place(0)).offset == 0 for place in places)


def test_available_now_leaves_a_queue_that_came_since_to_the_next_run_whatever_it_has_lost() -> None:
    table = Table(one=[1])
    del table.times[TWO]
    stream = Stream(table)
    asyncio.run(stream.follower.fix_target())
    start = stream.begin()
    table.times[TWO], table.firsts[TWO] = [4, 5], 1
    end = stream.advance(start)
    assert list(end) == [ONE]
    assert stream.advance(end) == end
    with pytest.raises(OffsetsExpired, match=r"orders@broker-a:1: .* from offset 0 to before 1"):
        Stream(table).advance(end)


def test_available_now_ends_without_a_broker_that_was_forgotten_before_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody can tell it from one that is gone for good, and without that a run must be able to end."""
    table = Table(one=[1], two=[2])
    first = Stream(table)
    end = first.advance(first.begin())
    table.times[ONE].append(3)
    times = [*table.times.pop(TWO), 4]
    stream = Stream(table)
    asyncio.run(stream.follower.fix_target())
    last = stream.advance(end)
    assert stream.ranges(end, last) == [(0, 1, 2)]
    assert stream.advance(last) == last
    assert "are read when they are back: orders@broker-a:1" in caplog.text
    table.times[TWO] = times
    assert Stream(table).ranges(last, Stream(table).advance(last)) == [(1, 1, 2)]


@pytest.mark.parametrize("is_named", [True, False])
def test_available_now_does_not_end_while_a_queue_that_is_away_has_more(is_named: bool) -> None:
    """Whether the name servers still name the broker of it or not.  Who waits for the end would take it for done."""
    table = Table(one=[1], two=[2, 3])
    stream = Stream(table, maxOffsetsPerTrigger="2")
    asyncio.run(stream.follower.fix_target())
    first = stream.advance(stream.begin())
    assert offsets(first) == [1, 1]
    times = table.times[TWO]
    if is_named:
        table.silent = {TWO}
    else:
        del table.times[TWO]
    with pytest.raises(ConnectionLost, match=r"nobody has .*queue_id=1"):
        stream.advance(first)
    table.silent.clear()
    table.times[TWO] = times
    last = stream.advance(first)
    assert offsets(last) == [1, 2]
    table.silent = {TWO}
    assert stream.advance(last) == last  # nothing is wanted of it any more


def test_tasks_are_cut_by_records_and_bytes() -> None:
    table = Table(one=[1, 2, 3, 4])
    for option in ({"maxRecordsPerPartition": "2"}, {"maxBytesPerPartition": "200"}, {"minPartitions": "2"}):
        stream = Stream(table, None, **option)
        start = stream.begin()
        assert stream.ranges(start, stream.advance(start)) == [(0, 0, 2), (0, 2, 4)]


def test_a_group_s_progress_is_told_as_soon_as_a_batch_is_done_if_it_was_named() -> None:
    """Spark says that a batch is done when the next one begins, which may be never; it asks for offsets before."""
    no_options: dict[str, str] = {}
    for options, told in (
        (no_options, [{}, {}]),
        ({"consumerGroup": "etl"}, [{ONE: 0, TWO: 0}, {ONE: 2, TWO: 0}]),
    ):
        table = Table(one=[1, 2])
        stream = Stream(table, None, **options)
        end = stream.advance(stream.begin())
        seen = [dict(table.committed)]
        assert stream.advance(end) == end
        assert [*seen, table.committed] == told
        table.committed.clear()
        asyncio.run(stream.follower.done(end))
        assert table.committed == {}


def test_progress_that_a_broker_did_not_take_is_told_again() -> None:
    """Also when nothing comes to the queue any more: it would show as waiting for ever."""
    table = Table(one=[1], two=[2])
    stream = Stream(table, consumerGroup="etl")
    end = stream.advance(stream.begin())
    table.silent = {TWO}
    assert stream.advance(end) == end
    assert table.committed == {ONE: 1, TWO: 0}
    table.silent.clear()
    assert stream.advance(end) == end
    assert table.committed == {ONE: 1, TWO: 1}
