"""A report: reads a source once, and makes figures of what was counted."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bolide.model.errors import BolideError
from bolide.model.limits.spark import STATS_TOPICS_MAX, STATS_WINDOWS_MAX
from bolide.pipeline.spark_errors import first_words
from bolide.pipeline.stats import words
from bolide.pipeline.stats.figures import (
    LagFigures,
    LagSample,
    NameFigures,
    QueueFigures,
    Report,
    SizeFigures,
    Spread,
    TopicFigures,
    WindowFigures,
)
from bolide.pipeline.stats.measure import (
    BAD,
    FLAG,
    KEY,
    KEYED,
    PACKED,
    QUEUE,
    RETRIED,
    SIZE,
    TAG,
    TIME,
    CrowdRow,
    NameCount,
    NameRow,
    SpreadRow,
    Sum,
    Sums,
    sums_of,
)
from bolide.pipeline.stats.sources import QueueKey, Queues, Source, Span
from bolide.pipeline.stats.windows import slot_width, window_width

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class StatsFailed(BolideError):
    """Spark could not read the messages, or sum them up."""


NO_TOPIC = ""
"""The topic of what is too damaged to have one."""


@dataclass(frozen=True)
class Wish:
    """What a report is to have."""

    span: Span = field(default_factory=Span)
    window_ms: int | None = None
    """None: as it suits the span."""
    top: int = 10
    """Keys and tags of a topic; without any, keys are not even counted."""


@dataclass(frozen=True)
class Asked:
    """What brokers and files have told before Spark was started."""

    queues: Queues
    lags: Sequence[LagFigures] = ()
    lag_history: Sequence[LagSample] = ()
    notes: Sequence[str] = ()


@dataclass
class _Parts:
    """All rows about one topic."""

    sums: list[Sum]
    spreads: dict[str, SpreadRow]
    windows: list[SpreadRow]
    crowds: dict[tuple[str, int], CrowdRow]
    """By kind and window."""
    names: list[NameRow]
    counts: dict[str, NameCount]


def make_report(spark: "SparkSession", source: Source, wish: Wish, asked: Asked, now_ms: int) -> Report:
    """`StatsFailed` in place of what Spark says: its first words."""
    from pyspark.errors import PySparkException

    try:
        return _made(spark, source, wish, asked, now_ms)
    except PySparkException as error:
        raise StatsFailed(first_words(error)) from error


def _made(spark: "SparkSession", source: Source, wish: Wish, asked: Asked, now_ms: int) -> Report:
    messages = source.frame(spark, wish.span)
    with sums_of(messages, slot_width(wish.window_ms), with_keys=wish.top > 0) as sums:
        small = sums.small()
        topics, notes = chosen_topics(small, source.topics)
        times = [
            time for row in small if row.kind == QUEUE for time in (row.low, row.high) if time is not None
        ]
        window_ms = window_width(wish.window_ms, min(times, default=0), max(times, default=0))
        notes += _widened(wish.window_ms, window_ms)
        found = _ask(sums, small, topics, wish, window_ms) if topics else {}
    return Report(
        made_ms=now_ms,
        source=str(source),
        since_ms=wish.span.since_ms,
        until_ms=wish.span.until_ms,
        window_ms=window_ms,
        topics=[
            _topic(topic, found[topic], asked.queues.get(topic, ()), wish, window_ms) for topic in topics
        ],
        damaged=sum(row.messages for row in small if row.kind == QUEUE and row.topic == NO_TOPIC),
        lags=asked.lags,
        lag_history=asked.lag_history,
        notes=[*asked.notes, *notes],
    )


def chosen_topics(small: Iterable[Sum], named: Sequence[str]) -> tuple[list[str], list[str]]:
    """The topics that are shown, those that were named first and with or without messages."""
    counts: dict[str, int] = defaultdict(int)
    for row in small:
        if row.kind == QUEUE and row.topic != NO_TOPIC:
            counts[row.topic] += row.messages
    topics = list(named) or sorted(counts, key=lambda topic: (-counts[topic], topic))
    if len(topics) <= STATS_TOPICS_MAX:
        return topics, []
    left_out = len(topics) - STATS_TOPICS_MAX
    topics = sorted(topics, key=lambda topic: -counts[topic])[:STATS_TOPICS_MAX]
    return topics, [f"{left_out} topics with fewer messages are left out: name the ones that you want to see"]


def _widened(asked_ms: int | None, window_ms: int) -> list[str]:
    if asked_ms is None or asked_ms == window_ms:
        return []
    return [
        f"windows are {words.span(window_ms)} wide: of {words.span(asked_ms)} there would be more than"
        f" {STATS_WINDOWS_MAX}"
    ]


def _ask(
    sums: Sums, small: Sequence[Sum], topics: Sequence[str], wish: Wish, window_ms: int
) -> Mapping[str, _Parts]:
    parts = {topic: _Parts([], {}, [], {}, [], {}) for topic in topics}
    for row in small:
        if row.topic in parts:
            parts[row.topic].sums.append(row)
    for spread in sums.spreads(topics, window_ms):
        if spread.window is None:
            parts[spread.topic].spreads[spread.kind] = spread
        else:
            parts[spread.topic].windows.append(spread)
    for crowd in sums.crowds(topics, window_ms):
        parts[crowd.topic].crowds[crowd.kind, crowd.window] = crowd
    for name in sums.top_names(topics, wish.top):
        parts[name.topic].names.append(name)
    for count in sums.name_counts(topics):
        parts[count.topic].counts[count.kind] = count
    return parts


def _topic(topic: str, parts: _Parts, known: Sequence[QueueKey], wish: Wish, window_ms: int) -> TopicFigures:
    flags = {row.name: row.messages for row in parts.sums if row.kind == FLAG}
    of_queues = [row for row in parts.sums if row.kind == QUEUE]
    messages = sum(row.messages for row in of_queues)
    queues = _queues(of_queues, known, messages)
    late, large = parts.spreads.get(TIME), parts.spreads.get(SIZE)
    no_count = NameCount(topic, "", 0, 0)
    return TopicFigures(
        topic=topic,
        messages=messages,
        bytes=sum(row.bytes for row in of_queues),
        first_ms=min((row.low for row in of_queues if row.low is not None), default=None),
        last_ms=max((row.high for row in of_queues if row.high is not None), default=None),
        size=_spread(large),
        latency=_spread(late),
        negative=late.negative if late else 0,
        latency_min=late.low if late else None,
        packed=flags.get(PACKED, 0),
        bad_bodies=flags.get(BAD, 0),
        retried=flags.get(RETRIED, 0),
        untimed=messages - sum(row.messages for row in parts.windows),
        keyed=flags.get(KEYED, 0),
        tagged=parts.counts.get(TAG, no_count).messages,
        keys_there=parts.counts.get(KEY, no_count).names if wish.top else None,
        tags_there=parts.counts.get(TAG, no_count).names,
        windows=_windows(parts, len(queues), window_ms),
        queues=queues,
        keys=_names(parts.names, KEY, messages),
        tags=_names(parts.names, TAG, messages),
        sizes=_sizes(parts.sums),
    )


def _spread(row: SpreadRow | None) -> Spread | None:
    if row is None or row.p50 is None or row.p99 is None or row.high is None:
        return None
    return Spread(row.p50, row.p99, row.high)


def _queues(rows: Iterable[Sum], known: Sequence[QueueKey], messages: int) -> list[QueueFigures]:
    """With those that have nothing; queues beyond the known ones are there when they have messages."""
    found = {(row.name or "", row.number or 0): row for row in rows}
    keys = sorted(found.keys() | set(known))
    counts = {key: (found[key].messages, found[key].bytes) if key in found else (0, 0) for key in keys}
    return [
        QueueFigures(*key, count, size, count / messages if messages else 0.0)
        for key, (count, size) in counts.items()
    ]


def _windows(parts: _Parts, queues: int, window_ms: int) -> list[WindowFigures]:
    found: list[WindowFigures] = []
    for row in sorted(parts.windows, key=lambda row: row.window or 0):
        assert row.window is not None
        crowd, hot = parts.crowds[QUEUE, row.window], parts.crowds.get((KEY, row.window))
        found.append(
            WindowFigures(
                start_ms=row.window * window_ms,
                messages=row.messages,
                bytes=row.bytes,
                latency=_spread(row),
                negative=row.negative,
                skew=crowd.messages * queues / row.messages,
                hot_key=None if hot is None else hot.name,
                hot_key_messages=0 if hot is None else hot.messages,
            )
        )
    return found


def _names(rows: Iterable[NameRow], kind: str, messages: int) -> list[NameFigures]:
    return [
        NameFigures(row.name, row.messages, row.bytes, row.messages / messages)
        for row in rows
        if row.kind == kind
    ]


def _sizes(rows: Iterable[Sum]) -> list[SizeFigures]:
    """From the smallest to the largest, those between them that nothing has included."""
    found = {row.number: row for row in rows if row.kind == SIZE and row.number is not None}
    if not found:
        return []
    bins: list[SizeFigures] = []
    for bits in range(min(found), max(found) + 1):
        row = found.get(bits)
        low = 0 if bits == 0 else 1 << (bits - 1)
        bins.append(SizeFigures(low, 1 << bits, row.messages if row else 0, row.bytes if row else 0))
    return bins
