"""TimerIndex: which message of the log is due when; wheel, units and point as one thing.

It is an index and nothing more: everything in it can be made again from the log.  It is written in an order that any
crash may interrupt: first the log is durable, then the units of its messages, then the wheel that points at units, then
the point that says how far to trust them.  A start takes the point and goes on over the units behind it, as long as
they fit their records; the queue's messages behind those get their units again.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bolide.model.steps import Steps
from bolide.store.disk import Disk, File
from bolide.store.small_file import write_whole
from bolide.store.timer.filing import file_plain
from bolide.store.timer.layout import DELETE, NOWHERE, ROLL, SLOTS, UNIT_BYTES
from bolide.store.timer.point import TimerPoint, decode_point, encode_point
from bolide.store.timer.units import Unit, Units
from bolide.store.timer.wheel import Slot, Wheel

log = logging.getLogger(__name__)

UNITS_PER_STEP = 2000
UNITS_PER_LOOK = 20_000
SLOTS_PER_STEP = 10_000

QueueOffsetOf = Callable[[int, int], int | None]
"""The number in the timer's queue of the record at a log offset, of a size; None when no such record is there."""


class Opened(NamedTuple):
    point: TimerPoint | None
    """What the file says; None when there is none."""
    queue_offset: int
    """From here on the queue's messages need units."""
    is_new: bool
    """Whether nothing of the index could be used: it is to be made from the whole queue."""


class Writing(NamedTuple):
    """One point on its way to the disk."""

    point: TimerPoint
    pages: list[tuple[int, bytes]]
    files: list[File]


class TimerIndex:
    def __init__(self, disk: Disk, root: str, step_ms: int, file_bytes: int) -> None:
        self._disk = disk
        self._path = os.path.join(root, "config", "timercheck")
        self._points = 0
        self.step_ms = step_ms
        self.wheel = Wheel(disk, root, step_ms)
        self.units = Units(disk, root, file_bytes)
        self.pending = 0
        """Messages that wait, as the original counts: a recall takes one away, whether or not there was one."""
        self.slots_ahead = 0
        """Slots behind the one that is being delivered that hold something."""
        self.is_broken = False
        """Whether a unit that a chain leads to cannot be read: what lies behind it is in the log alone."""
        self._holders = 0
        self._waits_from = 0  # all units before this place are done

    # ---- opening -------------------------------------------------------------------------------------------

    def opening(self, queue_offset_of: QueueOffsetOf) -> Steps[Opened]:
        """Find out what is true."""
        self.close()
        data = self._disk.read_whole(self._path)
        point = None if data is None else decode_point(data)
        has_wheel = yield from self.wheel.load()
        if point is not None and has_wheel and self.units.open(point.units_end) and self._fits(point):
            queue_offset = yield from self._go_on(point, queue_offset_of)
            if self.units.end >= point.units_end and (yield from self._fit_slots(point)):
                return Opened(point, queue_offset, is_new=False)
        if data is not None:
            log.warning("the timer's files cannot be used, and are made again from the log")
        self.clear()
        return Opened(point, 0, is_new=True)

    def clear(self) -> None:
        """Begin anew, with no files.  The point stays, and tells what is done."""
        self.wheel.clear()
        self.units.clear()
        self.pending = self.slots_ahead = self._waits_from = 0
        self.is_broken = False

    def _fits(self, point: TimerPoint) -> bool:
        is_other_step = point.mark >= 0 and point.step_ms != self.step_ms
        return not is_other_step and self.units.start <= point.units_end <= self.units.limit

    def _go_on(self, point: TimerPoint, queue_offset_of: QueueOffsetOf) -> Steps[int]:
        """Take the units behind the point; the first number of the queue that has none.

        The original writes its wheel behind its units, and later than its point: it goes over a whole file more.
        """
        begin = point.units_end if point.mark >= 0 else point.units_end - self.units.file_bytes
        at = self.units.first_from(max(0, begin))
        queue_offset, count = point.queue_offset, 0
        while (unit := self.units.read(at)) is not None:
            if at >= point.units_end:
                number = queue_offset_of(unit.log_offset, unit.size)
                # A clock far ahead has filed it: beyond the wheel it would meet others in its slot.
                is_beyond = unit.time_ms >= point.read_ms + SLOTS * self.step_ms
                if number is None or (point.mark >= 0 and (is_beyond or self._is_late(unit))):
                    break
                queue_offset = max(queue_offset, number + 1)
            if unit.time_ms >= point.read_ms:
                slot = self.wheel.slot(unit.time_ms)
                if slot.last < at:
                    self._chain(unit, at, slot)
            at, count = self.units.after(at), count + 1
            if count % UNITS_PER_STEP == 0:
                yield
        self.units.seek(at)
        self.units.doubt_from(point.units_end)
        return queue_offset

    def _is_late(self, unit: Unit) -> bool:
        """Whether it is in a slot behind its own, which was over when it came.  The clock may have been set back since,
        and before the point it is not over: then its own slot is the right one."""
        return unit.time_ms % self.step_ms == 0 and not unit.kind & ROLL

    def _fit_slots(self, point: TimerPoint) -> Steps[bool]:
        """Count what waits, and mend the slots that do not end with a unit of theirs.

        The wheel may be newer than the point, and power loss may have taken the records that it speaks of; where
        their units were, there may be others since.  But slots that the point knows of were durable: where some of them
        are not there, the file has come to harm, and this tells False.
        """
        self.pending = self.slots_ahead = 0
        torn: dict[int, Slot] = {}
        for begin in range(0, SLOTS, SLOTS_PER_STEP):
            for time_ms, slot in self.wheel.slots(begin, begin + SLOTS_PER_STEP):
                if time_ms >= point.read_ms:
                    if slot.last >= point.units_end and not self._is_of(time_ms, slot.last):
                        torn[time_ms] = Slot(NOWHERE, NOWHERE, 0)
                        continue
                    self._count(point.read_ms, time_ms, slot)
            yield
        if torn:
            yield from self._chains_of(torn)
            for time_ms, slot in torn.items():
                self.wheel.put(time_ms, slot)
                self._count(point.read_ms, time_ms, slot)
        return self.slots_ahead >= point.slots_ahead

    def _is_of(self, time_ms: int, at: int) -> bool:
        """Whether there is a unit at this place, and it is of this slot."""
        unit = self.units.read(at) if at < self.units.end else None
        return unit is not None and self.slot_of(unit.time_ms) == time_ms

    def _count(self, read_ms: int, time_ms: int, slot: Slot) -> None:
        self.pending += slot.messages
        self.slots_ahead += time_ms > read_ms and slot.last != NOWHERE

    def _chains_of(self, slots: dict[int, Slot]) -> Steps[None]:
        """Find the ends of these slots' chains among all units; within a chain nothing is wrong."""
        at, count = self.units.first_from(self.units.start), 0
        while at < self.units.end:
            unit = self.units.read(at)
            slot = None if unit is None else slots.get(self.slot_of(unit.time_ms))
            if unit is not None and slot is not None:
                slots[self.slot_of(unit.time_ms)] = _longer(slot, unit, at)
            at, count = self.units.after(at), count + 1
            if count % UNITS_PER_STEP == 0:
                yield

    # ---- adding and reading --------------------------------------------------------------------------------

    def slot_of(self, time_ms: int) -> int:
        """When the slot of a time begins."""
        return time_ms - time_ms % self.step_ms

    def add(self, unit: Unit) -> tuple[int, bool]:
        """File a message under its time: where its unit is, and whether it is the first of its slot.

        It is found after `units.write`.
        """
        at = self.units.next_place()
        is_recall = bool(unit.kind & DELETE)
        previous = self.wheel.lengthen(unit.written_ms + unit.delay_ms, at, is_recall)
        self.units.add(unit, previous)
        self.pending += -1 if is_recall else 1
        return at, previous == NOWHERE

    def add_plain(
        self,
        entries: bytes,
        first: int,
        queue_offset: int,
        log: memoryview,
        base: int,
        log_end: int,
        check: int,
        read_ms: int,
        window_ms: int,
    ) -> int:
        """File messages of the timer's queue from entry `first` on, as long as they are plain; how many those are.

        The same as to `add` each of them (`filing_twin.py` has the parameters).
        """
        units, begun = file_plain(
            entries,
            first,
            queue_offset,
            log,
            base,
            log_end,
            check,
            *self.wheel.memory(),
            self.units.end,
            self.units.places_left,
            read_ms,
            self.step_ms,
            window_ms,
        )
        self.units.add_all(units)
        self.slots_ahead += begun
        count = len(units) // UNIT_BYTES
        self.pending += count
        return count

    def _chain(self, unit: Unit, at: int, slot: Slot) -> None:
        longer = _longer(slot, unit, at)
        self.wheel.put(unit.time_ms, longer)
        self.pending += longer.messages - slot.messages

    def chain(self, last: int) -> Iterator[tuple[int, Unit]]:
        """Units from one backwards to the first of its slot."""
        while last != NOWHERE:
            unit = self.units.read(last)
            if unit is None or unit.previous >= last:  # never round in a circle
                self._broke(last)
                return
            yield last, unit
            last = unit.previous

    def slot_units(self, slot_ms: int) -> Iterator[tuple[int, Unit]]:
        """Those of a slot, the newest first."""
        for at, unit in self.chain(self.wheel.slot(slot_ms).last):
            # `keep_only` leaves the others' time just before the slot.
            if self.slot_of(unit.time_ms) != slot_ms and unit.time_ms != slot_ms - 1:
                self._broke(at)
                return
            yield at, unit

    def _broke(self, at: int) -> None:
        if 0 <= at < self.units.start:
            log.error(
                "messages that wait have left the log, and are lost: their units, up to %d, are gone", at
            )
        elif not self.is_broken:
            log.error(
                "a chain of the timer's units is broken at %d: the timer's files are made again from the log",
                at,
            )
            self.is_broken = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """While somebody goes over the files, or writes them, in many turns or on another thread."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1

    @property
    def is_held(self) -> bool:
        return self._holders > 0

    def looking(self, read_ms: int) -> Steps[None]:
        """Go on over units of slots that are over, as they lie in their files: in the order of the log."""
        at = self.units.first_from(self._waits_from)
        for count in range(1, UNITS_PER_LOOK + 1):
            if at >= self.units.written_end:
                break
            unit = self.units.read(at)
            if unit is not None and unit.time_ms >= read_ms:
                break
            at = self.units.after(at)
            if count % UNITS_PER_STEP == 0:
                yield
        self._waits_from = at

    def waits_from(self) -> int | None:
        """No message that has a unit waits before this place of the log; None when none does at all."""
        if self._waits_from >= self.units.end:
            return None
        unit = self.units.read(self._waits_from)
        return 0 if unit is None else unit.log_offset

    def keep_only(self, slot_ms: int, remaining: set[int]) -> None:
        """Take what is delivered out of a slot: everything but these units.  The point that is written
        must name this slot, and all of its units.

        The original finds the chains of its last files by the times in the units, so the others get a time that is
        over.  A point has to cover these units before: those behind it are filed by their times, and a recall must not
        be elsewhere than its message.
        """
        kept: list[tuple[int, Unit]] = []
        for at, unit in list(self.slot_units(slot_ms)):
            if at in remaining:
                kept.append((at, unit))
            else:  # until the wheel is written, it leads over this one to those that remain
                self.units.rechain(at, unit.due_at(slot_ms - 1))
        befores = [*(at for at, _ in kept[1:]), NOWHERE]
        for (at, unit), before in zip(kept, befores, strict=False):
            self.units.rechain(at, unit._replace(previous=before))
        ends = (kept[-1][0], kept[0][0]) if kept else (NOWHERE, NOWHERE)
        recalls = sum(bool(unit.kind & DELETE) for _, unit in kept)
        self.wheel.put(slot_ms, Slot(*ends, len(kept) - 2 * recalls, recalls))

    # ---- becoming durable ----------------------------------------------------------------------------------

    def writing(self, point: TimerPoint) -> Steps[Writing]:
        """What has to be written for a point; the log is durable as far as it went when the point was taken.

        `OSError` when there is no room for units that the wheel knows of: its file must not lead to them.
        """
        pages = yield from self.wheel.take_dirty()
        self.units.write()
        return Writing(point, pages, self.units.take_unsynced())

    def write(self, writing: Writing, now_ms: int) -> None:
        """Write it, in this order.  May run on another thread."""
        self.units.sync(writing.files)
        self.wheel.write(writing.pages)
        self._points += 1
        write_whole(self._disk, self._path, encode_point(writing.point, now_ms, self._points))

    def written(self) -> None:
        """The last writing has worked.  Unless this is said, the next one writes the same again."""
        self.wheel.written()
        self.units.synced()

    def close(self) -> None:
        self.wheel.close()
        self.units.close()


def _longer(slot: Slot, unit: Unit, at: int) -> Slot:
    """A slot with one more unit; a recall takes one message away, as the original counts."""
    is_recall = bool(unit.kind & DELETE)
    first = at if slot.first == NOWHERE else slot.first
    return Slot(first, at, slot.messages + (-1 if is_recall else 1), slot.recalls + is_recall)
