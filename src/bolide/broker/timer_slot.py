"""LoadedSlot: the slot that is being delivered, in memory as a heap by the very millisecond.

Of a large one a portion at a time, the oldest first: a slot may hold more than memory does.
"""

import heapq
from itertools import pairwise
from typing import NamedTuple

from bolide.broker.timed_record import TurnShare, timed_record
from bolide.broker.timer_recalls import Recalls
from bolide.model.message import Property
from bolide.model.numbers import parse_whole
from bolide.model.steps import Steps
from bolide.rules.timed import promised_ms, roll_time
from bolide.store.store import MessageStore
from bolide.store.timer.index import TimerIndex
from bolide.store.timer.layout import NOWHERE, ROLL
from bolide.store.timer.units import Unit

LOADED_PER_TURN = 200
PORTION_UNITS = 100_000
"""So many messages of a slot are in memory at once."""


class Item(NamedTuple):
    """A message of the slot; in the order in which they go."""

    time_ms: int
    at: int
    unit: Unit


class LoadedSlot:
    def __init__(self, store: MessageStore, index: TimerIndex, recalls: Recalls, window_ms: int) -> None:
        self._store = store
        self._index = index
        self._recalls = recalls
        self._window_ms = window_ms
        self.heap: list[Item] = []
        self._crumbs: list[tuple[int, int]] = []  # portions that are still to be loaded, from and to

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return not self.heap and not self._crumbs

    @property
    def wants_portion(self) -> bool:
        return bool(self._crumbs) and not self.heap

    def clear(self) -> None:
        self.heap.clear()
        self._crumbs.clear()

    def load(self, slot_ms: int) -> Steps[None]:
        """The slot into memory: who was recalled first, then the oldest portion."""
        crumbs: list[int] = []
        share = TurnShare(LOADED_PER_TURN)
        for count, (at, unit) in enumerate(self._index.slot_units(slot_ms)):
            if count % PORTION_UNITS == 0:
                crumbs.append(at)
            if unit.is_recall:
                self._recalls.note(unit.log_offset, unit.size)
            if share.is_used_up(unit.size if unit.is_recall else 0):
                yield
        self._crumbs = list(pairwise([*crumbs, NOWHERE]))
        yield from self.load_portion()

    def load_portion(self) -> Steps[None]:
        if not self._crumbs:
            return
        first, stop = self._crumbs.pop()  # the last one is the oldest
        share = TurnShare(LOADED_PER_TURN)
        for at, unit in self._index.chain(first):
            if at == stop:
                break
            if not unit.is_recall:
                self.push(Item(self._time_of(unit), at, unit))
            if share.is_used_up(0 if unit.is_recall or self._is_exact(unit) else unit.size):
                yield

    def add(self, item: Item) -> None:
        """A message comes into the slot while it is in memory."""
        if item.unit.is_recall:
            self._recalls.note(item.unit.log_offset, item.unit.size)
        else:
            self.push(item)

    def push(self, item: Item) -> None:
        heapq.heappush(self.heap, item)

    def pop(self) -> Item:
        return heapq.heappop(self.heap)

    def remaining(self, slot_ms: int) -> set[int]:
        """Places of the units that are still needed."""
        places = {item.at for item in self.heap}
        for first, stop in self._crumbs:
            for at, _ in self._index.chain(first):
                if at == stop:
                    break
                places.add(at)
        if places:
            places |= {at for at, unit in self._index.slot_units(slot_ms) if unit.is_recall}
        return places

    def _is_exact(self, unit: Unit) -> bool:
        """Whether the unit alone says when it is due."""
        return unit.time_ms % self._index.step_ms != 0

    def _time_of(self, unit: Unit) -> int:
        """When a unit is due.  The original notes the beginning of the slot, and so do we for what came too late for
        its own slot: then the record knows."""
        step_ms = self._index.step_ms
        if self._is_exact(unit):
            return unit.time_ms
        record = timed_record(self._store, unit.log_offset, unit.size)
        if record is None:
            return unit.time_ms
        out_ms = parse_whole(record.properties.get(Property.TIMER_OUT_MS, "")) or 0
        if unit.kind & ROLL:
            out_step, stored_step = self._index.slot_of(out_ms), self._index.slot_of(record.stored_ms)
            return min(unit.time_ms, roll_time(out_step, stored_step, self._window_ms) or out_step)
        return promised_ms(record.properties, out_ms, record.stored_ms, step_ms) - 1
