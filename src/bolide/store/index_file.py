"""IndexFile: one file of the key index.

A full disk is an error here and never a signal: header and slots are reserved before the first entry is written, and
entries a piece ahead.  What a crash may leave of a file is found by its durable mark (see `index_layout.py`): entries
below the mark are sound, slots are not, and `repair` makes them again from the entries.
"""

import os
from dataclasses import dataclass

from bolide.store.disk import Disk, File
from bolide.store.index import rebuild_slots
from bolide.store.index_layout import (
    ENTRY,
    ENTRY_BYTES,
    HEADER_BYTES,
    DurableMark,
    IndexHeader,
    entry_at,
    file_bytes,
)

PIECE_BYTES = 8 * 1024 * 1024
"""So much room for entries is reserved at a time."""

READ_BYTES = 1024 * 1024

FIRST_ENTRY = 1


@dataclass(frozen=True, slots=True)
class IndexSizes:
    """How large files are; `entries` counts entry 0, which is never used."""

    slots: int = 5_000_000
    entries: int = 20_000_000

    @property
    def file_bytes(self) -> int:
        return file_bytes(self.slots, self.entries)


class IndexFile:
    def __init__(self, file: File, sizes: IndexSizes) -> None:
        self._file = file
        self._sizes = sizes
        self._reserved_entries = 0
        self._synced: bytes = b""  # header and mark, as the last sync made them durable
        self.view = file.map(scattered=True)

    # ---- making and opening --------------------------------------------------------------------------------

    @classmethod
    def create(cls, disk: Disk, path: str, sizes: IndexSizes, previous: IndexHeader | None) -> "IndexFile":
        """A new file; where there was one before, it starts with that one's last offset and time."""
        file = disk.create(path, sizes.file_bytes, reserve=False)
        try:
            created = cls(file, sizes)
            created.make_room()
            disk.sync_dir(os.path.dirname(path))
        except OSError:
            file.close()
            disk.delete(path)
            raise
        end_ms, end_offset = (previous.end_ms, previous.end_offset) if previous else (0, 0)
        created.header = IndexHeader(end_ms, end_ms, end_offset, end_offset, 0, FIRST_ENTRY)
        return created

    @classmethod
    def open(cls, disk: Disk, path: str, sizes: IndexSizes) -> "IndexFile | None":
        """The file, or None when it does not have the size that it must have."""
        if disk.size_of(path) != sizes.file_bytes:
            return None
        return cls(disk.open(path), sizes)

    @property
    def path(self) -> str:
        return self._file.path

    # ---- what it says --------------------------------------------------------------------------------------

    @property
    def header(self) -> IndexHeader:
        return IndexHeader.read(self.view)

    @header.setter
    def header(self, header: IndexHeader) -> None:
        header.write(self.view)

    @property
    def mark(self) -> DurableMark | None:
        at = entry_at(self._sizes.slots, 0)
        return DurableMark.decode(bytes(self.view[at : at + ENTRY_BYTES]))

    @mark.setter
    def mark(self, mark: DurableMark | None) -> None:
        at = entry_at(self._sizes.slots, 0)
        self.view[at : at + ENTRY_BYTES] = bytes(ENTRY_BYTES) if mark is None else mark.encode()

    @property
    def is_sane(self) -> bool:
        """Whether the header can be one."""
        header = self.header
        return (
            FIRST_ENTRY < header.next_entry <= self._sizes.entries
            and 0 <= header.begin_offset <= header.end_offset
            and header.begin_ms >= 0
        )

    @property
    def is_full(self) -> bool:
        return self.header.next_entry >= self._sizes.entries

    def log_offset_of(self, number: int) -> int:
        offset: int = ENTRY.unpack_from(self.view, entry_at(self._sizes.slots, number))[1]
        return offset

    def first_entry_from(self, log_offset: int) -> int:
        """The number of the first entry of a message that lies there or behind; entries are in the log's order."""
        low, high = FIRST_ENTRY, max(FIRST_ENTRY, self.header.next_entry)
        while low < high:
            middle = (low + high) // 2
            if self.log_offset_of(middle) < log_offset:
                low = middle + 1
            else:
                high = middle
        return low

    # ---- writing -------------------------------------------------------------------------------------------

    @property
    def writable_end(self) -> int:
        """Entries below this number may be written: they exist on disk."""
        return min(self._sizes.entries, self._reserved_entries)

    def make_room(self) -> None:
        """Reserve the next piece; an `OSError` leaves everything as it is."""
        if self._reserved_entries == 0:
            self.reserve_head()
        start = max(self._reserved_entries, self.header.next_entry)
        end = min(self._sizes.entries, start + max(1, PIECE_BYTES // ENTRY_BYTES))
        at = entry_at(self._sizes.slots, start)
        self._file.reserve(at, entry_at(self._sizes.slots, end) - at)
        self._reserved_entries = end

    def reserve_head(self) -> None:
        """The header, the slots and entry 0; of a file that RocketMQ made, most slots were never written."""
        self._file.reserve(0, entry_at(self._sizes.slots, FIRST_ENTRY))

    def begin(self, mark: DurableMark) -> None:
        """More entries will come: from now on a crash is told by the mark."""
        self.mark = mark
        self._file.sync()
        self._synced = self._state()

    @property
    def is_dirty(self) -> bool:
        """Whether something was written since the last sync."""
        return self._synced != self._state()

    def sync(self, mark: DurableMark) -> None:
        """Make the entries durable, then say so in the mark, which the next sync makes durable."""
        state = self._state()
        self._file.sync()
        self._synced = state
        self.mark = mark

    def sync_whole(self, next_offset: int | None) -> None:
        """Make everything durable, slots too: the file can be used as it is after any crash.

        A file that was full says so in its mark; one that is closed has none, as RocketMQ leaves it.
        """
        self._file.sync()
        self.mark = (
            None if next_offset is None else DurableMark(self.header.next_entry, next_offset, whole=True)
        )
        self._file.sync()
        self._synced = self._state()

    def _state(self) -> bytes:
        at = entry_at(self._sizes.slots, 0)
        return bytes(self.view[:HEADER_BYTES]) + bytes(self.view[at : at + ENTRY_BYTES])

    # ---- after a crash -------------------------------------------------------------------------------------

    def repair(self, next_entry: int, log_end: int) -> int | None:
        """Keep the sound ones of the entries below `next_entry`, and make slots and header again from them.

        Where entries had to go, the messages from a log offset on must be indexed again: that offset is returned.
        The mark is there before the slots change: what a crash in the middle leaves is repaired again.  It stays as it
        is until `begin`, which comes before the first new entry.
        """
        slots = self._sizes.slots
        mark = self.mark
        if mark is None or mark.whole:
            self.mark = DurableMark(next_entry, self.header.end_offset if mark is None else mark.next_offset)
            self._file.sync()
        self._read_ahead(next_entry)
        sound, used = rebuild_slots(self.view, slots, next_entry, log_end)
        again: int | None = None
        if sound < next_entry and sound > FIRST_ENTRY:
            again = self.log_offset_of(sound - 1)  # that message may have lost some of its keys
            while sound > FIRST_ENTRY and self.log_offset_of(sound - 1) == again:
                sound -= 1
            sound, used = rebuild_slots(self.view, slots, sound, log_end)
        self._write_sound_header(sound, used)
        return again

    def _read_ahead(self, next_entry: int) -> None:
        """Into memory in large pieces: page by page, as the mapping would, takes long after a start of the machine."""
        for at in range(0, entry_at(self._sizes.slots, next_entry), READ_BYTES):
            self._file.read(at, READ_BYTES)

    def _write_sound_header(self, sound: int, used: int) -> None:
        header = self.header
        if sound == FIRST_ENTRY:
            self.header = IndexHeader(0, 0, 0, 0, 0, FIRST_ENTRY)
            return
        _, end_offset, seconds, _ = ENTRY.unpack_from(self.view, entry_at(self._sizes.slots, sound - 1))
        end_ms = header.end_ms
        if (
            end_offset != header.end_offset
        ):  # the entry has its time in seconds only: the last moment of that one
            end_ms = header.begin_ms + (1000 * seconds + 999 if sound - 1 > FIRST_ENTRY else 0)
        self.header = IndexHeader(header.begin_ms, end_ms, header.begin_offset, end_offset, used, sound)

    def close(self) -> None:
        self.view.release()
        self._file.close()
