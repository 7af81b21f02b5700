"""Charts as inline SVG: time charts, columns, bars and sparklines.

A picture is stretched to whatever room there is, and text would be stretched with it; so an SVG here has shapes alone,
and the words of axes stand beside it in HTML, at places in percent.  What a chart shows is said in its `title` and
`desc`, its numbers in a table beside it; a look at single windows are the tooltips of `title` elements.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bolide.pipeline.stats import words
from bolide.pipeline.stats.markup import Html, join, tag
from bolide.pipeline.stats.scales import Scale, TimeSpan, scale_for

SIDE = 1000
"""Of the square that every picture is drawn in."""


@dataclass(frozen=True)
class Caption:
    title: str
    about: str
    """What is seen, in a sentence for those who do not see it, with the numbers that matter."""
    note: str = ""


@dataclass(frozen=True)
class Line:
    """Values at moments; None is a gap.  `look` names a style of the page."""

    name: str
    look: str
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True)
class Band:
    """A part of the time, with what a pointer is told there."""

    low_ms: float
    high_ms: float
    tip: str


@dataclass(frozen=True)
class TimeChart:
    """Lines over time on one scale.  The first may be an area of steps as wide as a window."""

    caption: Caption
    span: TimeSpan
    lines: Sequence[Line]
    bands: Sequence[Band]
    value: Callable[[float], str]
    """How values of the axis are written."""
    is_log: bool = False
    step_ms: int | None = None
    """With it, the first line is an area of steps, each from its moment on for so long."""
    levels: Sequence[tuple[str, float]] = field(default=())
    """Values to compare with, with their names."""

    def draw(self) -> Html:
        values = [value for line in self.lines for _, value in line.points if value is not None]
        values += [value for _, value in self.levels]
        scale = scale_for(values, is_log=self.is_log, is_span=self.value is words.span)
        shapes = [_grid(scale), *self._shapes(scale)]
        shapes += [
            tag("line", x1=0, x2=SIDE, y1=_y(scale(value)), y2=_y(scale(value)), class_="level")
            for _, value in self.levels
        ]
        shapes += [_band(self.span, band) for band in self.bands]
        return _figure(
            self.caption,
            _legend(self.lines, self.levels),
            _picture(self.caption, shapes),
            _value_axis(scale, self.value),
            _time_axis(self.span),
        )

    def _shapes(self, scale: Scale) -> list[Html]:
        shapes: list[Html] = []
        for number, line in enumerate(self.lines):
            if self.step_ms is not None and number == 0:
                shapes += _steps(self.span, scale, line, self.step_ms)
            else:
                shapes += _strokes(self.span, scale, line)
        return shapes


@dataclass(frozen=True)
class Column:
    label: str
    value: float
    tip: str


def column_chart(caption: Caption, columns: Sequence[Column], value: Callable[[float], str]) -> Html:
    """Columns side by side, with a label under each, or under some where they are many."""
    scale = scale_for([column.value for column in columns])
    width = SIDE / max(1, len(columns))
    shapes = [_grid(scale)]
    for number, column in enumerate(columns):
        height = scale(column.value) * SIDE
        place = {"x": _n(number * width + width * 0.08), "width": _n(width * 0.84)}
        shapes.append(tag("rect", **place, y=_n(SIDE - height), height=_n(height), class_="fill a"))
        hit = {"x": _n(number * width), "width": _n(width), "y": 0, "height": SIDE}
        shapes.append(_hit(hit, column.tip))
    every = -(-len(columns) // 8)
    labels = [
        tag("span", column.label, style=f"left:{(number + 0.5) / len(columns):.2%}")
        for number, column in enumerate(columns)
        if number % every == 0
    ]
    return _figure(
        caption,
        Html(""),
        _picture(caption, shapes),
        _value_axis(scale, value),
        tag("div", *labels, class_="x", aria_hidden="true"),
    )


def bar(part: float, *, level: float | None = None, look: str = "a") -> Html:
    """A bar for a cell of a table, from 0 to 1 of its width; `level` is where a mark stands."""
    shapes = [
        tag("rect", x=0, y=0, height=10, width=_n(max(0.0, min(1.0, part)) * SIDE), class_=f"fill {look}")
    ]
    if level is not None:
        at = _n(min(1.0, level) * SIDE)
        shapes.append(tag("line", x1=at, x2=at, y1=0, y2=10, class_="mean"))
    return tag(
        "svg", *shapes, class_="bar", viewBox=f"0 0 {SIDE} 10", preserveAspectRatio="none", aria_hidden="true"
    )


def sparkline(values: Sequence[float]) -> Html:
    """A word-sized picture of how something went."""
    scale = scale_for(values)
    width = SIDE / max(1, len(values))
    points = [f"M0,{SIDE}"]
    for number, value in enumerate(values):
        points.append(f"V{_y(scale(value))}H{_n((number + 1) * width)}")
    return tag(
        "svg",
        tag("path", d=f"{''.join(points)}V{SIDE}Z", class_="fill a"),
        class_="spark",
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


# ---- shapes ------------------------------------------------------------------------------------------------------


def _steps(span: TimeSpan, scale: Scale, line: Line, step_ms: int) -> list[Html]:
    """An area and its upper edge; what lies between two steps is nothing."""
    area, edge = [f"M0,{SIDE}"], [f"M0,{SIDE}"]
    for moment_ms, value in line.points:
        left, right = _n(span(moment_ms) * SIDE), _n(span(moment_ms + step_ms) * SIDE)
        height = _y(scale(value or 0))
        area.append(f"H{left}V{height}H{right}V{SIDE}")
        edge.append(f"{'H' if value else 'M'}{left}{'' if value else f',{SIDE}'}V{height}H{right}")
    shapes = [tag("path", d=f"{''.join(area)}Z", class_=f"area {line.look}")]
    return [*shapes, tag("path", d="".join(edge), class_=f"line {line.look}")]


def _strokes(span: TimeSpan, scale: Scale, line: Line) -> list[Html]:
    """A stroke for each run of values without a gap; a lone value is a dot."""
    runs: list[list[str]] = [[]]
    for moment_ms, value in line.points:
        if value is None:
            runs.append([])
        else:
            runs[-1].append(f"{_n(span(moment_ms) * SIDE)},{_y(scale(value))}")
    found: list[Html] = []
    for run in filter(None, runs):
        is_dot = len(run) == 1
        d = f"M{run[0]}h0.01" if is_dot else f"M{'L'.join(run)}"
        found.append(tag("path", d=d, class_=f"{'dot' if is_dot else 'line'} {line.look}"))
    return found


def _grid(scale: Scale) -> Html:
    return join(
        tag("line", x1=0, x2=SIDE, y1=_y(scale(mark)), y2=_y(scale(mark)), class_="grid")
        for mark in scale.marks()
    )


def _band(span: TimeSpan, band: Band) -> Html:
    left, right = span(band.low_ms) * SIDE, span(band.high_ms) * SIDE
    return _hit({"x": _n(left), "width": _n(max(0.1, right - left)), "y": 0, "height": SIDE}, band.tip)


def _hit(place: dict[str, object], tip: str) -> Html:
    return tag("rect", tag("title", tip), **place, class_="hit")


def _y(part: float) -> str:
    """Heights grow upwards, and those of SVG downwards."""
    return _n(SIDE - part * SIDE)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


# ---- what stands around them -------------------------------------------------------------------------------------


def _picture(caption: Caption, shapes: Sequence[Html]) -> Html:
    return tag(
        "svg",
        tag("title", caption.title),
        tag("desc", caption.about),
        *shapes,
        role="img",
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
    )


def _figure(caption: Caption, legend: Html, *plot: Html) -> Html:
    note = tag("span", caption.note, class_="note") if caption.note else Html("")
    return tag(
        "figure",
        tag("figcaption", tag("b", caption.title), " ", legend, note),
        tag("div", *plot, class_="plot"),
    )


def _legend(lines: Sequence[Line], levels: Sequence[tuple[str, float]]) -> Html:
    """Where there is more to see than what the title says."""
    names = [tag("span", line.name, class_=f"key {line.look}") for line in lines if len(lines) > 1]
    return join([*names, *(tag("span", name, class_="key mark") for name, _ in levels)])


def _value_axis(scale: Scale, value: Callable[[float], str]) -> Html:
    marks = [tag("span", value(mark), style=f"bottom:{scale(mark):.2%}") for mark in scale.marks()]
    return tag("div", *marks, class_="y", aria_hidden="true")


def _time_axis(span: TimeSpan) -> Html:
    step_ms = span.step_ms()
    marks = [tag("span", words.tick(mark, step_ms), style=f"left:{span(mark):.2%}") for mark in span.marks()]
    return tag("div", *marks, class_="x", aria_hidden="true")
