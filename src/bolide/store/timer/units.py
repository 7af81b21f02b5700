"""Units: the chains of the wheel, one unit for each message, in files that only grow."""

import os
from typing import NamedTuple

from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.store.disk import Disk, File
from bolide.store.file_names import name_of, place_of
from bolide.store.folders import make_folder
from bolide.store.timer.layout import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    DELETE,
    KINDS_MASK,
    PREVIOUS,
    ROLL,
    TIMES,
    UNIT,
    UNIT_BYTES,
    UNIT_PREVIOUS_AT,
    UNIT_TIMES_AT,
)


class Unit(NamedTuple):
    previous: int
    kind: int
    written_ms: int
    delay_ms: int
    log_offset: int
    size: int
    topic_hash: int

    @property
    def time_ms(self) -> int:
        """It is due when this millisecond is over."""
        return self.written_ms + self.delay_ms

    @property
    def is_recall(self) -> bool:
        """Whether it takes a message of its slot back.  One that is to be written again does not yet."""
        return self.kind & (DELETE | ROLL) == DELETE

    def due_at(self, time_ms: int) -> "Unit":
        """The same with another time.

        There are 32 bits for how long that is after it was written, and the log's times may be far ahead of a clock.
        """
        written_ms = min(max(self.written_ms, time_ms - INT32_MAX), time_ms - INT32_MIN)
        return self._replace(written_ms=written_ms, delay_ms=time_ms - written_ms)


class Units:
    def __init__(self, disk: Disk, root: str, file_bytes: int) -> None:
        self._disk = disk
        self._folder = os.path.join(root, "timerlog")
        self.file_bytes = file_bytes
        self._files: list[tuple[int, File, memoryview]] = []
        self._unsynced: dict[str, File] = {}
        self._taken: dict[str, File] = {}  # given to be synced, and not known to be
        self._buffer = bytearray()  # units that are not in their file yet
        self._buffer_at = 0
        self.end = 0

    def open(self, durable_end: int) -> bool:
        """Find the files; False when they are not what they should be.  `seek` says where they end.

        A file behind the durable end may be half made: power was lost then, and it holds nothing.
        """
        names = [name for name in self._disk.list(self._folder) if name.isdigit()]
        for name in names:
            path, base = os.path.join(self._folder, name), place_of(name)
            expected = self._files[-1][0] + self.file_bytes if self._files else base
            size = self._disk.size_of(path)
            if name == names[-1] and base is not None and base >= durable_end and size < self.file_bytes:
                self._disk.delete(path)
                continue
            if base is None or base != expected or base % self.file_bytes or size != self.file_bytes:
                return False
            file = self._disk.open(path)
            self._files.append((base, file, file.map()))
            if (
                base + self.file_bytes > durable_end
            ):  # a process that was killed may have left it to the kernel
                self._unsynced[path] = file
        return True

    def seek(self, end: int) -> None:
        """The next unit goes here; what is behind has no meaning, and is erased."""
        self.end = self._buffer_at = end
        self._buffer.clear()
        while self._files and self._files[-1][0] > end:
            _, file, view = self._files.pop()
            _close(file, view)
            self._disk.delete(file.path)
        if self._files and end < self.limit and self._files[-1][1].erase(end - self._files[-1][0]):
            self._unsynced[self._files[-1][1].path] = self._files[-1][1]

    def doubt_from(self, at: int) -> None:
        """What is found behind this place, a process that was killed may not have synced."""
        self._unsynced |= {file.path: file for base, file, _ in self._files if base + self.file_bytes > at}

    def clear(self) -> None:
        """Begin anew."""
        self.close()
        self._disk.delete_tree(self._folder)
        self.seek(0)

    @property
    def start(self) -> int:
        return self._files[0][0] if self._files else 0

    @property
    def limit(self) -> int:
        """Where the files end, whatever is in them."""
        return self._files[-1][0] + self.file_bytes if self._files else 0

    @property
    def written_end(self) -> int:
        """Units before this place are in their files."""
        return self._buffer_at

    def next_place(self) -> int:
        """Where the next unit will be, in a file that is there."""
        room = self.limit - self.end
        if room < UNIT_BYTES + BLANK_BYTES:
            self._next_file(room)
        return self.end

    def add(self, unit: Unit, previous: int) -> None:
        """Put a unit into the next place, behind this one of its chain; it can be read after `write`."""
        self._buffer += UNIT.pack(
            UNIT_BYTES,
            previous,
            unit.kind,
            unit.written_ms,
            unit.delay_ms,
            unit.log_offset,
            unit.size,
            unit.topic_hash,
            0,
        )
        self.end += UNIT_BYTES

    @property
    def places_left(self) -> int:
        """How many more units the last file takes."""
        return max(0, self.limit - self.end - BLANK_BYTES) // UNIT_BYTES

    def add_all(self, units: bytes) -> None:
        """Put units into the next places of the file, as they are to be written."""
        self._buffer += units
        self.end += len(units)

    def write(self) -> None:
        """Put the units into their file."""
        if self._buffer:
            base, file, _ = self._files[-1]
            file.write(self._buffer_at - base, bytes(self._buffer))
            self._unsynced[file.path] = file
            self._buffer.clear()
        self._buffer_at = self.end

    def read(self, at: int) -> Unit | None:
        """The unit at a place; None when there is none."""
        number = (at - self.start) // self.file_bytes
        if not 0 <= number < len(self._files) or at % self.file_bytes > self.file_bytes - UNIT_BYTES:
            return None
        base, _, view = self._files[number]
        size, previous, kind, *rest, _ = UNIT.unpack_from(view, at - base)
        if size != UNIT_BYTES or kind & ~KINDS_MASK:
            return None
        unit = Unit(previous, kind, *rest)
        return unit if unit.size > 0 else None  # zeros from somewhere on

    def after(self, at: int) -> int:
        """Where the unit behind the one at a place is."""
        at += UNIT_BYTES
        return (
            at if self.file_bytes - at % self.file_bytes >= UNIT_BYTES + BLANK_BYTES else self._next_base(at)
        )

    def first_from(self, at: int) -> int:
        """The first place of a unit at or behind this one."""
        within = at % self.file_bytes
        aligned = at - within + -(-within // UNIT_BYTES) * UNIT_BYTES
        if self.file_bytes - aligned % self.file_bytes < UNIT_BYTES + BLANK_BYTES:
            aligned = self._next_base(aligned)
        return max(aligned, self.start)

    def rechain(self, at: int, unit: Unit) -> None:
        """Change, in its place, what a unit says of its chain and times."""
        base, file, _ = self._files[(at - self.start) // self.file_bytes]
        file.write(at - base + UNIT_PREVIOUS_AT, PREVIOUS.pack(unit.previous))
        file.write(at - base + UNIT_TIMES_AT, TIMES.pack(unit.written_ms, unit.delay_ms))
        self._unsynced[file.path] = file

    def take_unsynced(self) -> list[File]:
        self._taken |= self._unsynced
        self._unsynced.clear()
        return list(self._taken.values())

    def synced(self) -> None:
        """The files that were taken last are durable."""
        self._taken.clear()

    def sync(self, files: list[File]) -> None:
        """Make files durable.  May run on another thread."""
        for file in files:
            file.sync()
        if files:
            self._disk.sync_dir(self._folder)

    def drop_before(self, log_start: int) -> None:
        """Delete the first file when all records of its units have left the log."""
        if len(self._files) > 1:
            base, file, view = self._files[0]
            last = (self.file_bytes - BLANK_BYTES) // UNIT_BYTES * UNIT_BYTES - UNIT_BYTES
            unit = self.read(base + last)
            if unit is not None and unit.log_offset < log_start:
                del self._files[0]
                self._unsynced.pop(file.path, None)
                self._taken.pop(file.path, None)
                _close(file, view)
                self._disk.delete(file.path)

    def close(self) -> None:
        for _, file, view in self._files:
            _close(file, view)
        self._files.clear()
        self._unsynced.clear()
        self._taken.clear()

    def _next_file(self, room: int) -> None:
        if self._files:
            self.write()
            base, file, _ = self._files[-1]
            if room:  # none when a start has found the last file full
                file.write(self.end - base, BLANK.pack(room, 0, BLANK_MAGIC))
                self._unsynced[file.path] = file
        else:
            make_folder(self._disk, self._folder)
        base = self.limit if self._files else self.end - self.end % self.file_bytes
        file = self._disk.create(os.path.join(self._folder, name_of(base)), self.file_bytes, reserve=False)
        self._files.append((base, file, file.map()))
        self.end = self._buffer_at = base

    def _next_base(self, at: int) -> int:
        return at - at % self.file_bytes + self.file_bytes


def _close(file: File, view: memoryview) -> None:
    view.release()
    file.close()
