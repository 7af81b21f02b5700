"""From record to record through a log that may be damaged, over the damage to the sound records behind it.

The steps are those of recovery (`walk.LogWalk`): a record is sound when its lengths agree, it says the position it is
at, its checksums match and its topic is a name.  Where none is, the scan looks for the next one: where this one says
that it ends, if its queue agrees, else wherever the bytes of a record's magic stand.  What lies between is a `Hole`.

Not every sound record belongs to the log.  Behind its end there may be old ones that a recovery has cut, each still
at its own place.  A record behind a hole counts only if its queue has an entry for it; where the queue has nothing
to say, its store time decides, which never goes back along a log.
"""

import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from bolide.model.message import SysFlag
from bolide.offline.files import StoreFiles
from bolide.offline.texts import FINE, LAST_UNSEALED, LOST_CHECKSUM, ODD_PROPERTIES, check_texts
from bolide.record.checksum import ABSENT, record_checksum
from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import BLANK_BYTES, FIXED_BYTES, LOG_OFFSET_AT, MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from bolide.store.queue_entry import GAP_SIZE
from bolide.store.walk import BLANK, UNSOUND

STRETCH_BYTES = 8 * 1024 * 1024
TOPIC_BYTES_MAX = 255

UNQUEUED_MASK = int(SysFlag.PREPARED | SysFlag.INNER_BATCH)
"""A record with one of these bits has no entry in a consume queue: prepared, rolled back, or a batch in one."""

_SIZE_AND_MAGIC = struct.Struct(">II")
_PLACE = struct.Struct(">q")
_MAGICS = (MAGIC_V1.to_bytes(4, "big"), MAGIC_V2.to_bytes(4, "big"))
_MAGIC_HEAD = _MAGICS[0][:3]
_SEARCH_BYTES = 1024 * 1024

Progress = Callable[[int], None]
"""Told how many more bytes are done."""


class Walk(Protocol):
    """What a scan steps with: `walk.LogWalk`."""

    @property
    def store_timestamp_ms(self) -> int: ...

    def go(
        self, segment: memoryview, base: int, position: int, limit: int, check_crc: bool
    ) -> tuple[int, int]: ...


@dataclass(slots=True)
class Stretch:
    """A part of one segment full of sound records, which the walk has met."""

    base: int
    at: int
    end: int


@dataclass(slots=True)
class Hole:
    """A part of the log without sound records, with sound ones behind it; it does not cross a segment."""

    at: int
    end: int
    why: str
    fills_segment: bool  # the next sound record is in another segment
    stored_ms: int  # store time of the record before it, or behind it
    is_missing: bool = False  # there is not even a file
    lost: list[tuple[str, int, int]] = field(default_factory=list)
    """Topic, queue and offset of entries that point here."""


@dataclass(slots=True)
class OddBlank:
    """A blank record that does not fill its segment exactly."""

    at: int
    size: int
    room: int


Step = Stretch | Hole | OddBlank


class LogScan:
    """One walk through the log of a store."""

    def __init__(self, store: StoreFiles, walk: Walk, progress: Progress | None = None) -> None:
        self._store = store
        self._log = store.log
        self._walk = walk
        self._progress = progress or _nobody_watches
        self._sealed = False  # whether the last record has a checksum of the whole
        self.end = store.log.start
        """Behind the last sound record; final when the scan is over."""
        self.odd_properties: dict[int, None] = {}
        """Records whose properties are no pairs: a client sent them so, or they are damaged."""

    def run(self, start: int | None = None) -> Iterator[Step]:
        """Everything in order, from `start`, where a record must begin."""
        at: int | None = self._log.start if start is None else start
        while at is not None:
            base = self._log.base_of(at)
            if base is not None:
                before = at
                at = yield from self._segment(base, at)
                self._progress(base + self._log.file_bytes - max(before, self.end))
                continue
            following = self._following(at)
            while following is not None and at < following:
                limit = at - at % self._log.file_bytes + self._log.file_bytes
                stored_ms = self._time_at(following)
                yield Hole(at, limit, "the segment is missing", True, stored_ms, is_missing=True)
                at = limit
            at = following

    def _segment(self, base: int, at: int) -> Generator[Step, None, int | None]:
        """Walk one segment; the returned place is where the log goes on."""
        limit = base + self._log.file_bytes
        while at < limit:
            self._store.check()
            view = self._log.view(base)
            position, why = self._step(view, base, at - base)
            if base + position > at:
                yield Stretch(base, at, base + position)
                self._progress(base + position - at)
                at = self.end = base + position
                continue
            self.end = at
            if why == BLANK and self._following(limit) is not None:
                break
            blank = _odd_blank(view, at, base, limit)
            if blank is not None and self._following(limit) is not None:
                yield blank
                break
            found = self._resume(at)
            if found is None:
                return None
            stays = found < limit
            why_not = self._why_not(view, at - base, base)
            yield Hole(at, found if stays else limit, why_not, not stays, self._time_at(found))
            if not stays:
                break
            at = found
        return limit

    def _step(self, view: memoryview, base: int, position: int) -> tuple[int, int]:
        """Walk some records; stops before one that has lost its checksum as before one that is not sound."""
        start, limit = position, position + STRETCH_BYTES
        while position < limit:
            position, why, self._sealed = check_texts(view, position, limit, self._sealed)
            if why == FINE:
                break
            behind = position + int.from_bytes(view[position : position + 4], "big")
            if why == LOST_CHECKSUM or (why == LAST_UNSEALED and self._is_sealed_from(base + behind)):
                return (
                    (start, UNSOUND)
                    if position == start
                    else self._walk.go(view, base, start, position, True)
                )
            if why == ODD_PROPERTIES:
                self.odd_properties[base + position] = None
            else:
                self._sealed = False
            position = behind
        # A byte further where something else is in the way, so that the walk says what.
        return self._walk.go(view, base, start, position + 1 if position < limit else limit, True)

    def _is_sealed_from(self, at: int) -> bool:
        """Whether the next record, wherever it is, has a checksum of the whole."""
        found = self._resume(at) if self._log.base_of(at) is not None else None
        head = None if found is None else sound_at(self._store, found)
        if found is None or head is None:
            return False
        base = found - found % self._log.file_bytes
        return record_checksum(bytes(self._log.view(base)[found - base : found - base + head.size])) != ABSENT

    def _following(self, limit: int) -> int | None:
        """The next segment there is."""
        return next((base for base in self._log.bases if base >= limit), None)

    def _time_at(self, following: int) -> int:
        """Store time of the last record before a hole, or of the first one behind it."""
        head = sound_at(self._store, following)
        return self._walk.store_timestamp_ms or (0 if head is None else head.store_timestamp_ms)

    def _why_not(self, view: memoryview, at: int, base: int) -> str:
        """In words, why there is no sound record."""
        room = len(view) - at
        if room < BLANK_BYTES:
            return f"{room} bytes are left, too few for a record"
        size, magic = _SIZE_AND_MAGIC.unpack_from(view, at)
        if size == 0 and magic == 0:
            return "zeros where a record should be"
        if magic == MAGIC_BLANK:
            return "a blank record, but no segment follows"
        if magic not in (MAGIC_V1, MAGIC_V2):
            return f"the magic is {magic:#010x}, that of no record"
        if not FIXED_BYTES <= size <= room:
            return f"the record says it has {size} bytes where {room} are left"
        head = inspect_record(view, at, len(view), False)
        if not isinstance(head, RecordHead):
            return "the lengths of body, topic and properties do not add up to the record's size"
        if head.log_offset != base + at:
            return f"the record says it is at {head.log_offset}"
        if not isinstance(inspect_record(view, at, len(view), True), RecordHead):
            return "a checksum does not match"
        if not is_topic(head.topic):
            return "the topic is none"
        if self._sealed and record_checksum(bytes(view[at : at + head.size])) == ABSENT:
            return "the record has lost its checksum, which those around it have"
        return "the properties have holes"

    # ---- finding the way back ------------------------------------------------------------------------------

    def _resume(self, broken_at: int) -> int | None:
        """The next sound record that belongs to the log."""
        base = self._log.base_of(broken_at)
        assert base is not None
        view = self._log.view(base)
        in_file = broken_at - base
        ends_here = bytes(view[in_file : in_file + BLANK_BYTES]) == bytes(BLANK_BYTES)
        head = inspect_record(view, in_file, len(view), False)
        if isinstance(head, RecordHead) and self._has_entry(head, broken_at):
            claimed = broken_at + head.size  # its queue says the same, so what lies inside is not looked at
            if self._belongs(claimed, ends_here=False):
                return claimed
        for number in (number for number in self._log.bases if number >= base):
            start = in_file + 1 if number == base else 0
            for at in self._candidates(number, start):
                if self._belongs(at, ends_here):
                    return at
        return None

    def _candidates(self, base: int, start: int) -> Iterator[int]:
        """Places behind `start` where the bytes of a magic stand where a record has them."""
        view = self._log.view(base)
        for first, last in self._log.written(base):
            for low in range(max(start, first), last, _SEARCH_BYTES):
                block = bytes(view[low : low + _SEARCH_BYTES + 3])  # a magic may lie across two blocks
                at = block.find(_MAGIC_HEAD)
                while at >= 0:
                    if block[at : at + 4] in _MAGICS and low + at - 4 >= start:
                        yield base + low + at - 4
                    at = block.find(_MAGIC_HEAD, at + 1)

    def _entry_of(self, head: RecordHead) -> tuple[int, int]:
        """Place and size in the queue entry of a record's number; zeros without one."""
        queue = self._store.queues.get((head.topic.decode("utf-8", "replace"), head.queue_id))
        return (0, 0) if queue is None else queue.entry(head.queue_offset)[:2]

    def _has_entry(self, head: RecordHead, at: int) -> bool:
        return self._entry_of(head) == (at, head.size)

    def _belongs(self, at: int, ends_here: bool) -> bool:
        """Whether a record is at this place that the log reaches, and not one that a recovery has cut."""
        head = sound_at(self._store, at)
        if head is None:
            return False
        if not head.sys_flag & UNQUEUED_MASK:
            log_offset, size = self._entry_of(head)
            if (log_offset, size) == (at, head.size):
                return True
            if 0 < size < GAP_SIZE:
                return False
        newest_ms = self._walk.store_timestamp_ms
        return head.store_timestamp_ms > newest_ms if ends_here else head.store_timestamp_ms >= newest_ms


def sound_at(store: StoreFiles, at: int) -> RecordHead | None:
    """The sound record that begins at this place of the log."""
    base = store.log.base_of(at) if at >= 0 else None
    if base is None:
        return None
    view, position = store.log.view(base), at - base
    if position + FIXED_BYTES > len(view) or _PLACE.unpack_from(view, position + LOG_OFFSET_AT)[0] != at:
        return None
    head = inspect_record(view, position, len(view), True)
    return head if isinstance(head, RecordHead) and is_topic(head.topic) and head.queue_offset >= 0 else None


def is_topic(topic: bytes) -> bool:
    """Whether these bytes can name a topic, which also names a folder."""
    try:
        name = topic.decode()
    except UnicodeDecodeError:
        return False
    return (
        0 < len(topic) <= TOPIC_BYTES_MAX
        and name not in (".", "..")
        and "/" not in name
        and name.isprintable()
    )


def _odd_blank(view: memoryview, at: int, base: int, limit: int) -> OddBlank | None:
    if at - base + BLANK_BYTES > len(view):
        return None
    size, magic = _SIZE_AND_MAGIC.unpack_from(view, at - base)
    return OddBlank(at, size, limit - at) if magic == MAGIC_BLANK else None


def _nobody_watches(done: int) -> None:
    """Until somebody wants to see progress."""
