"""Moments as users write them."""

import pytest

from bolide.cli.since import format_moment, parse_since
from bolide.model.errors import ConfigError

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
    ],
)
def test_a_moment_is_a_span_back_an_iso_time_or_the_beginning(text: str, moment_ms: int) -> None:
    assert parse_since(text, NOW_MS) == moment_ms


@pytest.mark.parametrize("text", ["end", "now", " end "])
def test_the_end_is_none(text: str) -> None:
    assert parse_since(text, NOW_MS) is None


@pytest.mark.parametrize("text", ["", "10", "m", "10x", "yesterday", "10m ago", "-5m"])
def test_what_is_no_moment_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ConfigError, match="10m"):
        parse_since(text, NOW_MS)


def test_what_is_shown_can_be_read_back() -> None:
    assert parse_since(format_moment(NOW_MS + 7), 0) == NOW_MS + 7
