"""The part of a page about groups: how far behind they are, and how that went."""

from collections.abc import Sequence

from bolide.pipeline.stats import words
from bolide.pipeline.stats.charts import Band, Caption, Line, TimeChart
from bolide.pipeline.stats.figures import LagFigures, LagSample, Report
from bolide.pipeline.stats.markup import Html, tag
from bolide.pipeline.stats.page_tables import Cell, bare, folded, number, table
from bolide.pipeline.stats.scales import TimeSpan

LOOKS = "abdc"
"""Styles of lines, one for each topic of a group."""


def lag_section(report: Report) -> Html:
    if not report.lags and not report.lag_history:
        return Html("")
    groups = dict.fromkeys([*(lag.group for lag in report.lags), *(one.group for one in report.lag_history)])
    parts = [tag("h2", "Groups")]
    parts.append(_now(report.lags))
    for group in groups:
        samples = [one for one in report.lag_history if one.group == group]
        if len({one.at_ms for one in samples}) > 1:
            parts.append(_over_time(group, samples))
    queues = _queues(report.lags)
    if queues:
        parts.append(folded("Every queue of every group", queues))
    if not report.lag_history:
        told = (
            "Brokers keep where a group is and not where it was: with --lag-history FILE every report adds what it"
            " sees to a file, and shows how it went."
        )
        parts.append(tag("p", told, class_="quiet"))
    return tag("section", *parts, id="groups")


def _now(lags: Sequence[LagFigures]) -> Html:
    rows: list[Sequence[Cell]] = [
        (
            bare(lag.group, "name"),
            bare(lag.topic, "name"),
            number(words.count(lag.behind)),
            number(words.span(lag.waits_ms) if lag.behind else "–"),
            bare(_worst(lag)),
        )
        for lag in lags
    ]
    caption = "How far behind when the report was made; waiting is the oldest message that was not consumed"
    return table(caption, ("Group", "Topic", "Behind", "Waiting", "Most of it in"), rows)


def _worst(lag: LagFigures) -> str:
    if not lag.behind:
        return "–"
    worst = max(lag.queues, key=lambda queue: queue.behind)
    return f"{worst.broker} queue {worst.queue}: {words.count(worst.behind)}"


def _over_time(group: str, samples: Sequence[LagSample]) -> Html:
    span = TimeSpan(samples[0].at_ms, samples[-1].at_ms)
    topics = list(dict.fromkeys(sample.topic for sample in samples))
    behind, waits = [
        [
            Line(
                topic,
                LOOKS[place % len(LOOKS)],
                [(one.at_ms, getattr(one, name)) for one in samples if one.topic == topic],
            )
            for place, topic in enumerate(topics)
        ]
        for name in ("behind", "waits_ms")
    ]
    bands = _bands(samples)
    return tag(
        "div",
        TimeChart(
            Caption(f"{group}: messages behind", _about(group, [one.behind for one in samples], "messages")),
            span,
            behind,
            bands,
            words.short_count,
        ).draw(),
        TimeChart(
            Caption(
                f"{group}: waiting",
                f"How long the oldest message waited for {group}:"
                f" at most {words.span(max(one.waits_ms for one in samples))}.",
            ),
            span,
            waits,
            bands,
            words.span,
        ).draw(),
        class_="pair",
    )


def _about(group: str, values: Sequence[int], what: str) -> str:
    return (
        f"How far behind {group} was in {len(values)} samples: at most {words.count(max(values))} {what},"
        f" {words.count(values[-1])} in the last."
    )


def _bands(samples: Sequence[LagSample]) -> list[Band]:
    """Around each sample, half the way to its neighbours."""
    by_moment: dict[int, list[LagSample]] = {}
    for sample in samples:
        by_moment.setdefault(sample.at_ms, []).append(sample)
    moments = list(by_moment)
    bands: list[Band] = []
    for place, at_ms in enumerate(moments):
        low = at_ms if place == 0 else (moments[place - 1] + at_ms) / 2
        high = at_ms if place == len(moments) - 1 else (moments[place + 1] + at_ms) / 2
        told = [
            f"{one.topic}: {words.count(one.behind)}, {words.span(one.waits_ms)}" for one in by_moment[at_ms]
        ]
        bands.append(Band(low, high, f"{words.moment(at_ms)} · {'; '.join(told)}"))
    return bands


def _queues(lags: Sequence[LagFigures]) -> Html:
    rows: list[Sequence[Cell]] = [
        (
            bare(lag.group, "name"),
            bare(lag.topic, "name"),
            bare(f"{queue.broker} {queue.queue}"),
            number(words.count(queue.offset)),
            number(words.count(queue.end)),
            number(words.count(queue.behind)),
            number(words.span(queue.waits_ms) if queue.behind else "–"),
        )
        for lag in lags
        for queue in lag.queues
    ]
    if not rows:
        return Html("")
    return table("Queues", ("Group", "Topic", "Queue", "Offset", "End", "Behind", "Waiting"), rows)
