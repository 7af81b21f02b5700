"""A queue that is not what it was when a stream left it: what the driver side notices, and where it goes on."""

import asyncio
from dataclasses import replace

import pytest

from bolide.pipeline.errors import LogRolledBack, OffsetsExpired, QueueRecreated
from bolide.pipeline.places import Place, Places
from tests.unit.pipeline.test_follow import ONE, TWO, Held, Stream, Table, offsets


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


@pytest.mark.parametrize("first", [3, 5])
def test_a_queue_that_comes_later_and_has_lost_its_beginning_is_told(
    first: int, caplog: pytest.LogCaptureFixture
) -> None:
    """As with Kafka, whether the queue has something left or not: it was to be read from its beginning."""
    table = Table(one=[10])
    del table.times[TWO]
    end = left_at(table)
    table.times[TWO], table.firsts[TWO] = [11, 12, 13, 14, 15], first
    with pytest.raises(
        OffsetsExpired, match=rf"orders@broker-a:1: .* from offset 0 to before {first} have expired"
    ):
        Stream(table).advance(end)
    stream = Stream(table, failOnDataLoss="false")
    after = stream.advance(end)
    assert f"from offset 0 to before {first} have expired" in caplog.text
    assert stream.ranges(end, after) == ([(1, 3, 5)] if first == 3 else [])
    caplog.clear()
    assert Stream(table).advance(after) == after
    table.times[TWO].append(16)
    assert offsets(Stream(table).advance(after)) == [1, 6]
    assert caplog.messages == []


def test_a_queue_that_is_new_to_a_planned_batch_and_expires_before_it_runs_is_told() -> None:
    table = Table(one=[10])
    del table.times[TWO]
    start = left_at(table)
    table.times[TWO] = [11, 12, 13]
    end = Stream(table).advance(start)
    table.firsts[TWO] = 2
    with pytest.raises(OffsetsExpired, match="from offset 0 to before 2 have expired"):
        Stream(table).ranges(start, end)
    assert Stream(table, failOnDataLoss="false").ranges(start, end) == [(1, 2, 3)]


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


@pytest.mark.parametrize(
    ("times", "steps"),
    [([70, 80, 90, 95, 99], [(0, 0, 2), (0, 2, 4), (0, 4, 5)]), ([5, 70, 80, 90], [(0, 1, 3), (0, 3, 4)])],
)
def test_a_batch_that_ends_at_the_offset_of_the_queue_before_is_a_batch(
    times: list[int], steps: list[tuple[int, int, int]]
) -> None:
    """A topic made anew, or a log that lost its end, is read on also when the limit ends a batch just there."""
    table = Table(one=[10, 20] if times[0] > 20 else [5, 10, 20])
    end = left_at(table)
    table.times[ONE] = times
    stream = Stream(table, maxOffsetsPerTrigger="2", failOnDataLoss="false")
    asyncio.run(stream.follower.fix_target())
    read: list[tuple[int, int, int]] = []
    while (following := stream.advance(end)) != end:
        read += stream.ranges(end, following)
        end = following
    assert read == steps


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
    assert [one for one in stream.ranges(end, after) if one[1] < one[2]] == fresh
    assert after[ONE].offset == len(times)


def test_a_batch_that_is_planned_again_after_a_restart_is_checked_as_well() -> None:
    """Spark asks for the ranges of the last batch without asking for offsets first."""
    table = Table(one=[10, 20])
    start = left_at(table)
    table.times[ONE] += [30]
    end = Stream(table).advance(start)
    assert Stream(table).ranges(start, end) == [(0, 2, 3)]
    table.times[ONE] = [70, 80, 90]
    with pytest.raises(QueueRecreated):
        Stream(table).ranges(start, end)


def planned_batch(table: Table, *times: int) -> tuple[Places, Places]:
    """A batch of which the offsets are written down, and that has not run: with what comes at these times."""
    start = left_at(table)
    table.times[ONE] += times
    return start, Stream(table).advance(start)


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_topic_made_anew_under_a_planned_batch_is_read_once(begins_anew: bool) -> None:
    """The batch has nothing of it, because the next one has all of it."""
    table = Table(one=[] if begins_anew else [10, 20])
    start, end = planned_batch(table, 30, 40)
    table.times[ONE] = [70, 80, 90, 95, 99]
    with pytest.raises(QueueRecreated):
        Stream(table).ranges(start, end)
    stream = Stream(table, failOnDataLoss="false")
    assert [first == last for _, first, last in stream.ranges(start, end)] == [True]
    after = stream.advance(end)
    assert stream.ranges(end, after) == [(0, 0, 5)]


def test_a_log_that_lost_its_end_under_a_planned_batch_is_read_once() -> None:
    table = Table(one=[10, 20])
    start, end = planned_batch(table, 30, 40)
    table.times[ONE] = [10, 20, 30, 70, 80, 90]
    with pytest.raises(LogRolledBack):
        Stream(table).ranges(start, end)
    stream = Stream(table, failOnDataLoss="false")
    assert stream.ranges(start, end) == [(0, 2, 3)]
    assert stream.ranges(end, stream.advance(end)) == [(0, 3, 6)]


def test_a_place_without_a_mark_in_a_topic_made_anew_goes_on_at_its_beginning() -> None:
    """The stream began where the queue began, and had nothing before that to remember."""
    table = Table(one=[10, 20, 30, 40])
    table.firsts[ONE] = 4
    start = Stream(table).begin()
    assert start[ONE] == Place(4)
    table.times[ONE], table.firsts[ONE] = [70, 80], 0
    with pytest.raises(QueueRecreated):
        Stream(table).advance(start)
    stream = Stream(table, failOnDataLoss="false")
    assert stream.ranges(start, stream.advance(start)) == [(0, 0, 2)]


@pytest.mark.parametrize("is_written_down", [True, False])
def test_a_log_that_lost_its_end_before_the_plan_and_again_before_the_batch_runs_loses_nothing_more(
    is_written_down: bool,
) -> None:
    """Whether the plan says where it begins, or was made by a version that did not write that down."""
    table = Table(one=[10, 20, 30, 40])
    start = left_at(table)
    table.times[ONE] = [10, 20, 70, 80, 90, 95]
    end = Stream(table, failOnDataLoss="false").advance(start)
    if not is_written_down:
        start, end = as_of_earlier_versions(start), as_of_earlier_versions(end)
    table.times[ONE] = [10, 20, 70, 80, 90, 97, 98]
    stream = Stream(table, failOnDataLoss="false")
    assert stream.ranges(start, end) == [(0, 2, 5)]
    assert stream.ranges(end, stream.advance(end)) == [(0, 5, 7)]


def as_of_earlier_versions(places: Places) -> Places:
    return {queue: replace(place, begin=None) for queue, place in places.items()}


# ---- tasks keep their numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_written_down", [True, False])
def test_a_batch_planned_again_has_the_same_tasks_though_messages_have_expired(is_written_down: bool) -> None:
    """A sink knows by the number of a task what an attempt before has written."""
    table = Table(one=list(range(1, 9)), two=[1, 2, 3, 4])
    stream = Stream(table, maxRecordsPerPartition="3", failOnDataLoss="false")
    start = stream.begin()
    end = stream.advance(start)
    if not is_written_down:
        end = as_of_earlier_versions(end)
    tasks = [(0, 0, 2), (0, 2, 5), (0, 5, 8), (1, 0, 2), (1, 2, 4)]
    assert stream.ranges(start, end) == tasks
    table.firsts[ONE] = 6
    again = Stream(table, maxRecordsPerPartition="3", failOnDataLoss="false")
    assert again.ranges(start, end) == [(0, 6, 6), (0, 6, 6), (0, 6, 8), (1, 0, 2), (1, 2, 4)]
    table.firsts[ONE] = 8
    assert again.ranges(start, end) == [(0, 8, 8), (0, 8, 8), (0, 8, 8), (1, 0, 2), (1, 2, 4)]
    table.times[ONE], table.firsts[ONE] = [50], 0
    assert again.ranges(start, end)[3:] == tasks[3:]
    assert all(first == last for _, first, last in again.ranges(start, end)[:3])


def test_a_first_batch_run_again_has_the_same_tasks_wherever_the_stream_would_begin_by_now() -> None:
    """Spark keeps the end of that batch alone, and asks for its beginning again."""
    table = Table(one=list(range(1, 9)), two=[1, 2, 3, 4])
    stream = Stream(table, maxRecordsPerPartition="3")
    end = stream.advance(stream.begin())
    assert stream.ranges(stream.begin(), end) == [(0, 0, 2), (0, 2, 5), (0, 5, 8), (1, 0, 2), (1, 2, 4)]
    table.firsts[ONE] = 6
    again = Stream(table, maxRecordsPerPartition="3")
    with pytest.raises(OffsetsExpired, match=r"orders@broker-a:0: .* from offset 0 to before 6 have expired"):
        again.ranges(again.begin(), end)
    again = Stream(table, maxRecordsPerPartition="3", failOnDataLoss="false")
    assert again.ranges(again.begin(), end) == [(0, 6, 6), (0, 6, 6), (0, 6, 8), (1, 0, 2), (1, 2, 4)]


@pytest.mark.parametrize("is_away", [True, False])
def test_a_first_batch_run_again_has_no_queue_more(is_away: bool) -> None:
    """Of one it had nothing, because nothing had come there, or because its broker was away just then."""
    by_queue = '{"orders": {"broker-a": {"0": -1, "1": -2}}}'
    table = Table(one=[10, 20], two=[15])
    stream = Stream(table, startingOffsets=by_queue)
    start = stream.begin()
    if is_away:
        table.silent = {ONE}
    end = stream.advance(start)
    table.silent.clear()
    table.times[ONE].append(30)
    again = Stream(table, startingOffsets=by_queue)
    assert again.ranges(again.begin(), end) == [(1, 0, 1)]
    later = again.advance(end)
    assert again.ranges(end, later) == [(0, 2, 3)]
    table.times[TWO].append(40)
    assert again.ranges(later, again.advance(later)) == [(1, 1, 2)]


def test_a_first_batch_run_again_after_the_topic_was_made_anew_has_nothing_of_it() -> None:
    table = Table(one=[10, 20])
    stream = Stream(table)
    end = stream.advance(stream.begin())
    table.times[ONE] = [70, 80, 90]
    strict = Stream(table)
    with pytest.raises(QueueRecreated):
        strict.ranges(strict.begin(), end)
    again = Stream(table, failOnDataLoss="false")
    assert all(first == last for _, first, last in again.ranges(again.begin(), end))
    assert again.ranges(end, again.advance(end)) == [(0, 0, 3)]


@pytest.mark.parametrize("is_new", [True, False])
def test_a_queue_that_is_new_or_made_anew_keeps_its_tasks_though_messages_have_expired(is_new: bool) -> None:
    """Where the batch before ended says nothing of where this one begins in it."""
    table = Table(one=[1], two=[2, 3, 4])
    if is_new:
        del table.times[TWO]
    start = left_at(table)
    table.times[ONE].append(10)
    table.times[TWO] = [71, 72, 73, 74]
    stream = Stream(table, maxRecordsPerPartition="2", failOnDataLoss="false")
    end = stream.advance(start)
    assert stream.ranges(start, end) == [(0, 1, 2), (1, 0, 2), (1, 2, 4)]
    table.firsts[TWO] = 3
    again = Stream(table, maxRecordsPerPartition="2", failOnDataLoss="false")
    assert again.ranges(start, end) == [(0, 1, 2), (1, 3, 3), (1, 3, 4)]
