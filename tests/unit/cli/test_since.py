"""Moments as users write them."""

import time
from collections.abc import Iterator

import pytest

from bolide.cli.layout import compile_format
from bolide.cli.since import format_moment, parse_ahead, parse_since, parse_span
from bolide.model.errors import ConfigError
from tests.unit.cli.samples import SAMPLE

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("10m", NOW_MS - 600_000),
        ("2h30m", NOW_MS - 9_000_000),
        ("1d", NOW_MS - 86_400_000),
        ("250ms", NOW_MS - 250),
        ("beginning", 0),
        ("2023-11-14T22:13:20Z", NOW_MS),
        ("2023-11-14T23:13:20.500+01:00", NOW_MS + 500),
        ("999999999999w", 0),
        ("10m ago", NOW_MS - 600_000),
        ("-5m", NOW_MS - 300_000),
        ("2 hours 30 min ago", NOW_MS - 9_000_000),
        ("3 days", NOW_MS - 3 * 86_400_000),
        ("1700000000000", NOW_MS),
        ("1700000000", NOW_MS),
        ("2023-11-14 22:13:20Z", NOW_MS),
        ("9223372036854775807"[:18], 922_337_203_685_477_580),
    ],
)
def test_a_moment_is_a_span_back_an_iso_time_or_the_beginning(text: str, moment_ms: int) -> None:
    assert parse_since(text, NOW_MS) == moment_ms


@pytest.mark.parametrize("text", ["end", "now", " end "])
def test_the_end_is_none(text: str) -> None:
    assert parse_since(text, NOW_MS) is None


@pytest.mark.parametrize(
    "text", ["", "10", "m", "10x", "ago", "10 ago", "tomorrow", "25:00", "12345678901234567890123"]
)
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="10m"):
        parse_since(text, NOW_MS)


def test_what_is_shown_can_be_read_back() -> None:
    assert parse_since(format_moment(NOW_MS + 7), 0) == NOW_MS + 7


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An hour ahead of UTC: NOW is 23:13:20 there."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("today", "2023-11-13T23:00Z"),
        ("yesterday", "2023-11-12T23:00Z"),
        ("2023-11-14 10:00", "2023-11-14T09:00Z"),
        ("2023-11-14", "2023-11-13T23:00Z"),
        ("10:00", "2023-11-14T09:00Z"),
        ("9:30", "2023-11-14T08:30Z"),
        ("23:30", "2023-11-13T22:30Z"),
        ("23:13:20", "2023-11-14T22:13:20Z"),
    ],
)
@pytest.mark.usefixtures("in_berlin")
def test_days_and_times_without_a_zone_are_local_and_in_the_past(text: str, utc: str) -> None:
    assert parse_since(text, NOW_MS) == parse_since(utc, NOW_MS)


def test_what_tail_prints_as_milliseconds_is_a_moment() -> None:
    printed = compile_format("%S")(SAMPLE).decode()
    assert parse_since(printed, NOW_MS) == SAMPLE.store_timestamp_ms


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("tomorrow", "2023-11-14T23:00Z"),
        ("23:30", "2023-11-14T22:30Z"),
        ("10:00", "2023-11-15T09:00Z"),
        ("23:13:20", "2023-11-15T22:13:20Z"),
        ("2023-11-15", "2023-11-14T23:00Z"),
        ("2023-11-15 10:00", "2023-11-15T09:00Z"),
        ("2023-11-14T22:13:21Z", "2023-11-14T22:13:21Z"),
        ("1700000001", "2023-11-14T22:13:21Z"),
        ("1700000001000", "2023-11-14T22:13:21Z"),
    ],
)
@pytest.mark.usefixtures("in_berlin")
def test_a_time_ahead_is_the_next_one(text: str, utc: str) -> None:
    assert parse_ahead(text, NOW_MS) == parse_since(utc, NOW_MS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10m", "a span from now on is --in"),
        ("yesterday", "is no time"),
        ("", "is no time"),
        ("25:00", "is no time"),
        ("2023-11-14T22:13:20Z", "is over"),
        ("1999-01-01", "is over"),
    ],
)
def test_what_is_no_time_ahead_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_ahead(text, NOW_MS)


def test_spans_are_read_as_for_since() -> None:
    assert [parse_span(text) for text in ("90s", "2h30m", "3 days")] == [90_000, 9_000_000, 3 * 86_400_000]
    for text in ("", "10", "-5m", "5m ago", "10:00"):
        with pytest.raises(ConfigError, match="is no span"):
            parse_span(text)
