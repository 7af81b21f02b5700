"""From what moment on: `10m`, `2h30m`, an ISO time, `beginning` or `end`, as a point in time."""

import re
from datetime import UTC, datetime

from bolide.model.errors import ConfigError

BEGINNING_MS = 0
CALENDAR_MS = (-62_135_596_800_000, 253_402_300_799_999)

_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}
_STEP = re.compile(r"(\d{1,12})(ms|[smhdw])")
_SPAN = re.compile(r"(?:\d{1,12}(?:ms|[smhdw]))+")


def parse_since(text: str, now_ms: int) -> int | None:
    """Milliseconds since the epoch; 0 is the beginning, None the end.

    >>> parse_since("1m30s", now_ms=100_000)
    10000
    >>> parse_since("1970-01-01T00:00:01Z", now_ms=0)
    1000
    """
    word = text.strip()
    if word in ("beginning", "start"):
        return BEGINNING_MS
    if word in ("end", "now"):
        return None
    if _SPAN.fullmatch(word):
        span_ms = sum(int(number) * _UNIT_MS[unit] for number, unit in _STEP.findall(word))
        return max(BEGINNING_MS, now_ms - span_ms)
    try:
        moment = datetime.fromisoformat(word)
        return BEGINNING_MS if moment.year < 1970 else max(BEGINNING_MS, round(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text[:64]!r} is no moment: give a span (10m, 2h30m, 1d), an ISO time (2026-01-31T10:00),"
            " 'beginning' or 'end'"
        ) from None


def is_in_calendar(moment_ms: int) -> bool:
    """Whether a year from 1 to 9999 holds it: clients and damaged records may claim any time."""
    return CALENDAR_MS[0] <= moment_ms <= CALENDAR_MS[1]


def format_moment(moment_ms: int) -> str:
    """ISO with milliseconds in UTC, as `parse_since` reads it; a time that no calendar holds as its number.

    >>> format_moment(1000)
    '1970-01-01T00:00:01.000Z'
    """
    if not is_in_calendar(moment_ms):
        return f"{moment_ms}ms"
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment_ms % 1000:03d}Z"
