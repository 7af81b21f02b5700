"""Which offsets of which queues a batch reads, decided once, on the driver.

The ends are fixed here, so a read that is computed again gives the same rows although producers go on.  A range that
the queue no longer has, or does not have yet, is a `DataLost` error or, when the user says so, a warning and a
shorter range.
"""

import asyncio
import itertools
import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bolide.client.pull import PullConsumer
from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue
from bolide.model.spark_limits import SPARK_TASKS_MAX
from bolide.pipeline.errors import DataLost, OffsetsExpired, QueueRecreated
from bolide.pipeline.options import EARLIEST, LATEST, Bound, ReadOptions

log = logging.getLogger(__name__)

QUEUES_AT_ONCE_MAX = 128
NAMED_MAX = 10


@dataclass(frozen=True)
class QueueRange:
    """Messages of one queue: from `begin` to before `end`."""

    queue: MessageQueue
    begin: int
    end: int

    def __str__(self) -> str:
        return f"{self.queue} [{self.begin}, {self.end})"


def report_loss(loss: DataLost, *, fail: bool) -> None:
    """`failOnDataLoss`, in one place."""
    if fail:
        raise loss
    log.warning("%s", loss)


async def plan_read(options: ReadOptions) -> list[QueueRange]:
    """The ranges that tasks read, one task each."""
    limit = asyncio.Semaphore(QUEUES_AT_ONCE_MAX)
    async with PullConsumer(options.nameserver, group=options.group) as consumer:
        queues = [queue for topic in options.topics for queue in await consumer.queues(topic)]
        if len(queues) > SPARK_TASKS_MAX:
            raise ConfigError(
                f"{len(queues)} queues would be as many tasks, and Spark gets at most {SPARK_TASKS_MAX}:"
                " subscribe to fewer topics at a time"
            )
        _check_named(queues, options)

        async def plan_queue(queue: MessageQueue) -> QueueRange:
            async with limit:
                return await _plan_queue(consumer, queue, options)

        ranges = await asyncio.gather(*map(plan_queue, queues))
    return split_ranges([one for one in ranges if one.begin < one.end], options.min_partitions)


def split_ranges(ranges: list[QueueRange], min_partitions: int) -> list[QueueRange]:
    """Cut the longer ranges so that there are about `min_partitions`; an order of offsets stays inside each."""
    total = sum(one.end - one.begin for one in ranges)
    if len(ranges) >= min_partitions:
        return ranges
    parts: list[QueueRange] = []
    for one in ranges:
        length = one.end - one.begin
        count = min(length, max(1, round(length * min_partitions / total)))
        cuts = [one.begin + length * at // count for at in range(count + 1)]
        parts += [replace(one, begin=begin, end=end) for begin, end in itertools.pairwise(cuts)]
    return parts


def _check_named(queues: list[MessageQueue], options: ReadOptions) -> None:
    """Offsets by queue must be for all queues and for no others: a forgotten queue is a silent gap."""
    for name, bound in (("startingOffsets", options.start), ("endingOffsets", options.end)):
        if bound.by_queue is None:
            continue
        if missing := sorted(set(queues) - set(bound.by_queue)):
            raise ConfigError(f"{name} leaves out {_list(missing)}; give -2 (earliest) or -1 (latest) for it")
        if unknown := sorted(set(bound.by_queue) - set(queues)):
            gone = QueueRecreated(f"{name} names queues that are not there: {_list(unknown)}")
            report_loss(gone, fail=options.fail_on_data_loss)


def _list(queues: Iterable[MessageQueue]) -> str:
    names = [str(queue) for queue in queues]
    return ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} more" if names[NAMED_MAX:] else "")


async def _plan_queue(consumer: PullConsumer, queue: MessageQueue, options: ReadOptions) -> QueueRange:
    first = max(0, await consumer.min_offset(queue))
    last = max(0, await consumer.max_offset(queue))
    begin = await _resolve(consumer, queue, options.start, first, last)
    end = await _resolve(consumer, queue, options.end, first, last)
    return fit_range(QueueRange(queue, begin, end), first, last, fail=options.fail_on_data_loss)


async def _resolve(consumer: PullConsumer, queue: MessageQueue, bound: Bound, first: int, last: int) -> int:
    if bound.timestamp_ms is not None:
        return min(max(await consumer.offset_at(queue, bound.timestamp_ms), first), last)
    offset = bound.everywhere if bound.by_queue is None else bound.by_queue[queue]
    return {EARLIEST: first, LATEST: last}.get(offset, offset)


def fit_range(wanted: QueueRange, first: int, last: int, *, fail: bool) -> QueueRange:
    """The part of a range that the queue, which now reaches from `first` to `last`, really has."""
    if wanted.begin < min(first, wanted.end):
        expired = OffsetsExpired(
            f"{wanted} begins before the queue does: the messages before offset {first} have expired"
        )
        report_loss(expired, fail=fail)
    if max(wanted.begin, wanted.end) > last:
        recreated = QueueRecreated(
            f"{wanted} reaches beyond the end of the queue at {last}: the topic was deleted and made again, "
            "or these are offsets of another topic"
        )
        report_loss(recreated, fail=fail)
    begin = min(max(wanted.begin, first), last)
    return replace(wanted, begin=begin, end=max(begin, min(wanted.end, last)))
