"""Moments as people type them.

Back, for `--since`: `10m`, `2 hours ago`, `yesterday`, `10:30`, an ISO time, milliseconds, `beginning` or `end`; ahead,
for `--at`: `10:30`, `tomorrow`, an ISO time, milliseconds; and spans, for `--in`.
"""

import re
from datetime import UTC, datetime, time, timedelta

from bolide.model.errors import ConfigError
from bolide.model.moments import MILLISECONDS_FROM, SECONDS_FROM

BEGINNING_MS = 0
CALENDAR_MS = (-62_135_596_800_000, 253_402_300_799_999)

DAY_MS = 86_400_000
_UNIT_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), DAY_MS),
    **dict.fromkeys(("w", "week", "weeks"), 7 * DAY_MS),
}
_STEP = re.compile(r"([0-9]{1,12}) *([a-z]+) *")
_SPAN = re.compile(rf"(?:{_STEP.pattern})+")
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?")
_NUMBER = re.compile(r"[0-9]{1,18}")


def parse_since(text: str, now_ms: int) -> int | None:
    """Milliseconds since the epoch; 0 is the beginning, None the end.  Without a zone, times are local ones.

    >>> parse_since("1m30s", now_ms=100_000), parse_since("90 seconds ago", now_ms=100_000)
    (10000, 10000)
    >>> parse_since("1970-01-01T00:00:01Z", now_ms=0)
    1000
    """
    word = text.strip()
    name = word.lower()
    if name in ("beginning", "start"):
        return BEGINNING_MS
    if name in ("end", "now"):
        return None
    span_ms = _span_ms(name.removeprefix("-").removesuffix("ago"))
    if span_ms is not None:
        return max(BEGINNING_MS, now_ms - span_ms)
    moment_ms = _number(name)
    if moment_ms is None and name in ("today", "yesterday"):
        moment_ms = _midnight(now_ms, -(name == "yesterday"))
    try:
        return _calendar_time(word, now_ms, ahead=False) if moment_ms is None else moment_ms
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text[:64]!r} is no moment: give a span (10m, 2h30m, '3 days ago'), a time (2026-01-31T10:00,"
            " '2026-01-31 10:00', 10:00, yesterday), milliseconds as messages carry them, 'beginning' or 'end'"
        ) from None


def parse_ahead(text: str, now_ms: int) -> int:
    """A moment that is still to come; a time alone is the next time that the clock shows it.

    >>> parse_ahead("1970-01-01T00:00:01Z", now_ms=0)
    1000
    """
    word = text.strip()
    moment_ms = _number(word)
    if moment_ms is None and word.lower() == "tomorrow":
        moment_ms = _midnight(now_ms, 1)
    try:
        moment_ms = _calendar_time(word, now_ms, ahead=True) if moment_ms is None else moment_ms
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text[:64]!r} is no time: give one (2026-01-31T10:00, '2026-01-31 10:00', 10:00, tomorrow) or"
            " milliseconds since 1970; a span from now on is --in"
        ) from None
    if moment_ms <= now_ms:
        raise ConfigError(f"{text[:64]!r} is over ({format_moment(moment_ms)}): give a time that is to come")
    return moment_ms


def parse_span(text: str) -> int:
    """Milliseconds.

    >>> parse_span("1m30s"), parse_span("2 hours")
    (90000, 7200000)
    """
    span_ms = _span_ms(text.strip().lower())
    if span_ms is None:
        raise ConfigError(f"{text[:64]!r} is no span: give one like 90s, 10m, 2h30m or '3 days'")
    return span_ms


def _span_ms(word: str) -> int | None:
    if not _SPAN.fullmatch(word):
        return None
    steps = _STEP.findall(word)
    if not all(unit in _UNIT_MS for _, unit in steps):
        return None
    return sum(int(number) * _UNIT_MS[unit] for number, unit in steps)


def _number(word: str) -> int | None:
    """A bare number is a point in time: seconds as `date +%s` prints them, or milliseconds as messages carry them."""
    number = int(word) if _NUMBER.fullmatch(word) else 0
    if number >= MILLISECONDS_FROM:
        return number
    return number * 1000 if number >= SECONDS_FROM else None


def _midnight(now_ms: int, days: int) -> int:
    """Of the day so many days from today."""
    return _ms(datetime.combine(_local(now_ms).date() + timedelta(days), time()))


def _calendar_time(word: str, now_ms: int, *, ahead: bool) -> int:
    """ISO, with any sign between date and time; a time alone is the last time that the clock showed it, or the next."""
    if _CLOCK.fullmatch(word):
        hours, _, rest = word.partition(":")
        clock = time.fromisoformat(f"{int(hours):02d}:{rest}")
        today = _local(now_ms).date()
        moment_ms = _ms(datetime.combine(today, clock))
        if (moment_ms > now_ms) == ahead:
            return moment_ms
        return _ms(datetime.combine(today + timedelta(1 if ahead else -1), clock))
    moment = datetime.fromisoformat(word)
    return BEGINNING_MS if moment.year < 1970 else max(BEGINNING_MS, _ms(moment))


def _local(moment_ms: int) -> datetime:
    return datetime.fromtimestamp(moment_ms / 1000).astimezone()


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


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
