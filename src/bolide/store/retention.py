"""Retention: whether to delete now, and how many of the oldest segments.  Pure; `cleaning.py` has the hands.

All topics share the log, so messages are deleted by whole segments, from the oldest on, and the newest segment never.

| trigger | when | deletes |
| --- | --- | --- |
| HOUR | the hour of day is one of `deleteWhen` | what is older than `fileReservedTime` |
| SPACE | the disk is fuller than `diskMaxUsedSpaceRatio` | the same, at any hour |
| MANUAL | an operator asked (`DELETE_EXPIRED_COMMITLOG`), for the next 20 runs | the same, at any hour |
| FORCED | the disk is fuller than `diskSpaceCleanForciblyRatio` | the oldest, whatever their age, until it is not |

Above `diskSpaceWarningLevelRatio` the broker takes no more messages (`is_full`).

A segment is as old as its newest message.  Two things bear witness: when the first message behind it was stored, and
when its file was last written; the later one counts.  A witness from the future is wrong, because a clock was wrong
when it was written; a segment without a sound witness is at least as old as the one behind it.  Ages are measured with
`TrustedTime`, so that a clock that steps deletes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from bolide.model.errors import ConfigError

HOUR_MS = 3600 * 1000

MANUAL_RUNS = 20
"""Runs that one request of an operator is good for; ten files each (RocketMQ: MAX_MANUAL_DELETE_FILE_TIMES)."""


class Trigger(Enum):
    """Why segments are deleted, in words for the log."""

    HOUR = "older than fileReservedTime, in the hour of deleteWhen"
    SPACE = "older than fileReservedTime, and the disk is fuller than diskMaxUsedSpaceRatio"
    MANUAL = "older than fileReservedTime, and an operator asked for it"
    FORCED = "whatever its age, because the disk is fuller than diskSpaceCleanForciblyRatio"


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    reserved_ms: int = 72 * HOUR_MS
    hours: frozenset[int] = frozenset({4})
    clean_percent: int = 75
    force_percent: int = 85
    full_percent: int = 90
    may_force: bool = True
    batch_max: int = 10


class SegmentTimes(NamedTuple):
    """What is known of the time when the last message of a segment was stored; None where nothing is."""

    stored_ms: int | None
    modified_ms: int | None


def parse_hours(text: str) -> frozenset[int]:
    """Hours of the day from `deleteWhen`, which is a list like `04` or `02;14`."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not parts or not all(part.isascii() and part.isdigit() and int(part) < 24 for part in parts):
        raise ConfigError(f"deleteWhen is a list of hours from 00 to 23 like 04 or 02;14, not {text!r}")
    return frozenset(int(part) for part in parts)


def is_full(settings: RetentionSettings, used_ratio: float) -> bool:
    """Whether the disk is too full to take more messages."""
    return used_ratio * 100 > settings.full_percent


def must_force(settings: RetentionSettings, used_ratio: float) -> bool:
    """Whether messages have to go whatever their age."""
    return settings.may_force and used_ratio * 100 > min(settings.force_percent, settings.full_percent)


def why_clean(
    settings: RetentionSettings, *, hour: int, used_ratio: float, asked: bool = False
) -> Trigger | None:
    """Whether this run deletes, and the strongest reason for it."""
    if must_force(settings, used_ratio):
        return Trigger.FORCED
    if used_ratio * 100 > settings.clean_percent:
        return Trigger.SPACE
    if asked:
        return Trigger.MANUAL
    return Trigger.HOUR if hour in settings.hours else None


def count_expired(
    segments: Iterable[SegmentTimes], *, reserved_ms: int, wall_ms: int, trusted_ms: int, count_max: int
) -> int:
    """How many segments from the oldest on are expired; the first young one ends it.

    `segments` is read only as far as needed, from the oldest on and without the newest.
    """
    expired = unknown = 0
    for times in segments:
        written_ms = _last_written(times, wall_ms)
        if written_ms is None:
            unknown += 1  # at least as old as the next one
            continue
        if trusted_ms - written_ms < reserved_ms:
            break
        expired += unknown + 1
        unknown = 0
        if expired >= count_max:
            break
    return min(expired, count_max)


def _last_written(times: SegmentTimes, wall_ms: int) -> int | None:
    sound = [witness for witness in times if witness is not None and 0 < witness <= wall_ms]
    return max(sound, default=None)
