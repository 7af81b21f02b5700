"""The pass of Spark over the messages: everything that is counted, in one read, and nothing but sums for the driver.

A message becomes some observations: in which queue it is, how late and how large, with which tag and keys.  Like ones
are summed up where they are read, then once more over all tasks.  These sums are kept, since how long the span is, and
so how wide a window, is known only now; whatever the report shows are small questions to them.

Latencies and sizes are rounded to within one percent before they are counted (exact below 64), so that there are some
hundreds of different ones at most, and quantiles of them are exact.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from bolide.pipeline.stats.sources import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EXACT_BELOW = 64
STEP = 1.02
"""From one rounded value to the next: the middle of a step is within one percent of all in it."""

NEGATIVE = -1
"""The rounded value of whatever is below zero."""

NAME_LENGTH_MAX = 256
"""Of a key or tag in a report; messages are counted by whole ones."""

QUEUE, TIME, SIZE, FLAG, TAG, KEY = "queue", "time", "size", "flag", "tag", "key"
PACKED, BAD, RETRIED, KEYED = "packed", "bad", "retried", "keyed"
_NO_TEXT, _NO_NUMBER = "CAST(NULL AS STRING)", "CAST(NULL AS BIGINT)"


class Sum(NamedTuple):
    """Messages of a queue, of a size, or with a flag."""

    topic: str
    kind: str
    name: str | None
    number: int | None
    """The queue's, or of a size how many bits it has."""
    messages: int
    bytes: int
    low: int | None
    high: int | None
    """Of a queue the first and the last store time."""


class SpreadRow(NamedTuple):
    """How late (`time`) or how large (`size`) messages are; `window` is None for the whole topic."""

    topic: str
    kind: str
    window: int | None
    messages: int
    bytes: int
    negative: int
    low: int | None
    high: int | None
    p50: float | None
    p99: float | None


class CrowdRow(NamedTuple):
    """The most messages that one queue (`name` is its broker), or one key, has in a window."""

    topic: str
    kind: str
    window: int
    name: str
    messages: int


class NameRow(NamedTuple):
    topic: str
    kind: str
    name: str
    messages: int
    bytes: int


class NameCount(NamedTuple):
    topic: str
    kind: str
    names: int
    messages: int


class Sums:
    """What was counted, kept by Spark; each method is one small job."""

    def __init__(self, frame: "DataFrame", slot_ms: int) -> None:
        self._frame = frame
        self._slot_ms = slot_ms

    def small(self) -> list[Sum]:
        """Queues, sizes and flags, of all topics.  The first question makes Spark read the messages."""
        of_kind = f"CASE kind WHEN '{QUEUE}' THEN value WHEN '{SIZE}' THEN slot END"
        asked = self._of([QUEUE, SIZE, FLAG], ()).withColumn("number", _expr(of_kind))
        found = asked.groupBy("topic", "kind", "name", "number").agg(
            *_exprs("sum(n) AS messages", "sum(bytes) AS bytes", "min(low) AS low", "max(high) AS high")
        )
        return [Sum(*row) for row in found.collect()]

    def spreads(self, topics: Sequence[str], window_ms: int) -> list[SpreadRow]:
        """Of whole topics, and of latencies in windows; messages without a store time are in no window."""
        windows = (
            f"IF(kind = '{TIME}' AND slot IS NOT NULL, array(NULL, {self._window(window_ms)}), array(NULL))"
        )
        asked = self._of([TIME, SIZE], topics).withColumn("window", _expr(f"explode({windows})"))
        return _spreads(asked)

    def crowds(self, topics: Sequence[str], window_ms: int) -> list[CrowdRow]:
        """The busiest queue and the hottest key of each window."""
        asked = self._of([QUEUE, KEY], topics).where("slot IS NOT NULL")
        windowed = asked.withColumn("window", _expr(self._window(window_ms)))
        counted = windowed.groupBy("topic", "kind", "window", "name", "value").agg(
            _expr("sum(n) AS messages")
        )
        rank = "row_number() OVER (PARTITION BY topic, kind, window ORDER BY messages DESC, name, value)"
        found = counted.withColumn("rank", _expr(rank)).where("rank = 1")
        shown = found.selectExpr("topic", "kind", "window", f"left(name, {NAME_LENGTH_MAX})", "messages")
        return [CrowdRow(*row) for row in shown.collect()]

    def top_names(self, topics: Sequence[str], top: int) -> list[NameRow]:
        """The tags and keys that most messages have, in order."""
        rank = "row_number() OVER (PARTITION BY topic, kind ORDER BY messages DESC, name)"
        found = self._names(topics).withColumn("rank", _expr(rank)).where(f"rank <= {top}")
        shown = found.orderBy("topic", "kind", "rank").selectExpr(
            "topic", "kind", f"left(name, {NAME_LENGTH_MAX})", "messages", "bytes"
        )
        return [NameRow(*row) for row in shown.collect()]

    def name_counts(self, topics: Sequence[str]) -> list[NameCount]:
        found = self._names(topics).groupBy("topic", "kind")
        counted = found.agg(*_exprs("count(*) AS names", "sum(messages) AS messages"))
        return [NameCount(*row) for row in counted.collect()]

    def _names(self, topics: Sequence[str]) -> "DataFrame":
        named = self._of([TAG, KEY], topics).groupBy("topic", "kind", "name")
        return named.agg(*_exprs("sum(n) AS messages", "sum(bytes) AS bytes"))

    def _of(self, kinds: Sequence[str], topics: Sequence[str]) -> "DataFrame":
        from pyspark.sql.functions import col

        found = self._frame.where(col("kind").isin(*kinds))
        return found.where(col("topic").isin(*topics)) if topics else found

    def _window(self, window_ms: int) -> str:
        """The number of the window that a slot is in, as SQL."""
        slots = window_ms // self._slot_ms
        return f"(slot - pmod(slot, {slots}L)) DIV {slots}L"


@contextmanager
def sums_of(messages: "DataFrame", slot_ms: int, *, with_keys: bool) -> Iterator[Sums]:
    """Sums of a frame with `COLUMNS`; Spark lets them go at the end."""
    found = _summed(messages.select(*COLUMNS), slot_ms, with_keys).persist()
    try:
        yield Sums(found, slot_ms)
    finally:
        found.unpersist()


def _summed(messages: "DataFrame", slot_ms: int, with_keys: bool) -> "DataFrame":
    facts = messages.selectExpr(
        "coalesce(topic, '') AS topic",
        "coalesce(brokerName, '') AS broker",
        "CAST(coalesce(queueId, -1) AS BIGINT) AS queue",
        "CAST(coalesce(octet_length(body), 0) AS BIGINT) AS size",
        "unix_millis(storeTimestamp) AS stored_ms",
        "unix_millis(storeTimestamp) - unix_millis(bornTimestamp) AS latency_ms",
        "tags AS tag",
        "coalesce(array_distinct(keys), CAST(array() AS ARRAY<STRING>)) AS keys",
        "array_compact(array("
        f"IF((sysFlag & 1) = 1, '{PACKED}', NULL), IF(bodyError IS NOT NULL, '{BAD}', NULL),"
        f" IF(reconsumeTimes > 0, '{RETRIED}', NULL), IF(size(keys) > 0, '{KEYED}', NULL))) AS flags",
    ).withColumn("slot", _expr(f"(stored_ms - pmod(stored_ms, {slot_ms}L)) DIV {slot_ms}L"))
    of_all = [
        _observation(QUEUE, name="broker", slot="slot", value="queue", measure="stored_ms"),
        _observation(TIME, slot="slot", value=_rounded("latency_ms"), measure="latency_ms"),
        _observation(SIZE, slot=_bits("size"), value=_rounded("size"), measure="size"),
    ]
    lists = [
        f"array({', '.join(of_all)})",
        f"transform(flags, one -> {_observation(FLAG, name='one')})",
        f"IF(tag IS NULL, CAST(array() AS ARRAY<{_SHAPE}>), array({_observation(TAG, name='tag')}))",
    ]
    if with_keys:
        lists.append(f"transform(keys, one -> {_observation(KEY, name='one', slot='slot')})")
    observed = facts.selectExpr("topic", "size", f"explode(concat({', '.join(lists)})) AS one")
    return (
        observed.select("topic", "size", "one.*")
        .groupBy("topic", "kind", "name", "slot", "value")
        .agg(*_exprs("count(*) AS n", "sum(size) AS bytes", "min(measure) AS low", "max(measure) AS high"))
    )


_SHAPE = "STRUCT<kind: STRING, name: STRING, slot: BIGINT, value: BIGINT, measure: BIGINT>"


def _observation(
    kind: str,
    *,
    name: str = _NO_TEXT,
    slot: str = _NO_NUMBER,
    value: str = _NO_NUMBER,
    measure: str = _NO_NUMBER,
) -> str:
    """`measure` is what the least and the largest are kept of."""
    return f"named_struct('kind', '{kind}', 'name', {name}, 'slot', {slot}, 'value', {value}, 'measure', {measure})"


def _rounded(number: str) -> str:
    """Null for what nobody knows."""
    step = f"floor(ln({number} / {EXACT_BELOW}D) / ln({STEP}D))"
    return (
        f"CAST(CASE WHEN {number} < 0 THEN {NEGATIVE} WHEN {number} < {EXACT_BELOW} THEN {number}"
        f" ELSE round({EXACT_BELOW} * pow({STEP}D, {step} + 0.5D)) END AS BIGINT)"
    )


def _bits(number: str) -> str:
    """How many bits it has: 0 for 0, 1 for 1, 2 for 2 and 3, 3 for 4 to 7."""
    return f"CAST(IF({number} = 0, 0, length(bin({number}))) AS BIGINT)"


def _spreads(asked: "DataFrame") -> list[SpreadRow]:
    """By topic, kind and window.  A quantile of rounded values is never beyond what was really there."""
    told = f"IF(value <> {NEGATIVE}, value, NULL)"
    found = asked.groupBy("topic", "kind", "window").agg(
        *_exprs(
            "sum(n) AS messages",
            "sum(bytes) AS bytes",
            f"sum(IF(value = {NEGATIVE}, n, 0)) AS negative",
            "min(low) AS low",
            "max(high) AS high",
            f"percentile({told}, array(0.5D, 0.99D), n) AS quantiles",
        )
    )
    bounded = [
        f"greatest(least(quantiles[{at}], CAST(high AS DOUBLE)), CAST(low AS DOUBLE))" for at in (0, 1)
    ]
    shown = found.selectExpr(
        *("topic", "kind", "window", "messages", "bytes", "negative", "low", "high"),
        *(f"IF(quantiles IS NULL, NULL, {one})" for one in bounded),
    )
    return [SpreadRow(*row) for row in shown.collect()]


def _expr(text: str) -> "Column":
    from pyspark.sql.functions import expr

    return expr(text)


def _exprs(*texts: str) -> "list[Column]":
    return [_expr(text) for text in texts]
