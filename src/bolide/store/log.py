"""The commit log: all messages of all topics, one after the other, in segments of equal size.

A segment's name is the log offset of its first byte, as 20 digits.  Segments are reserved on disk when they are
made, written by plain writes (a page fault for every new page of a mapping costs several times as much), and read
through a mapping, which sees the same pages.  A record never crosses a segment: what does not fit leaves a blank record
behind and starts the next one.  That one is made ahead of time, on another thread (`next_segment`); until a record
needs it, it is no part of the log.

The log is single-writer.  `end` is where the next record goes; nothing behind it has meaning.
"""

import bisect
import os
import struct

from bolide.model.errors import RecordTooLarge, StoreError
from bolide.model.offsets import LogOffset
from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import BLANK_BYTES, MAGIC_BLANK
from bolide.store.disk import Disk
from bolide.store.file_names import NUMBER_MAX, place_of
from bolide.store.folders import make_folder
from bolide.store.segment import Segment, SegmentToMake

_BLANK = struct.Struct(">II")
_PIECE_BYTES = 1 << 20
_BEGINNING_BYTES = 4096
AHEAD_BYTES = 128 * 1024
"""Zeros are written over this much at once before the first record gets there.  They change nothing, but the kernel
then holds the part in one large page, and the writes that follow cost half of what they cost page by page."""

_ZEROS = bytes(AHEAD_BYTES)

NEXT_DUE_RATIO = 0.75
"""When so much of a segment is used the next one is made."""


class CommitLog:
    """The segments of one log and the place where it grows."""

    def __init__(self, disk: Disk, folder: str, segment_bytes: int, *, ahead: bool = True) -> None:
        """`ahead` costs a log twice the bytes to sync: not for one whose every record waits for that."""
        self._ahead = ahead
        self._disk = disk
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._segments: list[Segment] = []
        self._bases: list[int] = []
        self.position = 0  # in the last segment
        self.last_record = -1  # where the newest record begins; -1 while that is not known
        self._next: SegmentToMake | None = None
        self.rolls = 0
        self.rolls_in_place = 0
        """Rolls for which no segment was ready: whoever appended has waited for the disk."""

    # ---- where things are ----------------------------------------------------------------------------------

    @property
    def start(self) -> LogOffset:
        """The first offset that is still stored."""
        return LogOffset(self._bases[0] if self._bases else 0)

    @property
    def end(self) -> LogOffset:
        return LogOffset(self._bases[-1] + self.position if self._bases else 0)

    @property
    def room(self) -> int:
        """What the last segment has left."""
        return self._segments[-1].size - self.position

    @property
    def current(self) -> Segment:
        return self._segments[-1]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(self._segments)

    def segment_of(self, log_offset: int) -> Segment | None:
        """The segment that holds this offset."""
        at = bisect.bisect_right(self._bases, log_offset) - 1
        if at < 0 or log_offset >= self._bases[at] + self._segments[at].size:
            return None
        return self._segments[at]

    def read(self, log_offset: int, size: int) -> bytes | None:
        """Bytes of one record; None when they are not, or no longer, in the log."""
        segment = self.segment_of(log_offset)
        at = log_offset - segment.base if segment else 0
        if segment is None or size < 0 or at + size > segment.size or log_offset + size > self.end:
            return None
        return bytes(segment.view[at : at + size])

    def head_at(self, log_offset: int, *, check_crc: bool = False) -> RecordHead | None:
        """The record that begins here, wherever the log ends; None when none does."""
        segment = self.segment_of(log_offset)
        if segment is None:
            return None
        head = inspect_record(segment.view, log_offset - segment.base, segment.size, check_crc)
        return head if isinstance(head, RecordHead) and head.log_offset == log_offset else None

    # ---- opening and growing -------------------------------------------------------------------------------

    def open(self) -> bool:
        """Map the segments that are there, or make the first one; tells whether there were any.

        Where the log ends is for recovery to find.
        """
        make_folder(self._disk, self._folder)
        self._disk.sync_dir(self._folder)  # a process that was killed may have left a segment unsynced
        names = [name for name in self._disk.list(self._folder) if name.isdigit()]
        for name in names:
            path = os.path.join(self._folder, name)
            base = place_of(name)
            if base is None or base > NUMBER_MAX - self._segment_bytes:
                raise StoreError(f"{path} has a name that no segment has: move it away")
            size = self._disk.size_of(path)
            if size < self._segment_bytes and name == names[-1] and self._is_blank(path):
                self._disk.delete(path)  # power was lost while it was made
                continue
            if size != self._segment_bytes:
                raise StoreError(
                    f"{path} has {size} bytes where mappedFileSizeCommitLog is {self._segment_bytes};"
                    " set it to the size that the files have"
                )
            if self._bases and base != self._bases[-1] + size:
                raise StoreError(f"the commit-log segment before {path} is missing")
            self._add(Segment(base, self._disk.open(path)))
        if self._segments:
            self.current.file.sync()  # likewise: its length
            return True
        self._add(self._to_make(0).make())
        return False

    def next_segment(self) -> SegmentToMake | None:
        """The next segment, when it should be made now; None while there is time, and when it is there.

        It has to be made before the rest of the current one is full.  Not earlier than that: a store that takes few
        messages does not reserve twice the space.
        """
        if self._next is None and self.position >= self.current.size * NEXT_DUE_RATIO:
            self._next = self._to_make(self.current.base + self.current.size)
        return None if self._next is None or self._next.is_made else self._next

    def discard_next(self) -> None:
        """At a stop.  Who makes segments has ended.

        A next segment that holds nothing is not kept: nobody waits while it is made again, a stopped store takes no
        more space than it needs, and its last file is the one in which the log ends.
        """
        if self._next is not None:
            self._next.discard()
            self._next = None

    def roll(self) -> None:
        """Close the current segment with a blank record and begin the next.

        If that is not ready it is made here and now.  If that fails the log is as it was.
        """
        current = self.current
        room = current.size - self.position
        assert room >= BLANK_BYTES, "every record leaves room for a blank one"
        self._next = self._next or self._to_make(current.base + current.size)
        is_ready = self._next.is_made
        segment = self._next.make()
        current.file.write(self.position, _BLANK.pack(room, MAGIC_BLANK))
        self._add(segment)
        self._next = None
        self.position = 0
        self.rolls += 1
        self.rolls_in_place += not is_ready

    def reserve(self, size: int) -> int:
        """Room for one record; returns the position in the current segment, rolled if need be."""
        if size + BLANK_BYTES > self._segment_bytes:
            raise RecordTooLarge(f"a record of {size} bytes does not fit a segment of {self._segment_bytes}")
        if self.position + size + BLANK_BYTES > self.current.size:
            self.roll()
        return self.position

    def cut(self, end: int, *, again: bool = False) -> tuple[int, bool]:
        """Forget everything from `end` on: later segments are deleted, the rest of the last one is erased.

        Returns how many of those held something and whether something had to be erased.  A next segment that was made
        ahead, by us or by the original, holds nothing.
        Old records that stayed behind the end would be dangerous.  Power loss may keep only the first pages of a new
        record there, and the bytes of an old one, which are as good as any, would complete it.  With `again` a sync
        has failed, and may have left zeros that are in memory only.
        """
        deleted = 0
        while len(self._segments) > 1 and self._bases[-1] > end:
            segment = self._segments.pop()
            self._bases.pop()
            deleted += any(segment.view[:_BEGINNING_BYTES])
            segment.close()
            self._disk.delete(segment.file.path)
            self._disk.sync_dir(self._folder)  # one by one from the last: power loss must not leave a hole
        self.position = max(0, end - self._bases[-1])
        erased = self.current.file.erase(self.position, again=again)
        if erased or again:
            self.current.file.sync()
        return deleted, erased

    def write(self, records: bytes | memoryview) -> None:
        """Add records at the end.  An `OSError` leaves the end where it was, and nobody knows what is behind it."""
        file, position = self._segments[-1].file, self.position
        end = position + len(records)
        part = end - end % AHEAD_BYTES
        if position <= part < end and self._ahead:
            file.write(part, _ZEROS[: file.size - part])
        file.write(position, records)
        self.position = end

    def write_again(self, start: int) -> None:
        """Write everything from `start` on once more, as it is, so that the next sync does not pass over it."""
        for segment in self._segments:
            first, last = max(0, start - segment.base), min(segment.size, self.end - segment.base)
            for at in range(first, last, _PIECE_BYTES):
                segment.file.write(at, bytes(segment.view[at : min(at + _PIECE_BYTES, last)]))

    def drop_first(self) -> Segment:
        """Forget the oldest segment, whose file is deleted; the newest always stays."""
        assert len(self._segments) > 1
        self._bases.pop(0)
        return self._segments.pop(0)

    def close(self) -> None:
        for segment in self._segments:
            segment.close()
        if self._next is not None:
            self._next.close()
        self._segments.clear()
        self._bases.clear()
        self._next = None

    def _to_make(self, base: int) -> SegmentToMake:
        return SegmentToMake(self._disk, self._folder, base, self._segment_bytes)

    def _is_blank(self, path: str) -> bool:
        file = self._disk.open(path)
        try:
            pieces = (file.read(at, _PIECE_BYTES) for at in range(0, file.size, _PIECE_BYTES))
            return all(piece == bytes(len(piece)) for piece in pieces)
        finally:
            file.close()

    def _add(self, segment: Segment) -> None:
        self._segments.append(segment)
        self._bases.append(segment.base)
