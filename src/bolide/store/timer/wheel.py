"""Wheel: the ring of slots, each the ends of a chain of units.

It is kept in memory and written to its file in pages, when the units that it points at are durable.  A slot is old or
new after power loss, never half of each: it does not cross a sector.
"""

import mmap
import os
from collections.abc import Iterator
from typing import NamedTuple

from bolide.model.steps import Steps
from bolide.store.disk import Disk, File
from bolide.store.timer.layout import (
    NOWHERE,
    SLOT,
    SLOT_BYTES,
    SLOT_COUNTS_AT,
    SLOT_TIME_AND_LAST,
    SLOTS,
    WHEEL_BYTES,
)

PAGE_BYTES = 4096
STEP_BYTES = 1 << 20
SLOTS_PER_LOOK = 20_000

_HIGH_BYTES = bytes((*range(0x40), *range(0xC0, 0x100)))
"""First bytes of counts that may be true: below 2^30, and recalls may make them negative."""


class Slot(NamedTuple):
    first: int
    last: int
    messages: int
    """As the original counts: a recall takes one away."""
    recalls: int = 0


EMPTY = Slot(NOWHERE, NOWHERE, 0)


class Wheel:
    def __init__(self, disk: Disk, root: str, step_ms: int) -> None:
        self._disk = disk
        self._path = os.path.join(root, "timerwheel")
        self._step_ms = step_ms
        self._slots = _empty_slots()
        self._dirty: set[int] = set()
        self._taken: set[int] = set()  # given to be written, and not known to be
        self._file: File | None = None

    def load(self) -> Steps[bool]:
        """Read the file; False when there is none that can be used."""
        self._slots = _empty_slots()
        self._dirty.clear()
        self._taken.clear()
        if not self._disk.exists(self._path) or self._disk.size_of(self._path) != WHEEL_BYTES:
            return False
        self._file = self._disk.open(self._path)
        for at in range(0, WHEEL_BYTES, STEP_BYTES):
            piece = self._file.read(at, min(STEP_BYTES, WHEEL_BYTES - at))
            if piece.count(0) != len(piece):
                if not _can_be(piece):
                    return False
                self._slots[at : at + len(piece)] = piece
            yield
        return True

    def clear(self) -> None:
        """Begin anew, with an empty file."""
        self.close()
        self._disk.delete(self._path)
        self._slots = _empty_slots()
        self._dirty.clear()
        self._taken.clear()

    def slot(self, time_ms: int) -> Slot:
        """The slot that a time falls into."""
        step = time_ms // self._step_ms
        time, *ends_and_counts = SLOT.unpack_from(self._slots, step % SLOTS * SLOT_BYTES)
        return Slot(*ends_and_counts) if time == step else EMPTY

    def next_used(self, begin_ms: int, end_ms: int) -> Steps[int]:
        """The first slot from one on that holds something; the end when none before it does."""
        begin, nearest = begin_ms // self._step_ms, end_ms // self._step_ms
        step, round_end = (
            begin,
            min(nearest, begin + SLOTS),
        )  # then all have been looked at, whatever their times
        while step < round_end:
            at = step % SLOTS
            count = min(SLOTS_PER_LOOK, round_end - step, SLOTS - at)
            part = self._slots[at * SLOT_BYTES : (at + count) * SLOT_BYTES]
            for expected, (time, last) in enumerate(SLOT_TIME_AND_LAST.iter_unpack(part), step):
                if time >= begin and last != NOWHERE:
                    if time == expected:
                        return expected * self._step_ms
                    nearest = min(nearest, time)  # more than a turn ahead
            step += count
            yield
        return nearest * self._step_ms

    def put(self, time_ms: int, slot: Slot) -> None:
        step = time_ms // self._step_ms
        at = step % SLOTS * SLOT_BYTES
        SLOT.pack_into(self._slots, at, step, *slot)
        self._dirty.add(at // PAGE_BYTES)

    def lengthen(self, time_ms: int, at: int, is_recall: bool) -> int:
        """One more unit for the slot of a time, at this place; the place of the one before it.

        The same as to take the slot and to put it back longer, for the many that come.
        """
        step = time_ms // self._step_ms
        place = step % SLOTS * SLOT_BYTES
        time, first, last, messages, recalls = SLOT.unpack_from(self._slots, place)
        if time != step:
            first, last, messages, recalls = EMPTY
        begin = at if first == NOWHERE else first
        messages += -1 if is_recall else 1
        SLOT.pack_into(self._slots, place, step, begin, at, messages, recalls + is_recall)
        self._dirty.add(place // PAGE_BYTES)
        return int(last)

    def memory(self) -> tuple[memoryview, set[int]]:
        """The slots, and the numbers of the pages that are to be written: for compiled code that lengthens many."""
        return self._slots, self._dirty

    def slots(self, begin: int, end: int) -> Iterator[tuple[int, Slot]]:
        """Those of a part of the ring that were ever used, with their times.  One that is not in its place is noise."""
        part = self._slots[begin * SLOT_BYTES : end * SLOT_BYTES]
        for place, (time, *ends_and_counts) in enumerate(SLOT.iter_unpack(part), begin):
            if time and time % SLOTS == place:
                yield time * self._step_ms, Slot(*ends_and_counts)

    def take_dirty(self) -> Steps[list[tuple[int, bytes]]]:
        """What has changed since the last pages that were `written`."""
        self._taken |= self._dirty
        self._dirty.clear()
        pages: list[tuple[int, bytes]] = []
        for number, page in enumerate(sorted(self._taken)):
            at = page * PAGE_BYTES
            pages.append((at, bytes(self._slots[at : at + PAGE_BYTES])))
            if number % 512 == 511:
                yield
        return pages

    def written(self) -> None:
        """The pages that were taken last are durable."""
        self._taken.clear()

    def write(self, pages: list[tuple[int, bytes]]) -> None:
        """Write pages and make them durable.  May run on another thread."""
        if self._file is None:
            if self._disk.exists(self._path):
                self._file = self._disk.open(self._path)
            else:
                self._file = self._disk.create(self._path, WHEEL_BYTES, reserve=False)
                self._disk.sync_dir(os.path.dirname(self._path))
        for at, page in pages:
            self._file.write(at, page)
        self._file.sync()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _can_be(slots: bytes) -> bool:
    """Whether what these slots count may be true.  What is far from it leaves its 32 bits one day."""
    counts = slots[SLOT_COUNTS_AT::SLOT_BYTES] + slots[SLOT_COUNTS_AT + 4 :: SLOT_BYTES]
    return not counts.translate(None, _HIGH_BYTES)


def _empty_slots() -> memoryview:
    """Zeros that take memory only where something is written: a bytearray is written as a whole when it is made."""
    return memoryview(mmap.mmap(-1, WHEEL_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
