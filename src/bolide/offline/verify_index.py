"""Do the index files lead from every key to its messages, and nowhere else?

Three things per file: the header against the first and the last entry; slots and chains against those that the
entries alone give (they are made again in memory and compared); each entry against the record it points at, in the
order of the log, so that a record without entries is noticed too.

Normal: entries of records that went with old segments, and after an unclean stop everything that a start makes
again: what is behind the durable mark, or a file without a mark that is newer than the checkpoint.
"""

import bisect
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from bolide.model.message import SysFlag
from bolide.offline.damage import Findings
from bolide.offline.files import StoreFiles
from bolide.offline.scan import Hole, Progress
from bolide.record.layout import (
    BORN_HOST_AT,
    FIXED_BYTES,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    LOG_OFFSET_AT,
    SYS_FLAG_AT,
)
from bolide.store.index import rebuild_slots, record_hashes
from bolide.store.index_layout import (
    ENTRY,
    ENTRY_BYTES,
    HEADER_BYTES,
    NEXT_ENTRY_AT,
    DurableMark,
    IndexHeader,
    entry_at,
)
from bolide.store.index_layout import SLOT_BYTES as SLOT

FAULTS_SHOWN = 20
SECONDS_MAX = 0x7FFF_FFFF
_BLOCK_ENTRIES = 20_000

_NOT_FOUND = "messages are not found by their keys"
_WRONG = "a key leads to a wrong message, or to none"

_BORN_HOST_V6 = int(SysFlag.BORN_HOST_V6)
_I64 = struct.Struct(">q")
_I32 = struct.Struct(">i")


@dataclass(slots=True)
class _File:
    """One file on its way through the checks."""

    name: str
    view: memoryview
    slots: int
    header: IndexHeader
    trusted: int  # entries from this number on are made again by the next start
    begin_ms: int  # the first message's own time, if it is still there, else the header's
    faults: int = 0


class IndexCheck:
    """Goes through all index files, oldest first, with a place in the log that follows."""

    def __init__(
        self, store: StoreFiles, holes: Sequence[Hole], findings: Findings, *, log_end: int, index_ms: int
    ) -> None:
        self._store = store
        self._holes = holes
        self._findings = findings
        self._log_end = log_end
        self._index_ms = index_ms
        self._expected_at: int | None = None  # where the next indexed record may begin
        self._last_offset = -1
        self._hashes: list[int] = []
        self._seconds = 0
        self._previous: IndexHeader | None = None  # of the file before
        self.entries = 0

    def run(self, progress: Progress | None = None) -> None:
        paths = self._store.index_paths()
        for path in paths:
            self._check(path, is_last=path == paths[-1])
            if progress is not None:
                progress(self._store.disk.size_of(path))
        if self._expected_at is not None and self._expected_at < self._log_end:
            missing = self._first_indexable(self._expected_at, self._log_end)
            if missing is not None:
                self._findings.note(
                    "index", f"messages from {missing} on in the log are not in the index yet"
                )

    def _check(self, path: str, *, is_last: bool) -> None:
        name = self._store.name(path)
        size = self._store.disk.size_of(path)
        slots = self._store.index_slots(size)
        if slots == 0:
            self._findings.damage(name, 0, f"has {size} bytes, the size of no index file", _NOT_FOUND)
            return
        view = self._store.files.view(path)
        header = IndexHeader.read(view)
        room = (size - entry_at(slots, 0)) // ENTRY_BYTES
        used = self._store.files.used_bytes(path)
        if header.next_entry <= 1 and used <= entry_at(slots, 1):
            return  # made, and nothing put into it yet
        if not 1 < header.next_entry <= room or entry_at(slots, header.next_entry - 1) >= used:
            most = min(room, (used - entry_at(slots, 0) - 1) // ENTRY_BYTES + 1) - 1
            what = f"the header says {header.next_entry - 1} entries where there are at most {max(0, most)}"
            self._findings.damage(name, NEXT_ENTRY_AT, what, _NOT_FOUND)
            return
        file = _File(name, view, slots, header, self._trusted(view, slots, header, is_last), header.begin_ms)
        self._check_mark(file)
        self._check_header(file)
        self._check_chains(file)
        self._check_entries(file)
        self._previous = header
        if file.faults > FAULTS_SHOWN:
            self._findings.damage(name, 0, f"{file.faults - FAULTS_SHOWN} more faults", _WRONG)

    def _trusted(self, view: memoryview, slots: int, header: IndexHeader, is_last: bool) -> int:
        """The number up to which a start believes the entries."""
        if self._store.is_clean or not is_last:
            return header.next_entry
        mark = DurableMark.decode(bytes(view[entry_at(slots, 0) : entry_at(slots, 1)]))
        if mark is not None:
            return mark.next_entry
        return header.next_entry if header.end_ms <= self._index_ms else 0

    def _fault(self, file: _File, at: int, what: str, consequence: str, number: int = 0) -> None:
        if number >= file.trusted:
            if file.faults == 0:
                self._findings.note(file.name, f"{what}; the next start makes this part of the index again")
            file.faults = max(file.faults, 1)
            return
        file.faults += 1
        if file.faults <= FAULTS_SHOWN:
            self._findings.damage(file.name, at, what, consequence)

    # ---- the file by itself --------------------------------------------------------------------------------

    def _check_mark(self, file: _File) -> None:
        at = entry_at(file.slots, 0)
        mark = bytes(file.view[at : at + ENTRY_BYTES])
        if any(mark) and DurableMark.decode(mark) is None:
            what = "entry 0 is neither empty nor a durable mark"
            self._fault(file, at, what, "after an unclean stop the file is made again")

    def _check_chains(self, file: _File) -> None:
        """Slots and chains are what the entries give when they are put in again."""
        size = entry_at(file.slots, file.header.next_entry)
        with mmap.mmap(-1, size) as again:
            again[:] = file.view[:size]
            with memoryview(again) as copy:
                count, used = rebuild_slots(copy, file.slots, file.header.next_entry, SECONDS_MAX << 31)
                if count < file.header.next_entry:
                    at = entry_at(file.slots, count)
                    what = f"entry {count} is older than the one before it, or negative"
                    self._fault(file, at, what, _WRONG, count)
                    return
                if used != file.header.slots_used:
                    what = f"the header says {file.header.slots_used} slots are used, but {used} are"
                    self._fault(file, 32, what, "only statistics are wrong")
                self._compare(file, copy)

    def _compare(self, file: _File, again: memoryview) -> None:
        entries = entry_at(file.slots, 1)
        for at in _differences(file.view, again, HEADER_BYTES, entry_at(file.slots, 0), SLOT):
            (found,), (wanted,) = _I32.unpack_from(file.view, at), _I32.unpack_from(again, at)
            slot = (at - HEADER_BYTES) // SLOT
            what = f"slot {slot} leads to entry {found} instead of {wanted}"
            self._fault(file, at, what, _NOT_FOUND, wanted)
        for at in _differences(file.view, again, entries, len(again), ENTRY_BYTES):
            number = 1 + (at - entries) // ENTRY_BYTES
            (found,), (wanted,) = _I32.unpack_from(file.view, at + 16), _I32.unpack_from(again, at + 16)
            what = f"entry {number} is followed by {found} instead of {wanted} in its chain"
            self._fault(file, at + 16, what, _NOT_FOUND, number)

    # ---- the entries against the log -----------------------------------------------------------------------

    def _check_entries(self, file: _File) -> None:
        first = entry_at(file.slots, 1)
        count = file.header.next_entry
        self._last_offset = -1  # the keys of one message may be in two files, whose times begin differently
        for number in range(1, count, _BLOCK_ENTRIES):
            last = min(count, number + _BLOCK_ENTRIES)
            start = first + (number - 1) * ENTRY_BYTES
            data = bytes(file.view[start : start + (last - number) * ENTRY_BYTES])
            for place, (hashed, log_offset, seconds, _) in enumerate(ENTRY.iter_unpack(data), number):
                if log_offset != self._last_offset:
                    self._move_to(file, place, log_offset)
                if self._hashes and (hashed not in self._hashes or seconds != self._seconds):
                    self._check_entry(file, place, hashed, log_offset, seconds)
        self.entries += count - 1

    def _check_entry(self, file: _File, number: int, hashed: int, log_offset: int, seconds: int) -> None:
        at = entry_at(file.slots, number)
        if hashed not in self._hashes:
            what = f"entry {number} has the hash of no key of the message at {log_offset}"
            self._fault(file, at, what, _WRONG, number)
        elif number > 1 or not self._is_first(log_offset, seconds):
            what = f"entry {number} is {seconds} s behind the first one instead of {self._seconds}"
            self._fault(file, at + 12, what, "the message is not found by key and time", number)

    def _is_first(self, log_offset: int, seconds: int) -> bool:
        """The first entry of a file counts from the last message of the file before, if there was one."""
        record = self._record(log_offset)
        if record is None or self._previous is None:
            return self._store.log.start > 0 or seconds == 0
        return seconds == min(max(0, store_time_of(record) - self._previous.end_ms) // 1000, SECONDS_MAX)

    def _move_to(self, file: _File, number: int, log_offset: int) -> None:
        """Look at the next record that is indexed; no hashes are known of one that is gone or damaged."""
        at = entry_at(file.slots, number)
        self._last_offset, self._hashes = log_offset, []
        if 0 <= log_offset < self._store.log.start:
            return
        record = self._record(log_offset)
        if record is None:
            if self._hole_at(log_offset) is None:
                what = f"entry {number} points at {log_offset}, where no record begins"
                self._fault(file, at + 4, what, _WRONG, number)
            return
        if self._expected_at is not None and self._expected_at < log_offset:
            missing = self._first_indexable(self._expected_at, log_offset)
            if missing is not None:
                what = f"the message at {missing} in the log has no entry before entry {number}"
                self._fault(file, at, what, _NOT_FOUND, number)
        self._expected_at = log_offset + len(record)
        self._hashes = record_hashes(record)
        self._seconds = min(max(0, store_time_of(record) - file.begin_ms) // 1000, SECONDS_MAX)

    def _record(self, log_offset: int) -> bytes | None:
        """The record at a place; the scan of the log has judged it already."""
        base = self._store.log.base_of(log_offset) if log_offset >= 0 else None
        if base is None or log_offset >= self._log_end or self._hole_at(log_offset) is not None:
            return None
        view, at = self._store.log.view(base), log_offset - base
        if at + FIXED_BYTES > len(view) or _I64.unpack_from(view, at + LOG_OFFSET_AT)[0] != log_offset:
            return None
        (size,) = _I32.unpack_from(view, at)
        return bytes(view[at : at + size]) if FIXED_BYTES <= size <= len(view) - at else None

    def _hole_at(self, log_offset: int) -> Hole | None:
        at = bisect.bisect_right(self._holes, log_offset, key=lambda hole: hole.at) - 1
        return self._holes[at] if at >= 0 and log_offset < self._holes[at].end else None

    def _first_indexable(self, at: int, end: int) -> int | None:
        """The first record in a part of the log that has keys."""
        while at < end:
            base = self._store.log.base_of(at)
            if base is None:
                return None
            hole, record = self._hole_at(at), self._record(at)
            if hole is not None:
                at = hole.end
            elif record is None:
                at = base + self._store.log.file_bytes
            elif record_hashes(record):
                return at
            else:
                at += len(record)
        return None

    def _check_header(self, file: _File) -> None:
        """Begin and end are those of the first and the last entry."""
        header, count = file.header, file.header.next_entry
        ends = (
            (1, 16, header.begin_offset, 0, header.begin_ms),
            (count - 1, 24, header.end_offset, 8, header.end_ms),
        )
        for number, offset_at, log_offset, time_at, time_ms in ends:
            pointed = ENTRY.unpack_from(file.view, entry_at(file.slots, number))[1]
            if pointed != log_offset:
                what = f"the header says {log_offset} where entry {number} points at {pointed}"
                self._fault(file, offset_at, what, "a query may pass over the file", number)
            record = self._record(pointed) if pointed >= self._store.log.start else None
            if record is not None and store_time_of(record) != time_ms:
                what = f"the header says {time_ms} where the message of entry {number} is of {store_time_of(record)}"
                self._fault(file, time_at, what, "a query may pass over the file", number)
                if number == 1:
                    file.begin_ms = store_time_of(record)


def store_time_of(record: bytes) -> int:
    is_v6 = record[SYS_FLAG_AT + 3] & _BORN_HOST_V6  # the last byte of sysFlag
    (stored_ms,) = _I64.unpack_from(record, BORN_HOST_AT + (HOST_V6_BYTES if is_v6 else HOST_V4_BYTES))
    return int(stored_ms)


def _differences(one: memoryview, other: memoryview, start: int, end: int, width: int) -> list[int]:
    """Where two files differ, in steps of `width`; not all places, but the first ones."""
    found: list[int] = []
    step = width * 8192
    for low in range(start, end, step):
        high = min(end, low + step)
        some, others = bytes(one[low:high]), bytes(other[low:high])  # views are compared item by item
        for at in range(0, len(some), width) if some != others else ():
            if some[at : at + width] != others[at : at + width]:
                found.append(low + at)
                if len(found) > FAULTS_SHOWN:
                    return found
    return found
