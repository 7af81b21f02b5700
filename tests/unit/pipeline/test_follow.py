"""A stream's driver side on a cluster that is a table: where it begins, how far it goes, what it notices."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import cast

import pytest

from bolide.model.offsets import MessageQueue
from bolide.pipeline.cluster import Cluster
from bolide.pipeline.errors import LogRolledBack, OffsetsExpired, QueueRecreated
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
        self.asked_marks = 0

    async def queues(self) -> list[MessageQueue]:
        return sorted(self.times)

    async def ends(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        return {
            queue: Ends(self.firsts[queue], len(self.times[queue])) for queue in queues if queue in self.times
        }

    async def offsets_at(self, moments_ms: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
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

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        self.committed.update(offsets)


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
    assert end == {ONE: Place(3, Mark(30, 3000)), TWO: Place(1, Mark(15, 1500))}
    assert stream.ranges(start, end) == [(0, 0, 3), (1, 0, 1)]
    assert stream.advance(end) == end
    assert stream.ranges(end, end) == []
    table.times[TWO].append(40)
    later = stream.advance(end)
    assert stream.ranges(end, later) == [(1, 1, 2)]
    assert later[ONE] == end[ONE]


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


def test_a_queue_that_comes_later_is_read_from_its_beginning() -> None:
    """Also with startingOffsets=latest, as with Kafka: what came before it was noticed would be lost otherwise."""
    table = Table(one=[10])
    del table.times[TWO]
    stream = Stream(table, startingOffsets="latest")
    start = stream.begin()
    table.times[TWO] = []
    assert stream.advance(start) == start
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


# ---- a queue that is not what it was ---------------------------------------------------------------------------


def left_at(table: Table) -> Places:
    """The places of a stream that has read everything."""
    stream = Stream(table)
    return stream.advance(stream.begin())


def test_expired_messages_are_an_error_of_their_own() -> None:
    table = Table(one=[10, 20])
    end = left_at(table)
    table.times[ONE] += [30, 40, 50]
    table.firsts[ONE] = 4
    with pytest.raises(OffsetsExpired, match=r"from offset 2 to before 4 have expired.*fileReservedTime"):
        Stream(table).advance(end)
    stream = Stream(table, failOnDataLoss="false")
    assert stream.ranges(end, stream.advance(end)) == [(0, 4, 5)]


@pytest.mark.parametrize("times", [[70], [70, 80], [70, 80, 90]])
def test_a_topic_made_anew_is_told_by_its_messages(times: list[int]) -> None:
    """Whether it is shorter than before, as long, or longer: with as many messages it takes one more to notice."""
    table = Table(one=[10, 20])
    end = left_at(table)
    table.times[ONE] = times
    if len(times) == 2:
        assert Stream(table).advance(end) == end
        table.times[ONE] = times = [*times, 85]
    with pytest.raises(QueueRecreated, match=r"deleted and made again.*another checkpointLocation"):
        Stream(table).advance(end)
    stream = Stream(table, failOnDataLoss="false")
    after = stream.advance(end)
    assert stream.ranges(end, after) == [(0, 0, len(times))]
    assert stream.advance(after) == after


def test_a_queue_is_looked_at_again_while_a_batch_waits_for_its_minimum() -> None:
    """It was what it was when the batch began to wait, and is another when the batch begins."""
    table = Table(one=[10, 20])
    stream = Stream(table, Held(), minOffsetsPerTrigger="3", maxTriggerDelay="5s")
    end = stream.advance(stream.begin())
    table.times[ONE] += [30]
    assert stream.advance(end) == end
    table.times[ONE] = [70, 80, 90, 95, 99]
    with pytest.raises(QueueRecreated):
        stream.advance(end)


def test_a_topic_made_anew_and_still_empty_is_told_too() -> None:
    table = Table(one=[10, 20])
    end = left_at(table)
    table.times[ONE] = []
    with pytest.raises(QueueRecreated):
        Stream(table).advance(end)
    stream = Stream(table, failOnDataLoss="false")
    assert offsets(stream.advance(end)) == [0, 0]


@pytest.mark.parametrize(
    ("times", "fresh"),
    [([10, 20], []), ([10, 20, 70], [(0, 2, 3)]), ([10, 20, 70, 80, 90], [(0, 2, 5)])],
)
def test_a_log_that_lost_its_end_is_told_and_only_what_is_new_is_read(
    times: list[int], fresh: list[tuple[int, int, int]]
) -> None:
    table = Table(one=[10, 20, 30, 40])
    end = left_at(table)
    table.times[ONE] = times
    with pytest.raises(LogRolledBack, match=r"lost the end of its log.*failOnDataLoss=false"):
        Stream(table).advance(end)
    stream = Stream(table, failOnDataLoss="false")
    after = stream.advance(end)
    assert stream.ranges(end, after) == fresh
    assert after[ONE].offset == len(times)


def test_a_batch_that_is_planned_again_after_a_restart_is_checked_as_well() -> None:
    """Spark asks for the ranges of the last batch without asking for offsets first."""
    table = Table(one=[10, 20])
    start = left_at(table)
    table.times[ONE] += [30]
    end = left_at(table)
    assert Stream(table).ranges(start, end) == [(0, 2, 3)]
    table.times[ONE] = [70, 80, 90]
    with pytest.raises(QueueRecreated):
        Stream(table).ranges(start, end)
