"""Timer: timed messages from their queue into the index, and from there to their readers when they are due.

A timed message is a record of the topic `rmq_sys_wheel_timer`.  The timer takes the messages of that queue in the order
of their numbers and files each under its time (`store/timer`).  It goes along the slots of the wheel; the one that it
is at is in memory as a heap by the very millisecond, a portion of it if it is large.  What is due is stored again, in
the queue that it was sent to.  The record names the one that it comes from, so that a start after a crash finds in the
log's end what has been delivered since the last point.

Nobody is served meanwhile, so everything here goes in small pieces: `turn` does one and tells when to come again.
"""

import logging
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from bolide.broker.door import Door
from bolide.broker.timed_record import TimedRecord, share_of, timed_record
from bolide.broker.timer_recalls import Recalls
from bolide.broker.timer_slot import Item, LoadedSlot
from bolide.broker.waiting_message import GoneTopics, Undeliverable, append_due, own_queue
from bolide.model.clock import Clock
from bolide.model.errors import MalformedRecord, RequestError, StoreRefusal
from bolide.model.java_hash import java_hash
from bolide.model.limits import TIMER_READY_MAX
from bolide.model.message import Property
from bolide.model.names import TIMER_TOPIC
from bolide.model.numbers import parse_count, parse_whole
from bolide.model.steps import Steps, at_once
from bolide.net.trouble import Trouble
from bolide.rules.timed import promised_ms, roll_time
from bolide.store.new_message import NewMessage
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import MessageStore
from bolide.store.tables import TopicTable
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

RETRY_MS = 500
UNREADABLE_MS = 5
"""Until the next look for messages that are in the queue and may not be read yet."""

UNSOUND = "its record is damaged, or not in the log any more"

AHEAD = (
    "config/timercheck, which the original has written, says that all is delivered up to a time that is %d s ahead of"
    " the clock: what has waited for a time before that does not come. If no clock was ever there, stop the broker and"
    " delete the file: the timer's files are made again from the log, and what the original has delivered comes twice"
)

UNSURE_MS = 60_000
"""Without a point, what was stored within a minute before the last delivery may or may not have been delivered."""


_topic_hash = lru_cache(1024)(java_hash)


class _Due(NamedTuple):
    item: Item
    message: NewMessage | None


class Timer:
    def __init__(
        self,
        store: MessageStore,
        door: Door,
        topics: TopicTable,
        index: TimerIndex,
        clock: Clock,
        window_ms: int,
    ) -> None:
        """`window_ms` is how long a record may wait before it is written again."""
        self._store = store
        self._door = door
        self._topics = topics
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
        self._recalls = Recalls(store)
        self._slot = LoadedSlot(store, index, self._recalls, window_ms)
        self._loading: Steps[None] | None = None
        self._done_here = False  # whether something of the slot has been delivered
        self._retry_at_ms = 0
        self._trouble = Trouble(log, "timed messages that are due cannot be stored, and wait")

    # ---- opening -------------------------------------------------------------------------------------------

    def opening(self) -> Steps[None]:
        """Take up the work where it was left.  Nothing is delivered before that is known."""
        opened: Opened = yield from self.index.opening(self._queue_offset_of)
        yield from self._resume(opened)
        self.found = opened.point
        ahead_ms = self.read_ms - self._clock.now_ms()
        if ahead_ms > 0 and opened.point is not None and opened.point.mark < 0:
            log.warning(AHEAD, ahead_ms // 1000)
        self._loading = self._slot.load(self.read_ms)
        self.is_open = True

    def _make_again(self) -> Steps[None]:
        """The index from the log, as a start would that finds nothing but a point of this moment."""
        point = self.point()
        self._rebuild = Rebuild(point.read_ms)  # no point is written from here on
        self.index.clear()
        self._slot.clear()
        yield from self._resume(Opened(point, 0, is_new=True))
        self.changes += 1

    def _resume(self, opened: Opened) -> Steps[None]:
        log_, reader, end = self._store.log, self._store.reader, int(self._store.log.end)
        now_step = self.index.slot_of(self._clock.now_ms())
        first, last = reader.queue_range(TIMER_TOPIC, 0)
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
        if self.index.is_broken:
            if self.index.is_held:
                return now_ms + UNREADABLE_MS
            self._loading = self._make_again()
            return now_ms
        if self._slot.wants_portion:
            self._loading = self._slot.load_portion()
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
        if self._slot.heap:
            return max(now_ms + 1, self._slot.heap[0].time_ms + 1)
        return max(now_ms + 1, self.read_ms + self.index.step_ms) if self.index.slots_ahead else None

    @property
    def is_rebuilding(self) -> bool:
        """Whether the index is being made again: until all is in it, the last point stays the true one."""
        return self._rebuild is not None or self.index.is_broken

    @property
    def is_full(self) -> bool:
        """Whether it has as many messages in memory as it takes: delivery is behind, or the clock was set back."""
        return len(self._slot.heap) >= TIMER_READY_MAX

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
        entries = share_of(queue.read(self.queue_offset, min(TAKEN_PER_TURN, queue.end - self.queue_offset)))
        if not entries:  # a lost piece of the queue: go on behind it
            self.queue_offset = int(queue.following(self.queue_offset))
            return True
        readable, log_ = self._store.reader.readable_end, self._store.log
        first, count = self.queue_offset, len(entries) // ENTRY_BYTES
        at = self._take_plain(entries, 0)
        while at < count:
            log_offset, size, _ = ENTRY.unpack_from(entries, at * ENTRY_BYTES)
            if size != GAP_SIZE and log_offset >= log_.start:
                if log_offset + size > readable and log_offset < log_.end:
                    break
                self._take(queue, log_offset, size)
            self._took(1)
            at = self._take_plain(entries, at + 1)
        self.index.units.write()
        return self.queue_offset > first

    def _take_plain(self, entries: bytes, at: int) -> int:
        """File those from here on that need no decision, in compiled code; the first one that does."""
        reader = self._store.reader
        log_offset = (
            ENTRY.unpack_from(entries, at * ENTRY_BYTES)[0] if at * ENTRY_BYTES < len(entries) else -1
        )
        segment = self._store.log.segment_of(log_offset)
        if segment is None or self._rebuild is not None or self._may_be_delivered:
            return at
        where = (segment.view, segment.base, int(reader.readable_end), reader.check)
        count = self.index.add_plain(entries, at, self.queue_offset, *where, self.read_ms, self._window_ms)
        self._took(count)
        return at + count

    @property
    def _may_be_delivered(self) -> bool:
        """Whether the next message of the queue may be one that was delivered before the start."""
        return bool(self._sources) and self.queue_offset < self._sources_end

    def _took(self, count: int) -> None:
        self.queue_offset += count
        self.changes += count

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
        if log_offset in self._sources:  # it went by another clock, and by this one might go later
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
        hash_ = _topic_hash(properties.get(Property.REAL_TOPIC, ""))
        unit = Unit(NOWHERE, kind, stored_step, 0, log_offset, size, hash_).due_at(filed_ms)
        is_ahead = filed_ms >= self.read_ms + step_ms
        at, is_first = self.index.add(unit)
        self.index.slots_ahead += is_ahead and is_first
        if not is_ahead:
            self._slot.add(Item(time_ms, at, unit))

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
        if not self._slot.is_over or now_ms < self.read_ms + self.index.step_ms or self._is_behind(now_ms):
            return False
        self._loading = self._go_on(now_ms)
        return True

    def _go_on(self, now_ms: int) -> Steps[None]:
        """At once over slots that hold nothing: the timer may be years behind, and seconds are many."""
        next_ms = self.read_ms + self.index.step_ms
        slot_ms = yield from self.index.wheel.next_used(next_ms, self._goes_to(now_ms))
        self._begin_slot(slot_ms, now_ms)
        if self.index.wheel.slot(slot_ms).last != NOWHERE:
            self.index.slots_ahead -= 1
            yield from self._slot.load(slot_ms)

    def _goes_to(self, now_ms: int) -> int:
        """How far it may go when nothing is on the way: where filing begins again it is to stop, and to file."""
        step_ms = self.index.step_ms
        next_ms, unfiling_ms = self.read_ms + step_ms, self.index.slot_of(now_ms - self._half_turn_ms)
        if next_ms <= unfiling_ms:
            return unfiling_ms
        return self.index.slot_of(now_ms) if self.queue_offset >= self._queue_end else next_ms

    def _begin_slot(self, slot_ms: int, now_ms: int) -> None:
        self.index.pending -= self.index.wheel.slot(self.read_ms).messages
        self.read_ms = slot_ms
        if self.read_ms > self._sources_ms and self.queue_offset >= self._sources_end:
            self._sources.clear()
        if not self._sources:  # or the next start would not find them
            self.mark = self._filed_to()
        self._recalls.begin_slot(self.queue_offset, can_file=self._takes_in(now_ms))
        self._done_here = False
        self._needed = self._queue_end

    def _deliver(self, now_ms: int) -> bool:
        """Store what is due; tells whether there is more."""
        if now_ms < self._retry_at_ms or not self._slot.heap or self._slot.heap[0].time_ms >= now_ms:
            return False
        if self._is_behind(now_ms):
            return False
        popped: dict[int, Item] = {}

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
                self._slot.push(item)
        self._trouble.over()
        return True

    def _pop_due(self, now_ms: int, popped: dict[int, Item]) -> list[_Due]:
        """The next ones that are due, with what is to be stored for them."""
        due: list[_Due] = []
        size = 0
        while self._slot.heap and self._slot.heap[0].time_ms < now_ms:
            if len(due) >= DELIVERED_PER_TURN or size >= DELIVERED_BYTES_PER_TURN:
                break
            item = self._slot.pop()
            popped[item.at] = item
            message = None
            try:
                message = self._message(item.unit, now_ms)
            except (MalformedRecord, Undeliverable, ValueError) as error:
                _pass_over(_Due(item, None), error)
            due.append(_Due(item, message))
            size += item.unit.size  # also of one that is not stored again: it was read
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
        queue_id = self._topics.queue_now(topic, queue_id)
        message = NewMessage.of_record(data)._replace(topic=topic, queue_id=queue_id, prepared_offset=mark)
        return message.with_pairs(**times)

    # ---- points --------------------------------------------------------------------------------------------

    def point(self) -> TimerPoint:
        """Where the timer is now.  It is true when all units are written."""
        return TimerPoint(
            self.read_ms,
            self.index.units.end,
            self.queue_offset,
            self.mark,
            self.index.step_ms,
            self.index.slots_ahead,
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
        remaining = self._slot.remaining(self.read_ms)
        if self.index.is_broken:  # it would forget what cannot be found now
            return False
        self.index.keep_only(self.read_ms, remaining)
        return True


def _pass_over(due: _Due, why: Exception) -> None:
    log.error("a timed message is passed over, its record is at %d: %s", due.item.unit.log_offset, why)
