"""From what moment on: `10m`, `2 hours ago`, `yesterday`, `10:30`, an ISO time, milliseconds, `beginning` or `end`."""

import re
from datetime import UTC, datetime, time, timedelta

from bolide.model.errors import ConfigError

BEGINNING_MS = 0
CALENDAR_MS = (-62_135_596_800_000, 253_402_300_799_999)

SECONDS_FROM, MILLISECONDS_FROM = 10**8, 10**11
"""A bare number is a point in time: seconds as `date +%s` prints them, or milliseconds as messages carry them.  Both of
these are in 1973; smaller numbers might mean anything."""

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
_SPAN = re.compile(rf"-?(?:{_STEP.pattern})+(?:ago)?")
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
    for read in (_span, _number, _day):
        moment_ms = read(name, now_ms)
        if moment_ms is not None:
            return max(BEGINNING_MS, moment_ms)
    try:
        return _calendar_time(word, now_ms)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{text[:64]!r} is no moment: give a span (10m, 2h30m, '3 days ago'), a time (2026-01-31T10:00,"
            " '2026-01-31 10:00', 10:00, yesterday), milliseconds as messages carry them, 'beginning' or 'end'"
        ) from None


def _span(word: str, now_ms: int) -> int | None:
    if not _SPAN.fullmatch(word):
        return None
    steps = _STEP.findall(word.removesuffix("ago"))
    if not steps or not all(unit in _UNIT_MS for _, unit in steps):
        return None
    return now_ms - sum(int(number) * _UNIT_MS[unit] for number, unit in steps)


def _number(word: str, now_ms: int) -> int | None:
    number = int(word) if _NUMBER.fullmatch(word) else 0
    if number >= MILLISECONDS_FROM:
        return number
    return number * 1000 if number >= SECONDS_FROM else None


def _day(word: str, now_ms: int) -> int | None:
    """From midnight on."""
    if word not in ("today", "yesterday"):
        return None
    day = _local(now_ms).date() - timedelta(days=word == "yesterday")
    return _ms(datetime.combine(day, time()))


def _calendar_time(word: str, now_ms: int) -> int:
    """ISO, with any sign between date and time; a time alone is the last time that the clock showed it."""
    if re.fullmatch(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", word):
        hours, _, rest = word.partition(":")
        clock = time.fromisoformat(f"{int(hours):02d}:{rest}")
        today = _local(now_ms).date()
        moment_ms = _ms(datetime.combine(today, clock))
        return moment_ms if moment_ms <= now_ms else _ms(datetime.combine(today - timedelta(days=1), clock))
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
