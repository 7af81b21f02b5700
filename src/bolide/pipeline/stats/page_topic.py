"""The part of a page about one topic: its figures, its charts, and the same as tables."""

from collections.abc import Sequence

from bolide.pipeline.stats import words
from bolide.pipeline.stats.charts import Band, Caption, Column, Line, TimeChart, bar, column_chart
from bolide.pipeline.stats.figures import NameFigures, QueueFigures, TopicFigures, WindowFigures
from bolide.pipeline.stats.markup import Html, tag
from bolide.pipeline.stats.page_tables import Cell, bare, folded, number, table
from bolide.pipeline.stats.scales import TimeSpan

QUEUES_SHOWN_MAX = 16
"""Of a topic with more queues, the busiest and the idlest are shown, and the rest is folded away."""


def topic_section(topic: TopicFigures, window_ms: int, span: TimeSpan | None, *, place: int) -> Html:
    parts = [tag("h2", topic.topic), _facts(topic), *_remarks(topic)]
    if topic.messages and span is not None and topic.windows:
        windows = all_windows(topic.windows, window_ms, span)
        bands = [_band(window, window_ms) for window in windows]
        parts.append(_traffic(topic, windows, window_ms, span, bands))
        parts.append(
            tag("div", _latency(topic, windows, window_ms, span, bands), _sizes(topic), class_="pair")
        )
        parts.append(
            tag("div", _queues(topic), _crowding(topic, windows, window_ms, span, bands), class_="pair")
        )
        names = (
            [_names("Keys", topic.keys, topic.keys_there, topic.keyed, topic.messages)] if topic.keys else []
        )
        names += (
            [_names("Tags", topic.tags, topic.tags_there, topic.tagged, topic.messages)] if topic.tags else []
        )
        if names:
            parts.append(tag("div", *names, class_="pair"))
        parts.append(folded("All windows as a table", _window_table(topic)))
    elif topic.messages:
        parts.append(_queues(topic))
    return tag("section", *parts, id=f"topic-{place}")


def all_windows(windows: Sequence[WindowFigures], window_ms: int, span: TimeSpan) -> list[WindowFigures]:
    """Those without messages, too."""
    found = {window.start_ms: window for window in windows}
    return [found.get(start, WindowFigures(start)) for start in range(span.low_ms, span.high_ms, window_ms)]


# ---- figures -----------------------------------------------------------------------------------------------------


def _facts(topic: TopicFigures) -> Html:
    facts = [("Messages", words.count(topic.messages), _rate(topic)), ("Volume", words.size(topic.bytes), "")]
    if topic.size is not None and topic.size_mean is not None:
        told = f"mean {words.size(topic.size_mean)}, p99 {words.size(topic.size.p99)}, max {words.size(topic.size.max)}"
        facts.append(("Size, median", words.size(topic.size.p50), told))
    if topic.latency is not None:
        told = f"p99 {words.span(topic.latency.p99)}, max {words.span(topic.latency.max)}"
        facts.append(("Born to stored, median", words.span(topic.latency.p50), told))
    if topic.skew is not None:
        told = f"{len(topic.queues)} queues; the busiest has {topic.skew:.2f} times the mean"
        facts.append(("Queues", topic.verdict, told if len(topic.queues) > 1 else ""))
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, tag("small", told) if told else ""))
            for name, value, told in facts
        ),
        class_="facts",
    )


def _rate(topic: TopicFigures) -> str:
    return "" if topic.rate is None else f"{words.count(topic.rate)} per second"


def _remarks(topic: TopicFigures) -> list[Html]:
    """What is odd about the messages, each with its number."""
    if not topic.messages:
        return [tag("p", "No messages in this time.", class_="quiet")]
    found: list[tuple[int, str, bool]] = []
    if topic.negative:
        apart = words.span(-topic.latency_min) if topic.latency_min is not None else "?"
        found.append(
            (
                topic.negative,
                f" stored before they were born, by up to {apart}: the clocks of producers and brokers differ. They are"
                " left out of the percentiles of latency.",
                True,
            )
        )
    found.append((topic.bad_bodies, " with a body that cannot be unpacked, or damaged.", True))
    found.append((topic.untimed, " with a store time that no calendar holds: they are in no window.", True))
    found.append((topic.packed, " sent compressed.", False))
    found.append((topic.retried, " that a consumer had sent back before.", False))
    return [
        tag(
            "p",
            tag("b", f"{words.count(count)} messages ({words.share(count / topic.messages)})"),
            told,
            class_="warn" if is_warning else "quiet",
        )
        for count, told, is_warning in found
        if count
    ]


# ---- charts over time --------------------------------------------------------------------------------------------


def _band(window: WindowFigures, window_ms: int) -> Band:
    told = [
        words.moment(window.start_ms),
        f"{words.count(window.messages)} messages",
        words.size(window.bytes),
    ]
    if window.latency is not None:
        told.append(f"latency p50 {words.span(window.latency.p50)}, p99 {words.span(window.latency.p99)}")
        told.append(f"max {words.span(window.latency.max)}")
    if window.negative:
        told.append(f"{words.count(window.negative)} stored before born")
    return Band(window.start_ms, window.start_ms + window_ms, " · ".join(told))


def _traffic(
    topic: TopicFigures,
    windows: Sequence[WindowFigures],
    window_ms: int,
    span: TimeSpan,
    bands: Sequence[Band],
) -> Html:
    busiest = max(windows, key=lambda window: window.messages)
    about = (
        f"Messages of {topic.topic} by the time they were stored. The most, {words.count(busiest.messages)},"
        f" in the window from {words.moment(busiest.start_ms)}."
    )
    return TimeChart(
        Caption(f"Messages in windows of {words.span(window_ms)}", about),
        span,
        [Line("messages", "a", [(window.start_ms, window.messages) for window in windows])],
        bands,
        words.short_count,
        step_ms=window_ms,
    ).draw()


def _latency(
    topic: TopicFigures,
    windows: Sequence[WindowFigures],
    window_ms: int,
    span: TimeSpan,
    bands: Sequence[Band],
) -> Html:
    told = "No message tells." if topic.latency is None else f"p99 of all {words.span(topic.latency.p99)}."
    lines = [
        Line(
            name,
            look,
            [
                (
                    window.start_ms + window_ms / 2,
                    None if window.latency is None else getattr(window.latency, name),
                )
                for window in windows
            ],
        )
        for name, look in (("max", "c"), ("p99", "b"), ("p50", "a"))
    ]
    return TimeChart(
        Caption("Born to stored", f"Latency percentiles of {topic.topic} in each window. {told}"),
        span,
        lines,
        bands,
        words.span,
        is_log=True,
    ).draw()


def _crowding(
    topic: TopicFigures,
    windows: Sequence[WindowFigures],
    window_ms: int,
    span: TimeSpan,
    bands: Sequence[Band],
) -> Html:
    """Both as parts of a window's messages, so that they fit on one scale."""
    half, queues = window_ms / 2, len(topic.queues)
    lines = [
        Line(
            "busiest queue",
            "a",
            [(one.start_ms + half, None if one.skew is None else one.skew / queues) for one in windows],
        )
    ]
    if topic.keys:
        shares = [
            (one.start_ms + half, one.hot_key_messages / one.messages if one.messages else None)
            for one in windows
        ]
        lines.append(Line("hottest key", "b", shares))
    return TimeChart(
        Caption(
            "Crowding: share of a window's messages", f"How much of {topic.topic} one queue, or one key, has."
        ),
        span,
        lines,
        bands,
        words.short_share,
        levels=[("even queues", 1 / queues)] if queues > 1 else [],
    ).draw()


# ---- charts of all -----------------------------------------------------------------------------------------------


def _sizes(topic: TopicFigures) -> Html:
    columns = [
        Column(
            words.size(one.low),
            one.messages,
            f"{words.size(one.low)} to {words.size(one.high)} · {words.count(one.messages)} messages,"
            f" {words.size(one.bytes)}",
        )
        for one in topic.sizes
    ]
    most = max(topic.sizes, key=lambda one: one.messages)
    about = f"Bodies of {topic.topic} by size; most have {words.size(most.low)} to {words.size(most.high)}."
    return column_chart(Caption("Messages by size of body", about), columns, words.short_count)


def _queues(topic: TopicFigures) -> Html:
    """By number as they are, or, where they are many, from the busiest on."""
    queues = list(topic.queues)
    is_cut = len(queues) > QUEUES_SHOWN_MAX
    if is_cut:
        queues.sort(key=lambda queue: -queue.messages)
        queues = queues[: QUEUES_SHOWN_MAX // 2] + queues[-QUEUES_SHOWN_MAX // 2 :]
    caption = "The mark is the mean" + (": the busiest and the idlest" if is_cut else "")
    shown = _queue_table(topic, queues, caption)
    rest = (
        [folded(f"All {len(topic.queues)} queues", _queue_table(topic, topic.queues, ""))] if is_cut else []
    )
    return tag("div", tag("h3", "Queues"), shown, *rest)


def _queue_table(topic: TopicFigures, queues: Sequence[QueueFigures], caption: str) -> Html:
    most = max(queue.messages for queue in topic.queues)
    mean = topic.messages / len(topic.queues)
    rows: list[Sequence[Cell]] = [
        (
            bare(f"{queue.broker} {queue.queue}"),
            bare(bar(queue.messages / most, level=mean / most), "bars"),
            number(words.count(queue.messages)),
            number(words.share(queue.share)),
            number(words.size(queue.bytes)),
        )
        for queue in queues
    ]
    return table(caption, ("Queue", "", "Messages", "Share", "Volume"), rows)


def _names(what: str, names: Sequence[NameFigures], there: int | None, having: int, messages: int) -> Html:
    most = max(name.messages for name in names)
    rows: list[Sequence[Cell]] = [
        (
            bare(name.name, "name"),
            bare(bar(name.messages / most, look="b" if what == "Keys" else "a"), "bars"),
            number(words.count(name.messages)),
            number(words.share(name.share)),
        )
        for name in names
    ]
    caption = f"{len(names)} of {words.count(there or 0)}; {words.share(having / messages)} of all messages have one"
    return tag("div", tag("h3", what), table(caption, (what[:-1], "", "Messages", "Share"), rows))


def _window_table(topic: TopicFigures) -> Html:
    rows: list[Sequence[Cell]] = []
    for one in topic.windows:
        late = one.latency
        rows.append(
            (
                bare(words.moment(one.start_ms)),
                number(words.count(one.messages)),
                number(words.size(one.bytes)),
                *(
                    number("–" if late is None else words.span(getattr(late, name)))
                    for name in ("p50", "p99", "max")
                ),
                number(words.count(one.negative)),
                number("–" if one.skew is None else f"{one.skew:.2f}"),
                bare(one.hot_key or "–", "name"),
                number(words.count(one.hot_key_messages)),
            )
        )
    heads = (
        "From",
        "Messages",
        "Volume",
        "p50",
        "p99",
        "Max",
        "Negative",
        "Skew",
        "Hottest key",
        "Its messages",
    )
    return table("Windows without messages are left out", heads, rows)
