"""A report of `bolide pipeline stats` as tables for a terminal."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bolide.cli.output import say, write_line, write_table
from bolide.cli.since import format_moment

if TYPE_CHECKING:
    from bolide.pipeline.stats.figures import NameFigures, Report, Spread, TopicFigures

WINDOWS_SHOWN_MAX = 20
QUEUES_SHOWN_MAX = 32
UNKNOWN = "-"


def write_report(report: "Report") -> None:
    from bolide.pipeline.stats import words

    for note in report.notes:
        say(f"note: {note}")
    if report.damaged:
        say(f"note: {report.damaged} damaged places of the store belong to no topic and are not counted")
    if not report.topics:
        say(f"{report.source} has no messages")
        return
    write_table(
        (
            "TOPIC",
            "MESSAGES",
            "BYTES",
            "RATE",
            "SIZE P50",
            "P99",
            "MAX",
            "LATENCY P50",
            "P99",
            "MAX",
            "QUEUES",
        ),
        [
            (
                topic.topic,
                topic.messages,
                topic.bytes,
                UNKNOWN if topic.rate is None else f"{words.count(topic.rate)}/s",
                *_spread(topic.size, words.size),
                *_spread(topic.latency, words.span),
                topic.verdict,
            )
            for topic in report.topics
        ],
    )
    for topic in report.topics:
        if topic.messages:
            _write_topic(topic)
    _write_lags(report)


def _spread(spread: "Spread | None", word: "Callable[[float], str]") -> tuple[str, str, str]:
    if spread is None:
        return UNKNOWN, UNKNOWN, UNKNOWN
    return word(spread.p50), word(spread.p99), word(spread.max)


def _write_topic(topic: "TopicFigures") -> None:
    from bolide.pipeline.stats import words

    write_line()
    write_line(topic.topic)
    for line in _oddities(topic):
        write_line(f"  {line}")
    write_line()
    shown = topic.windows[-WINDOWS_SHOWN_MAX:]
    write_table(
        ("WINDOW", "MESSAGES", "BYTES", "LATENCY P50", "P99", "MAX", "NEGATIVE", "SKEW", "HOTTEST KEY"),
        [
            (
                format_moment(window.start_ms),
                window.messages,
                window.bytes,
                *_spread(window.latency, words.span),
                window.negative,
                UNKNOWN if window.skew is None else f"{window.skew:.2f}",
                UNKNOWN if window.hot_key is None else f"{window.hot_key} ({window.hot_key_messages})",
            )
            for window in shown
        ],
    )
    if len(shown) < len(topic.windows):
        say(f"{len(topic.windows) - len(shown)} windows before these; --json, --html and --parquet have all")
    write_line()
    queues = topic.queues[:QUEUES_SHOWN_MAX]
    write_table(
        ("BROKER", "QUEUE", "MESSAGES", "BYTES", "SHARE"),
        [
            (queue.broker, queue.queue, queue.messages, queue.bytes, words.share(queue.share))
            for queue in queues
        ],
    )
    if len(queues) < len(topic.queues):
        say(f"{len(topic.queues) - len(queues)} queues behind these; --json, --html and --parquet have all")
    _write_names("KEY", topic.keys)
    _write_names("TAG", topic.tags)


def _oddities(topic: "TopicFigures") -> list[str]:
    from bolide.pipeline.stats import words

    told = [f"the busiest of {len(topic.queues)} queues has {topic.skew:.2f} times the mean: {topic.verdict}"]
    if topic.keys_there is not None:
        told.append(f"{topic.keyed} messages have keys; different ones: {topic.keys_there}")
    if topic.negative and topic.latency_min is not None:
        told.append(
            f"{topic.negative} messages were stored before they were born, by up to"
            f" {words.span(-topic.latency_min)}: clocks differ; latencies leave them out"
        )
    counts = (
        (topic.packed, "messages were sent compressed"),
        (topic.bad_bodies, "messages have a body that cannot be unpacked, or are damaged"),
        (topic.retried, "messages had been sent back by a consumer"),
        (topic.untimed, "messages have a store time that no calendar holds, and are in no window"),
    )
    return told + [f"{count} {what}" for count, what in counts if count]


def _write_names(what: str, names: "Sequence[NameFigures]") -> None:
    from bolide.pipeline.stats import words

    if names:
        write_line()
        write_table(
            (what, "MESSAGES", "BYTES", "SHARE"),
            [(name.name, name.messages, name.bytes, words.share(name.share)) for name in names],
        )


def _write_lags(report: "Report") -> None:
    from bolide.pipeline.stats import words

    if not report.lags:
        return
    write_line()
    write_table(
        ("GROUP", "TOPIC", "BEHIND", "WAITING"),
        [
            (lag.group, lag.topic, lag.behind, words.span(lag.waits_ms) if lag.behind else UNKNOWN)
            for lag in report.lags
        ],
    )
    if report.lag_history:
        moments = len({sample.at_ms for sample in report.lag_history})
        say(f"{moments} samples of lag in the history; --json, --html and --parquet have all")
