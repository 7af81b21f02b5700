"""The page of a report: right numbers, everything escaped, nothing from elsewhere."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bolide.pipeline.stats.figures import NameFigures, QueueFigures, Report
from bolide.pipeline.stats.page import report_page, write_page
from tests.unit.pipeline.stats.samples import HISTORY, LAG, NOTHING, ORDERS, REPORT, Page

HOSTILE = "\"><script>alert(1)</script><img src=//evil onerror=x>\x1b[2J\u202e'&amp;"


def hostile_report() -> Report:
    """The worst of words in every place that others fill."""
    name = NameFigures(HOSTILE, 10, 10, 0.5)
    windows = [replace(window, hot_key=HOSTILE) for window in ORDERS.windows]
    queues = [QueueFigures(HOSTILE, 0, 12_345, 1, 1.0)]
    topic = replace(ORDERS, topic=HOSTILE, keys=[name], tags=[name], windows=windows, queues=queues)
    lag_queues = [replace(queue, broker=HOSTILE) for queue in LAG.queues]
    return replace(
        REPORT,
        source=HOSTILE,
        notes=[HOSTILE],
        topics=[topic, replace(NOTHING, topic=HOSTILE)],
        lags=[replace(LAG, group=HOSTILE, topic=HOSTILE, queues=lag_queues)],
        lag_history=[replace(sample, group=HOSTILE, topic=HOSTILE) for sample in HISTORY],
    )


def test_the_figures_stand_on_the_page_as_people_write_them() -> None:
    words = Page(report_page(REPORT)).words
    for told in (
        "12,345",
        "3 MiB",
        "1.95 KiB",
        "40 ms",
        "1.5 s",
        "customer-7",
        "7.3 %",
        "PAID",
        "2 of 4,321",
    ):
        assert told in words, told
    assert "12 messages (< 0.1 %)  stored before they were born, by up to 35 ms" in words
    assert "7 messages (< 0.1 %)  sent compressed" in words
    assert "2023-11-15 12:00:00" in words
    assert "1 min 30 s" in words


def test_whatever_others_wrote_is_text_and_nothing_else() -> None:
    html = report_page(hostile_report())
    page = Page(html)
    assert page.of("script") == page.of("img") == []
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert "<script>alert(1)</script>" in page.words  # to be read, as it was sent
    assert "\x1b" not in html
    assert "\u202e" not in html


@pytest.mark.parametrize("report", [REPORT, hostile_report()], ids=["plain", "hostile"])
def test_a_page_asks_nobody_for_anything(report: Report) -> None:
    html = report_page(report)
    page = Page(html)
    links = [attributes["href"] for attributes in page.of("a")]
    assert all(link is not None and link.startswith("#topic-") for link in links)
    for name in ("link", "script", "iframe", "object", "embed", "form", "base"):
        assert page.of(name) == []
    assert not any(
        name in ("src", "srcset", "data", "action") for _, attributes in page.elements for name in attributes
    )
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert "url(" not in style
    assert "@import" not in style
    policies = [
        one["content"] for one in page.of("meta") if one.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_every_chart_says_what_it_shows_and_has_its_numbers_in_a_table() -> None:
    page = Page(report_page(REPORT))
    pictures = [attributes for attributes in page.of("svg") if attributes.get("role") == "img"]
    hidden = [attributes for attributes in page.of("svg") if attributes.get("aria-hidden") == "true"]
    assert len(pictures) == 6  # traffic, latency, sizes, crowding, and two of lag
    assert len(page.of("desc")) == len(pictures)
    assert len(pictures) + len(hidden) == len(page.of("svg"))
    assert len(page.of("caption")) == len(page.of("table"))
    assert all(attributes.get("scope") in ("row", "col") for attributes in page.of("th"))
    assert "customer-7" in page.words


def test_a_page_is_light_or_dark_and_fits_a_phone() -> None:
    html = report_page(REPORT)
    assert "prefers-color-scheme: dark" in html
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in Page(html).of("meta")
    assert 'lang="en"' in html


def test_several_topics_have_a_table_of_contents_with_the_same_time() -> None:
    page = Page(report_page(replace(REPORT, topics=[ORDERS, replace(ORDERS, topic="payments")])))
    assert [attributes["href"] for attributes in page.of("a")] == ["#topic-0", "#topic-1"]
    ids = [attributes["id"] for attributes in page.of("section")]
    assert ids == ["topic-0", "topic-1", "groups"]


@pytest.mark.parametrize("topics", [(), (NOTHING,)], ids=["no topic", "an empty topic"])
def test_a_report_of_nothing_is_a_page_that_says_so(topics: tuple[()]) -> None:
    page = Page(report_page(replace(REPORT, topics=topics, lags=(), lag_history=())))
    assert "No messages" in page.words
    assert page.of("svg") == []


def test_without_a_history_the_page_says_how_to_have_one() -> None:
    words = Page(report_page(replace(REPORT, lag_history=()))).words
    assert "--lag-history FILE" in words
    assert "45" in words


def test_a_page_replaces_an_older_one_only_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "report.html"
    write_page(REPORT, file)
    before = file.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", lambda *words, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write_page(replace(REPORT, topics=()), file)
    assert file.read_text() == before
    assert list(tmp_path.iterdir()) == [file]
