"""Timer: timed messages from their queue into the index, and from there to their readers when they are due.

A timed message is a record of the topic `rmq_sys_wheel_timer`.  The timer takes the messages of that queue in the order
of their numbers and files each under its time (`store/timer`).  It goes along the slots of the wheel; the one that it
is at is in memory as a heap by the very millisecond, a portion of it if it is large.  What is due is stored again, in
the queue that it was sent to.  The record names the one that it comes from, so that a start after a crash finds in the
log's end what has been delivered since the last point.

Nobody is served meanwhile, so everything here goes in small pieces: `turn` does one and tells when to come again.
"""

import heapq
import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bolide.broker.door import Door
from bolide.broker.timed_record import TimedRecord, timed_record
from bolide.broker.timer_recalls import Recalls
from bolide.broker.waiting_message import GoneTopics, Undeliverable, append_due, own_queue
from bolide.model.clock import Clock
from bolide.model.errors import MalformedRecord, RequestError, StoreRefusal
from bolide.model.java_hash import java_hash
from bolide.model.limits import TIMER_READY_MAX
from bolide.model.message import Property
from bolide.model.names import TIMER_TOPIC
from bolide.model.numbers import INT32_MAX, parse_count, parse_whole
from bolide.model.steps import Steps, at_once
from bolide.net.trouble import Trouble
from bolide.rules.timed import promised_ms, roll_time
from bolide.store.new_message import NewMessage
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import MessageStore
from bolide.store.timer.delivered import delivered_since, mark_of
from bolide.store.timer.index import Opened, TimerIndex
from bolide.store.timer.layout import DELETE, DUE, NOWHERE, ROLL, SLOTS
from bolide.store.timer.point import TimerPoint
from bolide.store.timer.rebuild import Rebuild
from bolide.store.timer.units import Unit

log = logging.getLogger(__name__)

TAKEN_PER_TURN = 64
DELIVERED_PER_TURN = 32
DELIVERED_BYTES_PER_TURN = 512 * 1024
LOADED_PER_TURN = 200
EMPTY_SLOTS_PER_TURN = 5000
PORTION_UNITS = 100_000
"""So many messages of a slot are in memory at once."""

RETRY_MS = 500
UNREADABLE_MS = 5
"""Until the next look for messages that are in the queue and may not be read yet."""

UNSOUND = "its record is damaged, or not in the log any more"

UNSURE_MS = 60_000
"""Without a point, what was stored within a minute before the last delivery may or may not have been delivered."""


class _Item(NamedTuple):
    """A message of the slot that is being delivered; in the order in which they go."""

    time_ms: int
    at: int
    unit: Unit


class _Due(NamedTuple):
    item: _Item
    message: NewMessage | None


class Timer:
    def __init__(
        self,
        store: MessageStore,
        door: Door,
        index: TimerIndex,
        clock: Clock,
        window_ms: int,
    ) -> None:
        """`window_ms` is how long a record may wait before it is written again."""
        self._store = store
        self._door = door
        self._clock = clock
        self._gone = GoneTopics(store.queues.deletions, clock)
        self.index = index
        self.read_ms = 0
        self.queue_offset = 0
        self.mark = 0
        self.is_open = False
        self.found: TimerPoint | None = None
        """What the file said at the start."""
        self._window_ms = window_ms
        self._half_turn_ms = SLOTS // 2 * index.step_ms
        self.changes = 0
        """Grows with everything that a point has to tell."""
        self.delivered = 0
        self._rebuild: Rebuild | None = None
        self._needed = 0  # of the queue's messages, before anything of the slot is delivered
        self._sources: set[int] = set()  # delivered before the start, as the log's end tells
        self._sources_ms = 0  # when the last of them was
        self._sources_end = 0  # none has this number in the queue, or one above
        self._heap: list[_Item] = []
        self._crumbs: list[
            tuple[int, int]
        ] = []  # portions of the slot that are still to be loaded, from and to
        self._recalls = Recalls(store)
        self._loading: Steps[None] | None = None
        self._done_here = False  # whether something of the slot has been delivered
        self._retry_at_ms = 0
        self._trouble = Trouble(log, "timed messages that are due cannot be stored, and wait")

    # ---- opening -------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        """Take up the work where it was left.  Nothing is delivered before that is known."""
        log_, reader, end = self._store.log, self._store.reader, int(self._store.log.end)
        now_step = self.index.slot_of(self._clock.now_ms())
        first, last = reader.queue_range(TIMER_TOPIC, 0)
        opened: Opened = yield from self.index.opening(self._queue_offset_of)
        point = opened.point
        if point is None and last == 0:  # never used
            self.read_ms, self.queue_offset, self.mark = now_step, int(last), end
        elif point is None:
            found = yield from delivered_since(log_, int(log_.start), end, newest_only=True)
            self._sources, self._sources_ms = found.sources, found.newest_ms
            self.read_ms, self.mark = self.index.slot_of(found.read_ms), int(log_.start)
            self._rebuild = Rebuild(self.read_ms, stored_ms=self.read_ms - UNSURE_MS)
            self.queue_offset = int(first)
        else:
            self.read_ms, self.mark = self.index.slot_of(point.read_ms), max(point.mark, 0)
            if 0 <= point.mark <= end:
                found = yield from delivered_since(log_, point.mark, end)
                self._sources, self._sources_ms = found.sources, found.newest_ms
            else:
                self.mark = end
            if opened.is_new:
                mark = point.mark if point.mark >= 0 else end  # the original delivers at once what comes late
                self._rebuild = Rebuild(self.read_ms, mark, point.queue_offset)
            self.queue_offset = min(max(opened.queue_offset, int(first)), int(last))
        if self.read_ms == 0:  # nothing has ever been delivered, and nothing older fits the wheel
            self.read_ms = now_step - self._half_turn_ms
        self._needed = self._sources_end = int(last)
        self.found = point
        self._loading = self._load()
        self.is_open = True

    def _queue_offset_of(self, log_offset: int, size: int) -> int | None:
        record = timed_record(self._store, log_offset, size)
        return None if record is None else record.queue_offset

    def oldest_waiting(self) -> int | None:
        """Before this place of the log no message waits; None when none does."""
        if not self.is_open:
            return int(self._store.log.start)
        place = self.index.waits_from()
        if place is None and (queue := self._store.queues.find(TIMER_TOPIC, 0)) is not None:
            entry = queue.entry(self.queue_offset)
            place = None if entry is None else entry[0]
        return place

    # ---- one turn ------------------------------------------------------------------------------------------

    def turn(self) -> int | None:
        """Do a piece of work.  When to come again, by the clock; None when only a new message can be a reason."""
        now_ms = self._clock.now_ms()
        self.index.units.write()  # when the disk was full
        if self._loading is not None:
            if next(self._loading, self) is self:
                self._loading = None
            return now_ms
        if self._crumbs and not self._heap:
            self._loading = self._load_portion()
            return now_ms
        takes_in = self._takes_in(now_ms)
        if not takes_in and not self._recalls.knows(self._needed):  # the slot waits for none of these
            self._loading = self._recalls.look_ahead(self.queue_offset, self._needed)
            return now_ms
        busy = takes_in and self._take_in()
        busy = self._deliver(now_ms) or busy
        if busy or self._advance(now_ms):
            return now_ms
        if self._retry_at_ms > now_ms:
            return self._retry_at_ms
        if self.queue_offset < self._queue_end:  # nobody tells when what a start has found may be read
            return now_ms + UNREADABLE_MS
        if self._heap:
            return max(now_ms + 1, self._heap[0].time_ms + 1)
        return max(now_ms + 1, self.read_ms + self.index.step_ms) if self.index.slots_ahead else None

    @property
    def is_rebuilding(self) -> bool:
        """Whether the index is being made again: until all is in it, the last point stays the true one."""
        return self._rebuild is not None

    @property
    def is_full(self) -> bool:
        """Whether it has as many messages in memory as it takes: delivery is behind, or the clock was set back."""
        return len(self._heap) >= TIMER_READY_MAX

    @property
    def _queue_end(self) -> int:
        queue = self._store.queues.find(TIMER_TOPIC, 0)
        return 0 if queue is None else int(queue.end)

    def _is_behind(self, now_ms: int) -> bool:
        """Whether the slot waits for messages that were in the queue when it began: among these are all that recall
        something of it."""
        return self.queue_offset < self._needed and self._takes_in(now_ms)

    def _takes_in(self, now_ms: int) -> bool:
        """Behind half a turn of the wheel, new messages could meet old ones in their slots."""
        return now_ms - self.read_ms < self._half_turn_ms and not self.is_full

    def _filed_to(self) -> int:
        """Where the log ends, or its first message that is still to be filed."""
        queue = self._store.queues.find(TIMER_TOPIC, 0)
        unfiled = None if queue is None else queue.entry(self.queue_offset)
        return int(self._store.log.end) if unfiled is None else unfiled[0]

    # ---- from the queue into the index ---------------------------------------------------------------------

    def _take_in(self) -> bool:
        """File the next messages of the queue; tells whether there are more."""
        queue = self._store.queues.find(TIMER_TOPIC, 0)
        if queue is None or self.queue_offset >= queue.end:
            self._rebuild = None
            return False
        if self.queue_offset < queue.start:  # expired before they had units
            self.queue_offset = int(queue.start)
        entries = queue.read(self.queue_offset, min(TAKEN_PER_TURN, queue.end - self.queue_offset))
        if not entries:  # a lost piece of the queue: go on behind it
            self.queue_offset = int(queue.following(self.queue_offset))
            return True
        readable, log_ = self._store.reader.readable_end, self._store.log
        first = self.queue_offset
        for at in range(0, len(entries), ENTRY_BYTES):
            log_offset, size, _ = ENTRY.unpack_from(entries, at)
            if size != GAP_SIZE and log_offset >= log_.start:
                if log_offset + size > readable and log_offset < log_.end:
                    break
                self._take(queue, log_offset, size)
            self.queue_offset += 1
            self.changes += 1
        self.index.units.write()
        return self.queue_offset > first

    def _take(self, queue: ConsumeQueue, log_offset: int, size: int) -> None:
        record = timed_record(self._store, log_offset, size)
        if record is None or record.queue_offset != self.queue_offset:
            self._store.reader.pass_over(queue, self.queue_offset)
            return
        properties = record.properties
        out_ms = parse_whole(properties.get(Property.TIMER_OUT_MS, ""))
        if out_ms is None or out_ms < 0:
            log.warning("the record at %d is in the timer's queue and has no time: passed over", log_offset)
            return
        step_ms = self.index.step_ms
        kind = DUE | (DELETE if Property.TIMER_DELETE_KEY in properties else 0)
        stored_step = self.index.slot_of(record.stored_ms)
        time_ms = promised_ms(properties, out_ms, record.stored_ms, step_ms) - 1
        roll_ms = roll_time(self.index.slot_of(out_ms), stored_step, self._window_ms)
        if roll_ms is not None:
            kind, time_ms = kind | ROLL, roll_ms
        if time_ms >= self.read_ms + SLOTS * step_ms:  # it came by a clock that was far ahead
            kind, time_ms = kind | ROLL, self.read_ms + self._half_turn_ms
        if self._is_done(record, log_offset, self.index.slot_of(time_ms), kind):
            return
        filed_ms = max(time_ms, self.read_ms)  # what comes too late is of the slot that is being delivered
        written_ms = max(stored_step, filed_ms - INT32_MAX)
        hash_ = java_hash(properties.get(Property.REAL_TOPIC, ""))
        unit = Unit(NOWHERE, kind, written_ms, filed_ms - written_ms, log_offset, size, hash_)
        is_ahead = filed_ms >= self.read_ms + step_ms
        is_first = self.index.wheel.slot(filed_ms).last == NOWHERE
        at = self.index.add(unit)
        self.index.slots_ahead += is_ahead and is_first
        if not is_ahead:
            self._ready(_Item(time_ms, at, unit))

    def _is_done(self, record: TimedRecord, log_offset: int, slot_ms: int, kind: int) -> bool:
        """While the index is made again: whether this one was delivered long ago."""
        if kind & ROLL:
            slot_ms += UNSURE_MS  # the original rolls by its own clock
        rebuild = self._rebuild
        return rebuild is not None and rebuild.has_done(
            log_offset, record.queue_offset, record.stored_ms, slot_ms
        )

    # ---- from the index to the readers ---------------------------------------------------------------------

    def _advance(self, now_ms: int) -> bool:
        """Go on to the next slot that holds something and has come; tells whether there is something to do."""
        step_ms = self.index.step_ms
        needed, filed_to = self._queue_end, self._filed_to()
        for passed in range(EMPTY_SLOTS_PER_TURN):
            if self._heap or self._crumbs or now_ms < self.read_ms + step_ms or self._is_behind(now_ms):
                return passed > 0  # where it is now, it may file again
            self.index.pending -= self.index.wheel.slot(self.read_ms).messages
            self.read_ms += step_ms
            if self.read_ms > self._sources_ms and self.queue_offset >= self._sources_end:
                self._sources.clear()
            if not self._sources:  # or the next start would not find them
                self.mark = filed_to
            self._recalls.begin_slot(self.queue_offset, can_file=self._takes_in(now_ms))
            self._done_here = False
            self._needed = needed
            if self.index.wheel.slot(self.read_ms).last != NOWHERE:
                self.index.slots_ahead -= 1
                self._loading = self._load()
                return True
        return True

    def _load(self) -> Steps[None]:
        """The slot into memory: who was recalled first, then the oldest portion."""
        crumbs: list[int] = []
        for count, (at, unit) in enumerate(self._slot_units()):
            if count % PORTION_UNITS == 0:
                crumbs.append(at)
            if unit.is_recall:
                self._recalls.note(unit.log_offset, unit.size)
            if count % LOADED_PER_TURN == LOADED_PER_TURN - 1:
                yield
        self._crumbs = list(pairwise([*crumbs, NOWHERE]))
        yield from self._load_portion()

    def _slot_units(self) -> Iterator[tuple[int, Unit]]:
        return self.index.chain(self.index.wheel.slot(self.read_ms).last)

    def _load_portion(self) -> Steps[None]:
        if not self._crumbs:
            return
        first, stop = self._crumbs.pop()  # the last one is the oldest
        for count, (at, unit) in enumerate(self.index.chain(first)):
            if at == stop:
                break
            if not unit.is_recall:
                heapq.heappush(self._heap, _Item(self._time_of(unit), at, unit))
            if count % LOADED_PER_TURN == LOADED_PER_TURN - 1:
                yield

    def _time_of(self, unit: Unit) -> int:
        """When a unit is due.  The original notes the beginning of the slot, and so do we for what came too late for
        its own slot: then the record knows."""
        if unit.time_ms % self.index.step_ms:
            return unit.time_ms
        record = timed_record(self._store, unit.log_offset, unit.size)
        if record is None:
            return unit.time_ms
        out_ms = parse_whole(record.properties.get(Property.TIMER_OUT_MS, "")) or 0
        if unit.kind & ROLL:
            out_step, stored_step = self.index.slot_of(out_ms), self.index.slot_of(record.stored_ms)
            return min(unit.time_ms, roll_time(out_step, stored_step, self._window_ms) or out_step)
        return promised_ms(record.properties, out_ms, record.stored_ms, self.index.step_ms) - 1

    def _ready(self, item: _Item) -> None:
        """A message comes into the slot that is in memory."""
        if item.unit.is_recall:
            self._recalls.note(item.unit.log_offset, item.unit.size)
        else:
            heapq.heappush(self._heap, item)

    def _deliver(self, now_ms: int) -> bool:
        """Store what is due; tells whether there is more."""
        if now_ms < self._retry_at_ms or not self._heap or self._heap[0].time_ms >= now_ms:
            return False
        if self._is_behind(now_ms):
            return False
        popped: dict[int, _Item] = {}

        def done(due: Sequence[_Due], end: int | None) -> None:
            for item, message in due:
                del popped[item.at]
                self._sources.discard(item.unit.log_offset)
                self.delivered += message is not None and end is not None
            self._done_here = True
            self.changes += len(due)

        try:
            append_due(self._door, self._pop_due(now_ms, popped), done, _pass_over)
        except (RequestError, StoreRefusal) as error:
            self._retry_at_ms = now_ms + RETRY_MS
            self._trouble.met(error)
            return False
        finally:  # whatever has happened, what is not dealt with comes again
            for item in popped.values():
                heapq.heappush(self._heap, item)
        self._trouble.over()
        return True

    def _pop_due(self, now_ms: int, popped: dict[int, _Item]) -> list[_Due]:
        """The next ones that are due, with what is to be stored for them."""
        due: list[_Due] = []
        size = 0
        while self._heap and self._heap[0].time_ms < now_ms:
            if len(due) >= DELIVERED_PER_TURN or size >= DELIVERED_BYTES_PER_TURN:
                break
            item = heapq.heappop(self._heap)
            popped[item.at] = item
            message = None
            try:
                message = self._message(item.unit, now_ms)
            except (MalformedRecord, Undeliverable, ValueError) as error:
                _pass_over(_Due(item, None), error)
            due.append(_Due(item, message))
            size += 0 if message is None else item.unit.size
        return due

    def _message(self, unit: Unit, now_ms: int) -> NewMessage | None:
        """The message as it is delivered, or written once more; None when it is not to be."""
        if unit.log_offset in self._sources:
            return None
        record = timed_record(self._store, unit.log_offset, unit.size)
        if record is None:
            self._store.reader.damaged += 1
            raise Undeliverable(UNSOUND)
        data, properties = record.data, record.properties
        topic, queue_id = own_queue(properties)
        if self._gone.had(topic, unit.log_offset):  # not written again either: that would make it younger
            return None
        mark = mark_of(unit.log_offset)
        times = {
            Property.TIMER_ENQUEUE_MS: str(unit.written_ms),
            Property.TIMER_DEQUEUE_MS: str(now_ms),
        }
        if unit.kind & ROLL:
            rolls = parse_count(properties.get(Property.TIMER_ROLL_TIMES, "")) or 0
            message = NewMessage.of_record(data)._replace(prepared_offset=mark)
            return message.with_pairs(**times, **{Property.TIMER_ROLL_TIMES: str(rolls + 1)})
        if self._recalls.has(topic, properties.get(Property.UNIQUE_KEY, "")):
            return None
        message = NewMessage.of_record(data)._replace(topic=topic, queue_id=queue_id, prepared_offset=mark)
        return message.with_pairs(**times)

    # ---- points --------------------------------------------------------------------------------------------

    def point(self) -> TimerPoint:
        """Where the timer is now.  It is true when all units are written."""
        return TimerPoint(
            self.read_ms, self.index.units.end, self.queue_offset, self.mark, self.index.step_ms
        )

    def catch_up(self) -> None:
        """At a stop: be at the slot of this moment."""
        now_ms = self._clock.now_ms()
        self.index.units.write()
        while self._loading is not None or self._advance(now_ms):
            if self._loading is not None:
                at_once(self._loading)
                self._loading = None

    def settle(self) -> bool:
        """At a stop, behind a point: leave nothing delivered in the slot, for whoever goes on from here.

        Tells whether another point has to follow."""
        if not self._done_here:
            return False
        remaining = {item.at for item in self._heap}
        for first, stop in self._crumbs:
            for at, _ in self.index.chain(first):
                if at == stop:
                    break
                remaining.add(at)
        if remaining:
            remaining |= {at for at, unit in self._slot_units() if unit.is_recall}
        self.index.keep_only(self.read_ms, remaining)
        return True


def _pass_over(due: _Due, why: Exception) -> None:
    log.error("a timed message is passed over, its record is at %d: %s", due.item.unit.log_offset, why)
