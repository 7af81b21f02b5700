"""Ranges of queues: what a queue still has of them, and how they are cut into tasks.  Pure; asks nobody."""

import itertools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_TASKS_MAX
from bolide.model.offsets import MessageQueue
from bolide.pipeline.errors import DataLost, OffsetsExpired, QueueRecreated
from bolide.pipeline.options import Cutting

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ends:
    """What a queue has now: from `first` to before `last`."""

    first: int
    last: int

    @property
    def is_empty(self) -> bool:
        return self.first >= self.last

    def clamp(self, offset: int) -> int:
        return min(max(offset, self.first), self.last)


@dataclass(frozen=True)
class QueueRange:
    """Messages of one queue: from `begin` to before `end`."""

    queue: MessageQueue
    begin: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.begin

    def within(self, other: "QueueRange") -> "QueueRange":
        """The part of it that another range of the queue has; perhaps nothing."""
        begin = min(max(self.begin, other.begin), other.end)
        return replace(self, begin=begin, end=max(begin, min(self.end, other.end)))

    def __str__(self) -> str:
        return f"{self.queue} [{self.begin}, {self.end})"


def report_loss(loss: DataLost, *, fail: bool) -> None:
    """`failOnDataLoss`, in one place."""
    if fail:
        raise loss
    log.warning("%s", loss)


def fit_range(wanted: QueueRange, ends: Ends, *, fail: bool) -> QueueRange:
    """The part of a range that the queue really has."""
    if wanted.begin < min(ends.first, wanted.end):
        report_loss(expired(wanted.queue, wanted.begin, min(ends.first, wanted.end)), fail=fail)
    if max(wanted.begin, wanted.end) > ends.last:
        recreated = QueueRecreated(
            f"{wanted} reaches beyond the end of the queue at {ends.last}: the topic was deleted and made again, its"
            " broker has lost the end of its log, or these are offsets of another topic"
        )
        report_loss(recreated, fail=fail)
    begin = ends.clamp(wanted.begin)
    return replace(wanted, begin=begin, end=max(begin, min(wanted.end, ends.last)))


def expired(queue: MessageQueue, begin: int, end: int) -> OffsetsExpired:
    return OffsetsExpired(
        f"{queue}: the messages from offset {begin} to before {end} have expired: retention deleted them before they"
        f" were read. failOnDataLoss=false goes on at {end}; to lose none, have the broker keep messages for longer"
        " (fileReservedTime) or read more often"
    )


# ---- tasks -----------------------------------------------------------------------------------------------------


def split_ranges(
    ranges: Sequence[QueueRange],
    cutting: Cutting,
    sizes: Mapping[MessageQueue, float] | None = None,
    *,
    keep_empty: bool = False,
) -> list[QueueRange]:
    """Cut ranges into tasks: none longer than it may be, and about as many as wanted.  Order stays inside each.

    `sizes` has the bytes of a message, about, where tasks are bound by bytes.  A range with nothing in it is no task,
    unless it is to keep its place among the others.
    """
    ranges = [one for one in ranges if one.length > 0 or keep_empty]
    total = sum(one.length for one in ranges)
    parts = dict.fromkeys(ranges, 1)
    for one in ranges:
        if cutting.records_max is not None:
            parts[one] = max(parts[one], -(-one.length // cutting.records_max))
        if cutting.bytes_max is not None and sizes is not None:
            records = max(1, int(cutting.bytes_max / max(1.0, sizes.get(one.queue, 1.0))))
            parts[one] = max(parts[one], -(-one.length // records))
    if total and sum(parts.values()) < cutting.partitions_min:
        for one in ranges:
            parts[one] = max(parts[one], round(one.length * cutting.partitions_min / total))
    counts = {one: max(1, min(one.length, parts[one])) for one in ranges}
    if (count := sum(counts.values())) > SPARK_TASKS_MAX:
        raise ConfigError(
            f"this would be {count} tasks, and Spark gets at most {SPARK_TASKS_MAX}: subscribe to fewer topics at a"
            " time, or allow more per partition"
        )
    return [part for one in ranges for part in _cut(one, counts[one])]


def _cut(whole: QueueRange, count: int) -> list[QueueRange]:
    cuts = [whole.begin + whole.length * at // count for at in range(count + 1)]
    return [replace(whole, begin=begin, end=end) for begin, end in itertools.pairwise(cuts)]
