"""A report as one page of HTML that needs nothing else: no script, no font, no picture from anywhere.

The page forbids itself to load anything or to run anything (its content security policy), and whatever comes from
messages goes through `markup.py`.
"""

from collections.abc import Sequence
from pathlib import Path

from bolide.pipeline.stats import words
from bolide.pipeline.stats.charts import sparkline
from bolide.pipeline.stats.figures import Report, TopicFigures
from bolide.pipeline.stats.files import whole
from bolide.pipeline.stats.markup import Html, join, tag
from bolide.pipeline.stats.page_lag import lag_section
from bolide.pipeline.stats.page_tables import Cell, bare, number, table
from bolide.pipeline.stats.page_topic import topic_section
from bolide.pipeline.stats.scales import TimeSpan
from bolide.pipeline.stats.style import CSS

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def report_page(report: Report) -> str:
    title = (
        f"Traffic of {', '.join(topic.topic for topic in report.topics[:3])}" if report.topics else "Traffic"
    )
    if len(report.topics) > 3:
        title += f" and {len(report.topics) - 3} more topics"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Html(CSS)),
    )
    span = shared_span(report)
    sections = [
        topic_section(topic, report.window_ms, span, place=place) for place, topic in enumerate(report.topics)
    ]
    body = tag(
        "body",
        _header(report, title),
        _overview(report, span) if len(report.topics) > 1 else Html(""),
        tag("main", *sections, lag_section(report)),
        _footer(),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def shared_span(report: Report) -> TimeSpan | None:
    """All topics have the same time from left to right, so that they can be compared; None without messages."""
    starts = [window.start_ms for topic in report.topics for window in topic.windows]
    return TimeSpan(min(starts), max(starts) + report.window_ms) if starts else None


def _header(report: Report, title: str) -> Html:
    times = [(topic.first_ms, topic.last_ms) for topic in report.topics]
    firsts = [first for first, _ in times if first is not None]
    lasts = [last for _, last in times if last is not None]
    lines = [f"Read from {report.source} on {words.moment(report.made_ms)}. All times are UTC."]
    if firsts and lasts:
        lines.append(
            f"{words.count(sum(topic.messages for topic in report.topics))} messages, stored from"
            f" {words.moment(min(firsts))} to {words.moment(max(lasts))},"
            f" in windows of {words.span(report.window_ms)}."
        )
    else:
        lines.append("No messages.")
    notes = list(report.notes)
    if report.damaged:
        notes.append(
            f"{words.count(report.damaged)} damaged places of the store belong to no topic and are not counted"
        )
    return tag(
        "header",
        tag("h1", title),
        *(tag("p", line, class_="quiet") for line in lines),
        *(tag("p", f"{note}.", class_="warn") for note in notes),
    )


def _overview(report: Report, span: TimeSpan | None) -> Html:
    rows: list[Sequence[Cell]] = []
    for place, topic in enumerate(report.topics):
        rows.append(
            (
                bare(tag("a", topic.topic, href=f"#topic-{place}"), "name"),
                bare(_went(topic, report.window_ms, span), "went"),
                number(words.count(topic.messages)),
                number(words.size(topic.bytes)),
                number("–" if topic.rate is None else f"{words.count(topic.rate)}/s"),
                number("–" if topic.latency is None else words.span(topic.latency.p99)),
                bare(topic.verdict),
            )
        )
    heads = ("Topic", "Messages over time", "Messages", "Volume", "Rate", "Latency, p99", "Queues")
    return join(
        [tag("h2", "Topics"), table("All topics, with the same time from left to right", heads, rows)]
    )


def _went(topic: TopicFigures, window_ms: int, span: TimeSpan | None) -> Html:
    if span is None:
        return Html("")
    counts = {window.start_ms: window.messages for window in topic.windows}
    return sparkline([counts.get(start, 0) for start in range(span.low_ms, span.high_ms, window_ms)])


def _footer() -> Html:
    return tag(
        "footer",
        tag(
            "p",
            "Volume and sizes are those of bodies, unpacked. Latency is from born to stored: by the clocks of two"
            " machines, and with all the time that a delayed or retried message has waited. Percentiles of sizes and"
            " latencies are within one percent, and exact below 64; everything else is exact.",
        ),
        tag("p", "Made by bolide pipeline stats."),
    )


def write_page(report: Report, file: Path) -> None:
    with whole(file) as path:
        path.write_text(report_page(report), encoding="utf-8")
