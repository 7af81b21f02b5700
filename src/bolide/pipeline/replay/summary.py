"""What a replay would send, counted and with examples.  Reads all of it and sends nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.window import Window

from bolide.pipeline.replay.source import IS_SENDABLE

SHOWN_MAX = 50
"""Topics, tags and days that are told, the largest; the others are counted."""

EXAMPLES = 5

_ALL, _TOPIC, _TAG, _DAY = 0b111, 0b011, 0b101, 0b110
"""What Spark's `grouping_id` says of a row: a bit for each of topic, tag and day that is not told apart in it."""


@dataclass(frozen=True)
class Summary:
    messages: int
    bytes: int
    """Of bodies, unpacked."""
    left_out: int
    """Messages that are meant and cannot be sent: their bodies do not unpack, or are empty."""
    first_ms: int | None
    last_ms: int | None
    topics: Mapping[str, int]
    tags: Mapping[str, int]
    days: Mapping[str, int]
    examples: Sequence[Mapping[str, Any]]

    def takes_ms(self, rate: int | None) -> int | None:
        """At least so long."""
        return None if rate is None else self.messages * 1000 // rate


def summarise(frame: DataFrame) -> Summary:
    """Of messages that are meant, with the columns of a topic."""
    is_sendable = F.coalesce(F.expr(IS_SENDABLE), F.lit(False))
    told = frame.select(
        F.col("topic"),
        F.coalesce("tags", F.lit("")).alias("tag"),
        F.date_format(F.to_utc_timestamp("storeTimestamp", F.current_timezone()), "yyyy-MM-dd").alias("day"),
        F.unix_millis("storeTimestamp").alias("stored"),
        F.when(is_sendable, F.length("body")).otherwise(0).alias("size"),
        is_sendable.alias("sendable"),
    )
    sets = [[], ["topic"], ["tag"], ["day"]]
    counted = told.groupingSets([list(map(F.col, one)) for one in sets], "topic", "tag", "day").agg(
        F.grouping_id().alias("kind"),
        F.count_if("sendable").alias("messages"),
        F.count_if(~F.col("sendable")).alias("left_out"),
        F.sum("size").alias("bytes"),
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
