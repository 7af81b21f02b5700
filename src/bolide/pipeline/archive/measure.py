"""Rows counted and summed up, queue by queue, so that two tables of messages can be held against each other.

The checksum of a message is a 64-bit hash of what it says; that of many is the sum of theirs modulo 2^64: it does not
depend on order, a row that is there twice changes it, and sums of parts add up to the sum of the whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
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


class TooManySpans(BolideError):
    """So many holes that a list of them would help nobody."""


@dataclass(frozen=True)
class Measured:
    """Some rows of one queue."""

    rows: int
    first: int
    last: int
    checksum: int

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(
            self.rows + other.rows,
            min(self.first, other.first),
            max(self.last, other.last),
            (self.checksum + other.checksum) & CHECKSUM_MASK,
        )

    @property
    def is_dense(self) -> bool:
        return self.rows == self.last - self.first + 1


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
    )
    return [
        (row, Measured(row._rows, row._least, row._most, (row._low + (row._high << 32)) & CHECKSUM_MASK))
        for row in found.collect()
    ]


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
