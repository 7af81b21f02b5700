"""What a replay would send, counted and with examples.  Reads all of it and sends nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.window import Window

from bolide.pipeline.refused import refused
from bolide.pipeline.replay.outgoing import copied
from bolide.pipeline.replay.plan import Replay
from bolide.pipeline.replay.source import IS_SENDABLE

SHOWN_MAX = 50
"""Topics, tags and days that are told, the largest; the others are counted."""

EXAMPLES = 5

_ALL, _TOPIC, _TAG, _DAY = 0b111, 0b011, 0b101, 0b110
"""What Spark's `grouping_id` says of a row: a bit for each of topic, tag and day that is not told apart in it."""


_TOLD = "topic string, tag string, day string, stored long, size long, sendable boolean"
_TOLD_NAMES = [part.split()[0] for part in _TOLD.split(", ")]


@dataclass(frozen=True)
class Summary:
    messages: int
    bytes: int
    """Of bodies, unpacked."""
    left_out: int
    """Messages that are meant and cannot be sent: their bodies do not unpack or are empty, or no write takes them."""
    first_ms: int | None
    last_ms: int | None
    topics: Mapping[str, int]
    tags: Mapping[str, int]
    days: Mapping[str, int]
    examples: Sequence[Mapping[str, Any]]

    def takes_ms(self, rate: int | None) -> int | None:
        """At least so long."""
        return None if rate is None else self.messages * 1000 // rate


def summarise(frame: DataFrame, replay: Replay) -> Summary:
    """Of messages that are meant, with the columns of a topic."""
    is_sendable = F.coalesce(F.expr(IS_SENDABLE), F.lit(False))
    told = frame.select(
        F.col("topic"),
        F.coalesce("tags", F.lit("")).alias("tag"),
        F.date_format(F.to_utc_timestamp("storeTimestamp", F.current_timezone()), "yyyy-MM-dd").alias("day"),
        F.unix_millis("storeTimestamp").alias("stored"),
        F.length("body").cast("long").alias("size"),
        is_sendable.alias("sendable"),
        *copied(replay),
    ).mapInArrow(_tried(replay.asked.to), _TOLD)
    sets = [[], ["topic"], ["tag"], ["day"]]
    counted = told.groupingSets([list(map(F.col, one)) for one in sets], "topic", "tag", "day").agg(
        F.grouping_id().alias("kind"),
        F.count_if("sendable").alias("messages"),
        F.count_if(~F.col("sendable")).alias("left_out"),
        F.sum(F.when(F.col("sendable"), F.col("size"))).alias("bytes"),
        F.min(F.when(F.col("sendable"), F.col("stored"))).alias("first"),
        F.max(F.when(F.col("sendable"), F.col("stored"))).alias("last"),
    )
    place = F.row_number().over(Window.partitionBy("kind").orderBy(F.desc("messages"), "topic", "tag", "day"))
    rows = counted.withColumn("place", place).where(F.col("place") <= SHOWN_MAX).collect()
    total = next((row for row in rows if row["kind"] == _ALL), None)
    stored = F.unix_millis("storeTimestamp").alias("stored")
    examples = frame.where(IS_SENDABLE).select("msgId", "topic", "tags", "keys", stored, "body")
    return Summary(
        messages=total["messages"] if total else 0,
        bytes=(total["bytes"] or 0) if total else 0,
        left_out=total["left_out"] if total else 0,
        first_ms=total["first"] if total else None,
        last_ms=total["last"] if total else None,
        topics=_counts(rows, _TOPIC, "topic"),
        tags=_counts(rows, _TAG, "tag"),
        days=dict(sorted(_counts(rows, _DAY, "day").items())),
        examples=[_example(row) for row in examples.limit(EXAMPLES).collect()],
    )


def _tried(topic: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: what is told of each message stays, of those that no write takes with another `sendable`."""

    def tried(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            told = {name: batch.column(name) for name in _TOLD_NAMES}
            copies = batch.select([name for name in batch.schema.names if name not in told])
            found = refused(copies, topic)
            can = [yes and row not in found for row, yes in enumerate(told["sendable"].to_pylist())]
            yield pa.RecordBatch.from_pydict({**told, "sendable": pa.array(can, pa.bool_())})

    return tried


def _counts(rows: Sequence[Any], kind: int, column: str) -> dict[str, int]:
    found = [row for row in rows if row["kind"] == kind and row["messages"]]
    return {
        row[column] or "": row["messages"] for row in sorted(found, key=lambda row: int(-row["messages"]))
    }


def _example(row: Any) -> dict[str, Any]:
    return {
        "id": row["msgId"],
        "topic": row["topic"],
        "tag": row["tags"],
        "keys": list(row["keys"] or ()),
        "stored_ms": row["stored"],
        "body": bytes(row["body"]),
    }
