"""What the timer has delivered, as the log's end tells it.

A record that the timer writes, for its reader or once more for itself, names the record that it comes from.  The
place of that stands where a committed transaction has that of its half message, with all its bits turned round: a
number below zero, as no half message has.  So a start that finds an old point knows from the log behind it what must
not be delivered again.
"""

from typing import NamedTuple

from bolide.model.errors import MalformedRecord
from bolide.model.message import Property, SysFlag
from bolide.model.numbers import parse_whole
from bolide.model.pairs import parse_properties
from bolide.model.steps import Steps
from bolide.record.layout import (
    BLANK_BYTES,
    BORN_HOST_AT,
    HEAD,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    MAGIC_BLANK,
    PREPARED_OFFSET_AFTER,
    STORE_TIMESTAMP_BYTES,
    open_record,
)
from bolide.store.log import CommitLog
from bolide.store.segment import Segment
from bolide.store.timer.layout import PREVIOUS as NUMBER

RECORDS_PER_STEP = 2000
NEWEST_MS = 60_000
SOURCES_PER_LOOK = 10_000
"""Those that are too old are looked for when so many more have come."""

_NAME = (Property.TIMER_OUT_MS + "\x01").encode()


class Delivered(NamedTuple):
    sources: set[int]
    """Places of records that have been delivered, or written again, since."""
    read_ms: int
    """The newest slot of which something was delivered; 0 when nothing was."""
    newest_ms: int
    """When the last of them was stored; 0 when nothing was."""


def delivered_since(log: CommitLog, begin: int, end: int, *, newest_only: bool = False) -> Steps[Delivered]:
    """Go over the log from a record on.  With `newest_only` it may be long: what was delivered when the timer was more
    than a minute before the newest slot is not remembered."""
    sources: dict[
        int, int
    ] = {}  # with the newest slot then: their own may be older, when the clock was set back
    read_ms = newest_ms = count = 0
    at = max(begin, int(log.start))
    while at < end and (segment := log.segment_of(at)) is not None:
        place = at - segment.base
        if segment.size - place < BLANK_BYTES:
            break
        size, magic = int.from_bytes(segment.view[place : place + 4]), segment.view[place + 4 : place + 8]
        if int.from_bytes(magic) == MAGIC_BLANK:
            at = segment.base + segment.size
            continue
        if size <= HEAD.size or size > segment.size - place:
            break
        mark = _mark(segment, place)
        if mark < 0 and (found := _due(segment, place, size)) is not None:
            due, stored_ms = min(found), found[1]  # what was written again is due later than it was done
            read_ms, newest_ms = max(read_ms, due), max(newest_ms, stored_ms)
            sources[source_of(mark)] = read_ms
            if newest_only and len(sources) % SOURCES_PER_LOOK == 0:
                sources = {key: value for key, value in sources.items() if value > read_ms - NEWEST_MS}
        at += size
        count += 1
        if count % RECORDS_PER_STEP == 0:
            yield
    return Delivered(set(sources), read_ms, newest_ms)


def mark_of(source: int) -> int:
    """How the record at a place is named."""
    return ~source


def source_of(mark: int) -> int:
    return ~mark


def _mark(segment: Segment, place: int) -> int:
    """What it says of where it comes from; below zero if it says something."""
    *_, sys_flag, _ = HEAD.unpack_from(segment.view, place)
    at = place + BORN_HOST_AT + STORE_TIMESTAMP_BYTES + PREPARED_OFFSET_AFTER
    at += HOST_V6_BYTES if sys_flag & SysFlag.BORN_HOST_V6 else HOST_V4_BYTES
    at += HOST_V6_BYTES if sys_flag & SysFlag.STORE_HOST_V6 else HOST_V4_BYTES
    return int(NUMBER.unpack_from(segment.view, at)[0])


def _due(segment: Segment, place: int, size: int) -> tuple[int, int] | None:
    """Its slot and when it was stored, when the timer has written it."""
    try:
        record = open_record(segment.view, place, place + size)
    except MalformedRecord:
        return None
    text = bytes(segment.view[record.properties_at : record.end])
    if _NAME not in text:
        return None
    out_ms = parse_whole(parse_properties(text.decode("utf-8", "replace")).get(Property.TIMER_OUT_MS, ""))
    return None if out_ms is None else (out_ms, record.store_timestamp_ms)
