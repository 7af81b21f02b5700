"""The history of a message that fails: one entry for each attempt, kept in a property of the message itself.

    BOLIDE_ATTEMPTS    2026-11-16T09:30:00.123Z 10.0.0.7:51422 3; 2026-11-16T09:30:10.456Z 10.0.0.8:40112 dead

Each entry is the moment at which the attempt was reported to have failed, the consumer's address and the delay level
the message waited with then, or `dead`.  The text is short and bounded, and the oldest entries give way first: then
it begins with how many are missing, as in `(12 earlier)`.
"""

import re
from datetime import UTC, datetime, timedelta

ATTEMPTS_BYTES_MAX = 2048
"""Some forty attempts."""

DEAD = "dead"

_BETWEEN = "; "
_EARLIER = re.compile(r"\((\d{1,9}) earlier\)")
_EARLIER_BYTES = len("(999999999 earlier); ")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def attempt(at_ms: int, host: str, level: int | None) -> str:
    """One entry; no level for the attempt after which the message is dead."""
    moment = (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds")
    return f"{moment.replace('+00:00', 'Z')} {host} {DEAD if level is None else level}"


def with_attempt(history: str | None, entry: str, bytes_max: int) -> str | None:
    """The history with one more entry and without as many of the first as do not fit; None when nothing does."""
    entries = history.split(_BETWEEN) if history else []
    missing = 0
    if entries and (earlier := _EARLIER.fullmatch(entries[0])):
        missing = int(earlier[1])
        del entries[0]
    entries.append(entry)
    room = min(bytes_max, ATTEMPTS_BYTES_MAX) - _EARLIER_BYTES
    kept: list[str] = []
    for one in reversed(entries):
        room -= len(one.encode()) + len(_BETWEEN)
        if room < 0:
            break
        kept.append(one)
    if not kept:
        return None
    missing += len(entries) - len(kept)
    return _BETWEEN.join([f"({missing} earlier)"] * bool(missing) + kept[::-1])
