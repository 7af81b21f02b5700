"""Which offsets of which queues a read takes, decided on the driver.

The ends of a batch are fixed here, so a read that is computed again gives the same rows although producers go on.  A
range that the queue no longer has, or does not have yet, is a `DataLost` error or, when the user says so, a warning and
a shorter range.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.bounds import EARLIEST, LATEST, Bound
from bolide.pipeline.cluster import Cluster, listed
from bolide.pipeline.errors import QueueRecreated
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.pushed import EVERYTHING, Pushed
from bolide.pipeline.ranges import Ends, QueueRange, fit_range, report_loss, split_ranges


class Asking(Protocol):
    """What is needed of a `Cluster` here."""

    async def offsets_at(
        self, moments_ms: Mapping[MessageQueue, int], *, is_end: bool = False
    ) -> dict[MessageQueue, int]: ...


async def plan_read(options: ReadOptions, pushed: Pushed = EVERYTHING) -> list[QueueRange]:
    """The ranges that tasks of a batch read, one task each."""
    async with Cluster(options) as cluster:
        queues = await cluster.queues()
        ends = await cluster.ends(queues)
        begins = await resolve(cluster, options.start, ends, options)
        stops = await resolve(cluster, options.end, ends, options)
        fail = options.fail_on_data_loss
        ranges = [
            fit_range(QueueRange(queue, begins[queue], stops[queue]), ends[queue], fail=fail)
            for queue in queues
        ]
        ranges = await _narrow(cluster, ranges, pushed)
        sizes = None if options.cutting.bytes_max is None else await cluster.sizes(ranges)
    return split_ranges(ranges, options.cutting, sizes)


async def _narrow(cluster: Asking, ranges: list[QueueRange], pushed: Pushed) -> list[QueueRange]:
    """What Spark's filters leave of the ranges."""
    ranges = [one for one in ranges if one.length > 0 and pushed.has(one.queue)]
    lows = dict.fromkeys((one.queue for one in ranges), pushed.offset_min or 0)
    highs = {one.queue: one.end if pushed.offset_max is None else pushed.offset_max + 1 for one in ranges}
    if pushed.time_min_ms is not None:
        found = await cluster.offsets_at(dict.fromkeys(lows, pushed.time_min_ms))
        lows = {queue: max(low, found[queue]) for queue, low in lows.items()}
    if pushed.time_max_ms is not None:
        found = await cluster.offsets_at(dict.fromkeys(highs, pushed.time_max_ms + 1), is_end=True)
        highs = {queue: min(high, found[queue]) for queue, high in highs.items()}
    return [
        replace(one, begin=max(one.begin, lows[one.queue]), end=min(one.end, highs[one.queue]))
        for one in ranges
    ]


async def resolve(
    cluster: Asking, bound: Bound, ends: Mapping[MessageQueue, Ends], options: ReadOptions
) -> dict[MessageQueue, int]:
    """The offset of one side of a read in every queue."""
    _check_named(bound, list(ends), options)
    moments = {queue: moment for queue in ends if (moment := bound.moment_of(queue)) is not None}
    if moments:
        found = await cluster.offsets_at(moments, is_end=bound is options.end)
        if bound is options.start and options.start_without_match == "error":
            _check_match(bound, found, ends)
        return {queue: ends[queue].clamp(found[queue]) for queue in ends}
    words = {EARLIEST: lambda one: one.first, LATEST: lambda one: one.last}
    wanted = {queue: bound.offset_of(queue) for queue in ends}
    return {queue: words[at](ends[queue]) if at in words else at for queue, at in wanted.items()}


def _check_match(bound: Bound, found: Mapping[MessageQueue, int], ends: Mapping[MessageQueue, Ends]) -> None:
    """Kafka's word for it is the strategy `error`."""
    if without := sorted(queue for queue, offset in found.items() if offset >= ends[queue].last):
        raise ConfigError(
            f"{bound.name}: nothing was stored then or later in {listed(without)};"
            " startingOffsetsByTimestampStrategy=latest begins there with what comes next"
        )


def _check_named(bound: Bound, queues: list[MessageQueue], options: ReadOptions) -> None:
    """What is said by queue must be for all queues and for no others: a forgotten queue is a silent gap."""
    if (named := bound.named) is None or bound.timestamp_ms is not None:
        return
    if missing := named.unnamed(queues):
        hint = "" if bound.by_queue is None else "; give -2 (earliest) or -1 (latest) for it"
        raise ConfigError(f"{bound.name} leaves out {listed(missing)}{hint}")
    if ambiguous := named.ambiguous(queues):
        raise ConfigError(f"{bound.name}: several brokers have the topic, so say which: {listed(ambiguous)}")
    if unknown := named.unknown(queues):
        gone = QueueRecreated(f"{bound.name} names queues that are not there: {listed(unknown)}")
        report_loss(gone, fail=options.fail_on_data_loss)
