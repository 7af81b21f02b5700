"""Charts: shapes where the values are, marks that people think in."""

import re

import pytest

from bolide.pipeline.stats import words
from bolide.pipeline.stats.charts import Band, Caption, Column, Line, TimeChart, bar, column_chart, sparkline
from bolide.pipeline.stats.markup import Html, tag, text
from bolide.pipeline.stats.scales import Scale, TimeSpan, scale_for
from tests.unit.pipeline.stats.samples import NOON_MS, Page

CAPTION = Caption("Messages", "some messages")


def paths(chart: Html, kind: str) -> list[str]:
    return [str(one["d"]) for one in Page(chart).of("path") if str(one["class"]).startswith(kind)]


def test_steps_are_as_high_as_their_values_and_as_wide_as_their_windows() -> None:
    lines = [Line("messages", "a", [(0, 50.0), (500, 100.0)])]
    chart = TimeChart(CAPTION, TimeSpan(0, 1000), lines, [], words.short_count, step_ms=500).draw()
    assert paths(chart, "area") == ["M0,1000H0V500H500V1000H500V0H1000V1000Z"]
    assert paths(chart, "line") == ["M0,1000H0V500H500H500V0H1000"]


def test_a_gap_breaks_a_line_and_a_lone_value_is_a_dot() -> None:
    points = [(0, 100.0), (250, 50.0), (500, None), (750, 25.0)]
    chart = TimeChart(CAPTION, TimeSpan(0, 1000), [Line("p50", "a", points)], [], words.span).draw()
    assert paths(chart, "line") == ["M0,0L250,500"]
    assert paths(chart, "dot") == ["M750,750h0.01"]


def test_bands_tell_the_pointer_and_escape_what_they_tell() -> None:
    bands = [Band(0, 500, "<b>5</b> messages")]
    chart = TimeChart(CAPTION, TimeSpan(0, 1000), [Line("a", "a", [(0, 1)])], bands, words.count).draw()
    (hit,) = [one for one in Page(chart).of("rect") if one["class"] == "hit"]
    assert (hit["x"], hit["width"]) == ("0", "500")
    assert "&lt;b&gt;5&lt;/b&gt; messages" in chart


@pytest.mark.parametrize("points", [[], [(0, None)], [(0, 0.0)], [(0, 1e18)], [(0, 0.001)]])
@pytest.mark.parametrize("is_log", [False, True])
def test_odd_values_make_a_chart_as_well(points: list[tuple[float, float | None]], is_log: bool) -> None:
    span = TimeSpan(0, 0)
    chart = TimeChart(CAPTION, span, [Line("a", "a", points)], [], words.short_count, is_log=is_log).draw()
    assert "nan" not in chart
    assert "inf" not in chart
    Page(chart)


def test_columns_stand_side_by_side_with_some_labels() -> None:
    columns = [Column(f"{number} B", number, "tip") for number in range(1, 11)]
    page = Page(column_chart(CAPTION, columns, words.short_count))
    heights = [str(one["height"]) for one in page.of("rect") if str(one["class"]).startswith("fill")]
    assert heights == [str(number * 100) for number in range(1, 11)]
    assert "3 B" in page.words
    assert "2 B" not in page.words.replace("12 B", "")


def test_bars_and_sparklines_stay_in_their_cells() -> None:
    assert 'width="500"' in bar(0.5)
    assert 'width="1000"' in bar(7)
    assert 'x1="250"' in bar(0.5, level=0.25)
    assert 'd="M0,1000V500H500V0H1000V1000Z"' in sparkline([1, 2])
    Page(sparkline([]))


@pytest.mark.parametrize(
    ("most", "marks"),
    [(1, [0, 0.5, 1]), (7, [0, 2, 4, 6, 8]), (870, [0, 500, 1000]), (10**9, [0, 5 * 10**8, 10**9])],
)
def test_marks_are_round_numbers_that_reach_over_all_values(most: float, marks: list[float]) -> None:
    scale = scale_for([most])
    assert scale.marks() == marks
    assert scale(most) <= 1


def test_a_scale_by_decades_has_room_for_zero() -> None:
    scale = scale_for([0, 10_000], is_log=True)
    assert scale.marks() == [0, 1, 10, 100, 1000, 10_000]
    assert scale(0) == 0
    assert 0.9 < scale(10_000) < 1
    assert len(Scale(10**15, None).marks()) <= 7


@pytest.mark.parametrize(
    ("most_ms", "marks"),
    [
        (400, ["0 ms", "100 ms", "200 ms", "300 ms", "400 ms"]),
        (240_000, ["0 ms", "1 min", "2 min", "3 min", "4 min"]),
    ],
)
def test_marks_of_spans_are_round_in_their_units(most_ms: float, marks: list[str]) -> None:
    assert [words.span(mark) for mark in scale_for([most_ms], is_span=True).marks()] == marks


@pytest.mark.parametrize(
    ("length_ms", "first", "count"),
    [(60_000, "12:00:00", 5), (3_600_000, "12:00", 5), (7 * 86_400_000, "17 Nov", 3), (1, "12:00:00", 1)],
)
def test_marks_of_time_are_few_and_say_what_changes(length_ms: int, first: str, count: int) -> None:
    span = TimeSpan(NOON_MS, NOON_MS + length_ms)
    marks = span.marks()
    assert words.tick(marks[0], span.step_ms()) == first
    assert len(marks) == count


def test_markup_escapes_words_and_attributes_and_keeps_markup() -> None:
    made = tag("p", tag("b", "<"), 'a"b', title='"><x', class_=None)
    assert made == '<p title="&quot;&gt;&lt;x"><b>&lt;</b>a&quot;b</p>'
    assert not isinstance(str(made), Html)
    assert re.fullmatch(r"[^\x00-\x1f]*", text("\x00\x1b"))
