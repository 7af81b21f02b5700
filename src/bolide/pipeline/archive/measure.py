"""Rows counted and summed up, queue by queue, so that two tables of messages can be held against each other.

The checksum of a message is a 64-bit hash of what it says; that of many is the sum of theirs modulo 2^64: it does not
depend on order, a row that is there twice changes it, and sums of parts add up to the sum of the whole.  So do the sums
of offsets and of their squares, which tell whether each offset is there once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.window import Window

from bolide.model.errors import BolideError
from bolide.model.limits.spark import ARCHIVE_SPANS_MAX
from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive.manifest import CHECKSUM_MASK, Range
from bolide.pipeline.archive.spans import Span

HASH = (
    "xxhash64(queueOffset, body, bodyError, tags, keys, array_sort(map_entries(properties)), msgId,"
    " bornTimestamp, storeTimestamp, reconsumeTimes, flag)"
)
"""What never changes about a stored message, in Spark's SQL; nulls change nothing."""

QUEUE = ("topic", "brokerName", "queueId")
WINDOWS = "topic string, brokerName string, queueId int, _first long, _end long"


OFFSET_BITS, SQUARED_BITS = 31, 16
"""So many low bits of an offset, and of one that is squared, are summed up: no sum of 2^31 of them overflows."""


class TooManySpans(BolideError):
    """So many holes that a list of them would help nobody."""


@dataclass(frozen=True)
class Measured:
    """Some rows of one queue."""

    rows: int
    first: int
    last: int
    checksum: int
    offsets: int
    squares: int
    """Sums of the low bits of offsets, and of their squares."""

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(
            self.rows + other.rows,
            min(self.first, other.first),
            max(self.last, other.last),
            (self.checksum + other.checksum) & CHECKSUM_MASK,
            self.offsets + other.offsets,
            self.squares + other.squares,
        )

    @property
    def is_dense(self) -> bool:
        """As many rows as offsets, and none of these twice while another is missing."""
        end = self.last + 1
        return (
            self.rows == end - self.first
            and self.offsets == _offsets_below(end) - _offsets_below(self.first)
            and self.squares == _squares_below(end) - _squares_below(self.first)
        )


def _offsets_below(end: int) -> int:
    """What the low bits of all offsets before this one sum up to."""
    return _sum_below(end, OFFSET_BITS, lambda count: count * (count - 1) // 2)


def _squares_below(end: int) -> int:
    return _sum_below(end, SQUARED_BITS, lambda count: count * (count - 1) * (2 * count - 1) // 6)


def _sum_below(end: int, bits: int, sum_of_first: Callable[[int], int]) -> int:
    """Low bits go through all their values again and again."""
    turns, rest = divmod(end, 1 << bits)
    return turns * sum_of_first(1 << bits) + sum_of_first(rest)


def measured(frame: DataFrame, *by: str) -> list[tuple[Any, Measured]]:
    """Every group of rows with the values of these columns, and what was measured of it."""
    hashed = frame.select(*by, F.col("queueOffset"), F.expr(HASH).alias("_hash"))
    found = hashed.groupBy(*by).agg(
        F.count(F.lit(1)).alias("_rows"),
        F.min("queueOffset").alias("_least"),
        F.max("queueOffset").alias("_most"),
        # Two halves, because a sum of 64-bit numbers overflows, which Spark calls an error.
        F.sum(F.col("_hash").bitwiseAND(F.lit(0xFFFFFFFF))).alias("_low"),
        F.sum(F.shiftrightunsigned("_hash", 32)).alias("_high"),
        F.sum(_low_bits(OFFSET_BITS)).alias("_offsets"),
        F.sum(_low_bits(SQUARED_BITS) * _low_bits(SQUARED_BITS)).alias("_squares"),
    )
    return [(row, _measured(row)) for row in found.collect()]


def _low_bits(bits: int) -> Column:
    return F.col("queueOffset").bitwiseAND(F.lit((1 << bits) - 1))


def _measured(row: Any) -> Measured:
    checksum = (row._low + (row._high << 32)) & CHECKSUM_MASK
    return Measured(row._rows, row._least, row._most, checksum, row._offsets, row._squares)


def measured_queues(frame: DataFrame) -> dict[MessageQueue, Measured]:
    return {queue_of(row): one for row, one in measured(frame, *QUEUE)}


def queue_of(row: Any) -> MessageQueue:
    return MessageQueue(row.topic, row.brokerName, row.queueId)


def within(frame: DataFrame, windows: Mapping[MessageQueue, Iterable[Span]]) -> DataFrame:
    """The rows of these spans, with the span of each."""
    on = [*QUEUE]
    narrow = F.broadcast(window_frame(frame.sparkSession, windows))
    inside = (F.col("queueOffset") >= F.col("_first")) & (F.col("queueOffset") < F.col("_end"))
    return frame.join(narrow, on).where(inside)


def outside(frame: DataFrame, windows: Mapping[MessageQueue, Iterable[Span]]) -> DataFrame:
    """The rows of no such span."""
    narrow = F.broadcast(window_frame(frame.sparkSession, windows)).alias("_window")
    same = [frame[name] == F.col(f"_window.{name}") for name in QUEUE]
    offset = frame["queueOffset"]
    inside = (offset >= F.col("_window._first")) & (offset < F.col("_window._end"))
    return frame.join(narrow, [*same, inside], "left_anti")


def window_frame(spark: SparkSession, windows: Mapping[MessageQueue, Iterable[Span]]) -> DataFrame:
    rows = [
        (queue.topic, queue.broker_name, queue.queue_id, span.first, span.end)
        for queue, spans in windows.items()
        for span in spans
    ]
    return spark.createDataFrame(rows, WINDOWS)


def islands(offsets: DataFrame) -> dict[MessageQueue, list[Span]]:
    """The spans of offsets that a table with the columns of a queue and `queueOffset` has, each offset once."""
    place = F.row_number().over(Window.partitionBy(*QUEUE).orderBy("queueOffset"))
    found = (
        offsets.select(*QUEUE, "queueOffset")
        .distinct()
        .withColumn("_island", F.col("queueOffset") - place)
        .groupBy(*QUEUE, "_island")
        .agg(F.min("queueOffset").alias("_least"), F.max("queueOffset").alias("_most"))
        .limit(ARCHIVE_SPANS_MAX + 1)
        .collect()
    )
    if len(found) > ARCHIVE_SPANS_MAX:
        raise TooManySpans(f"offsets are in more than {ARCHIVE_SPANS_MAX} separate spans")
    spans: dict[MessageQueue, list[Span]] = {}
    for row in found:
        spans.setdefault(queue_of(row), []).append(Span(row._least, row._most + 1))
    return {queue: sorted(found) for queue, found in spans.items()}


def dense_ranges(frame: DataFrame, queues: Mapping[MessageQueue, Measured]) -> list[Range]:
    """Ranges without holes; a queue that has some is looked at closer."""
    ranges = [
        Range(queue, one.first, one.last + 1, one.checksum) for queue, one in queues.items() if one.is_dense
    ]
    holed = {queue: one for queue, one in queues.items() if not one.is_dense}
    if holed:
        mine = within(frame, {queue: [Span(one.first, one.last + 1)] for queue, one in holed.items()})
        spans = islands(mine.drop("_first", "_end"))
        parts = measured_spans(frame, spans)
        ranges += [Range(queue, span.first, span.end, one.checksum) for (queue, span), one in parts.items()]
    return sorted(ranges)


def measured_spans(
    frame: DataFrame, spans: Mapping[MessageQueue, Sequence[Span]]
) -> dict[tuple[MessageQueue, Span], Measured]:
    return {
        (queue_of(row), Span(row._first, row._end)): one
        for row, one in measured(within(frame, spans), *QUEUE, "_first", "_end")
    }
