"""Deliveries: delayed messages go to their own queues when they are due.

The queue of a level holds its messages in the order of their times, and an entry says when its message is due without
a look into the log.  So a level is a cursor: where it stands, and when the message there is due.  Whatever is due is
appended in slices, the longest overdue first, and the cursors go on behind it.

Where a cursor stands is told to the table when what was delivered is durable.  After a crash the cursors go on behind
everything that the log shows to be delivered (`broker/delivered.py`), so nothing comes twice.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bolide.broker.delivered import first_undelivered
from bolide.broker.door import Door
from bolide.broker.waiting_message import GoneTopics, Undeliverable, append_due, delivered
from bolide.model.clock import Clock
from bolide.model.delay_levels import DelayLevels
from bolide.model.errors import RequestError, StoreUnavailable
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.numbers import INT64_MAX
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import in_turns, next_turn
from bolide.store.append import QueueTail
from bolide.store.new_message import NewMessage
from bolide.store.queue_entry import ENTRY, GAP_SIZE
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import MessageStore
from bolide.store.tables import DelayOffsetTable, TopicTable

log = logging.getLogger(__name__)

SLICE_MESSAGES, SLICE_BYTES = 32, 256 * 1024
"""Delivered in one turn of the loop; a message that is larger goes alone."""

PAUSE_MS, LOOK_MS = 5, 1000
"""Between two looks for what is due: not more often, for those that come one by one; and not less often, because the
clock may step."""

TRY_AGAIN_MS = 200
"""After the log has taken nothing."""

STEP_MS = 1000
"""A clock that goes back so far has been set; less is no more than being late."""

LOOK_NOW, NEVER = 0, INT64_MAX


class _Level:
    """A cursor."""

    __slots__ = ("due_ms", "known_end", "known_ms", "number", "offset")

    def __init__(self, number: int, offset: int) -> None:
        self.number = number
        self.offset = offset
        self.due_ms = LOOK_NOW  # when the message at the offset is due
        # Since `known_ms` of the monotonic clock all messages before this one are known to wait.
        self.known_end = 0
        self.known_ms = 0

    @property
    def queue_id(self) -> int:
        return self.number - 1


class _Due(NamedTuple):
    level: _Level
    offset: int
    """Of the message that follows."""
    message: NewMessage | None


class Deliveries:
    def __init__(
        self,
        store: MessageStore,
        door: Door,
        topics: TopicTable,
        table: DelayOffsetTable,
        levels: DelayLevels,
        clock: Clock,
    ) -> None:
        self._store = store
        self._topics = topics
        self._door = door
        self._table = table
        self._delays = levels
        self._clock = clock
        self._levels: dict[int, _Level] = {}
        # Where the log ended with what was delivered, and the offset of its level then.
        self._unsafe: deque[tuple[int, _Level, int]] = deque()
        self._lead_ms = clock.now_ms() - clock.monotonic_ms()  # of the wall clock, as it was last believed
        self._wake = asyncio.Event()
        self._gone = GoneTopics(store.queues.deletions, clock)
        self._trouble = Trouble(log, "delayed messages cannot be delivered, trying again")
        self.is_ready = False
        """Whether it is known what was delivered before the start."""
        queues = (queue.tail.key for queue in store.queues)
        held = [queue_id + 1 for topic, queue_id in queues if topic == SCHEDULE_TOPIC]
        # Also what waits in levels that are no longer configured.
        for number in (*range(1, levels.highest + 1), *table.levels(), *held):
            self._level(number)
        door.on_arrival(self._on_arrival)

    # ---- life ----------------------------------------------------------------------------------------------

    @goes_on("the delivery of delayed messages")
    async def run(self) -> None:
        """Deliver for ever."""
        if not self.is_ready:
            await self._find_places()
            self.is_ready = True
        while True:
            while self.deliver_some():
                await next_turn()
                self.tell_table()  # a backlog takes a while, and a kill would have a start look through all of it
            self.tell_table()
            await self._pause()

    def close(self) -> None:
        """Nothing more is delivered: the table knows what was."""
        self._store.sync_now()
        self.tell_table()

    def places(self) -> dict[int, tuple[int, int]]:
        """Of each level that has messages, or had some: the number of the next one to deliver, and that of the next one
        to come."""
        ends = {level: self._store.queues.end_of(SCHEDULE_TOPIC, level - 1) for level in sorted(self._levels)}
        return {level: (self._levels[level].offset, end) for level, end in ends.items() if end}

    def oldest_waiting(self) -> int | None:
        """Where in the log the first message is that still waits."""
        queues = ((level, self._queue(level)) for level in self._levels.values())
        entries = (queue.entry(level.offset) for level, queue in queues if queue is not None)
        return min((entry[0] for entry in entries if entry is not None), default=None)

    async def _find_places(self) -> None:
        now_ms = self._clock.now_ms()
        for level in list(self._levels.values()):
            queue = self._queue(level)
            start, end = (0, 0) if queue is None else (int(queue.start), int(queue.end))
            if not start <= level.offset <= end:
                told, level.offset = level.offset, min(max(level.offset, start), end)
                if told:
                    log.warning(
                        "delay level %d goes on at %d instead of %d", level.number, level.offset, told
                    )
            if queue is not None:
                first = await in_turns(
                    first_undelivered(self._store, self._topics, queue, level.offset, now_ms)
                )
                if first != level.offset:
                    log.warning(
                        "level %d: %d messages were delivered before", level.number, first - level.offset
                    )
                level.offset = first
                self._unsafe.append((int(self._store.log.end), level, first))

    async def _pause(self) -> None:
        due_ms = min((level.due_ms for level in self._levels.values()), default=NEVER)
        wait_ms = min(max(due_ms - self._clock.now_ms(), PAUSE_MS), LOOK_MS)
        try:
            async with asyncio.timeout((TRY_AGAIN_MS if self._trouble else wait_ms) / 1000):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    def _on_arrival(self, tail: QueueTail) -> None:
        topic, queue_id = tail.key
        if topic == SCHEDULE_TOPIC:
            level = self._level(queue_id + 1)
            if level.due_ms == NEVER:
                level.due_ms = LOOK_NOW
                self._wake.set()

    def tell_table(self) -> None:
        """How far each level was delivered for good."""
        durable = self._store.durability.durable
        while self._unsafe and self._unsafe[0][0] <= durable:
            _, level, offset = self._unsafe.popleft()
            self._table.move(level.number, offset)

    def _level(self, number: int) -> _Level:
        level = self._levels.get(number)
        if level is None:
            level = self._levels[number] = _Level(number, self._table.get(number) or 0)
        return level

    def _queue(self, level: _Level) -> ConsumeQueue | None:
        return self._store.queues.find(SCHEDULE_TOPIC, level.queue_id)

    # ---- what is due ---------------------------------------------------------------------------------------

    def deliver_some(self) -> bool:
        """Append a slice of what is due; tells whether there may be more."""
        due: list[_Due] = []
        try:
            self._take_some(due, self._now_ms())
            if not due:
                return False
            append_due(self._door, due, self._done, self._does_not_go)
        except Exception as error:
            for one in due:  # whatever it is, and whoever's: what is not delivered stays due
                one.level.due_ms = LOOK_NOW
            if not isinstance(error, RequestError | StoreUnavailable):
                raise
            self._trouble.met(error)
            return False
        self._trouble.over()
        return True

    def _take_some(self, due: list[_Due], now_ms: int) -> None:
        """Add a slice of what is due, the longest overdue first."""
        room = SLICE_BYTES
        for level in sorted(self._levels.values(), key=lambda level: level.due_ms):
            if level.due_ms > now_ms or room <= 0 or len(due) >= SLICE_MESSAGES:
                return
            room -= self._take(level, now_ms, due, room)

    def _take(self, level: _Level, now_ms: int, due: list[_Due], room: int) -> int:
        """Add what is due of a level, as far as there is room for it; tells how many bytes that is.

        Sets when to look at the level again.
        """
        queue = self._queue(level)
        if queue is None or level.offset >= queue.end:
            level.due_ms = NEVER
            return 0
        level.due_ms = LOOK_NOW
        if level.offset < queue.start:
            self._lost(level, int(queue.start))
        offset, taken = level.offset, 0
        entries = queue.read(
            offset, SLICE_MESSAGES - len(due) + 1
        )  # one more, to know how urgent the rest is
        if not entries:
            self._lost(level, max(offset + 1, int(queue.following(offset))))
            return 0
        for log_offset, size, time_ms in ENTRY.iter_unpack(entries):
            level.due_ms = self._due_ms(level, queue, offset, log_offset, time_ms, now_ms)
            if level.due_ms > now_ms or len(due) == SLICE_MESSAGES:
                break
            if due and taken + size > room and size != GAP_SIZE:
                return room
            offset += 1
            message = self._message(level, queue, offset - 1, log_offset, size)
            due.append(_Due(level, offset, message))
            taken += 0 if message is None else size
        return taken

    def _due_ms(
        self, level: _Level, queue: ConsumeQueue, offset: int, log_offset: int, time_ms: int, now_ms: int
    ) -> int:
        """When a message is due: behind the time in its entry, unless the clock was set back since it was stored.

        That time is counted from the beginning of a millisecond, and somewhere in it the message was sent: for its
        sender the delay is over when that millisecond is.

        If the clock was set back it waits as long as was promised, from when it is known of: never less, and not for as
        long as the clock needs to come back to where it was.
        """
        delay_ms = self._delays.delay_ms(level.number)
        if 0 <= time_ms <= now_ms + delay_ms:
            return time_ms + 1
        head = self._store.reader.head_at(log_offset)
        if head is None:
            return LOOK_NOW
        if time_ms < 0:  # in the original's other kind of queue it is the address of more
            time_ms = head.store_timestamp_ms + delay_ms
        if head.store_timestamp_ms <= now_ms:  # the levels were others then
            return time_ms + 1
        if offset >= level.known_end:
            level.known_end, level.known_ms = int(queue.end), self._clock.monotonic_ms()
        waited_ms = self._clock.monotonic_ms() - level.known_ms
        return min(time_ms + 1, now_ms + max(0, time_ms + 1 - head.store_timestamp_ms - waited_ms))

    def _now_ms(self) -> int:
        """The time.  When the clock was set back, all that was read from entries is to be looked at again."""
        now_ms = self._clock.now_ms()
        lead_ms = now_ms - self._clock.monotonic_ms()
        if lead_ms < self._lead_ms - STEP_MS:
            for level in self._levels.values():
                level.due_ms = LOOK_NOW
        if abs(lead_ms - self._lead_ms) > STEP_MS:
            self._lead_ms = lead_ms
        return now_ms

    def _message(
        self, level: _Level, queue: ConsumeQueue, offset: int, log_offset: int, size: int
    ) -> NewMessage | None:
        """The message as it goes to its own queue; None for one that cannot."""
        if size == GAP_SIZE:
            return None
        record = self._store.reader.message_of(queue, offset, log_offset)
        if record is None:
            self._store.reader.pass_over(queue, offset)
            return None
        try:
            message = delivered(record)
            if self._gone.had(message.topic, log_offset):
                return None
            return message._replace(queue_id=self._topics.queue_now(message.topic, message.queue_id))
        except Undeliverable as error:
            self._pass_over(level, offset, error)
            return None

    def _done(self, due: Sequence[_Due], end: int | None) -> None:
        reached = {one.level: one.offset for one in due}
        for level, offset in reached.items():
            level.offset = offset
            self._unsafe.append((int(self._store.log.end) if end is None else end, level, offset))

    def _does_not_go(self, due: _Due, why: Exception) -> None:
        self._pass_over(due.level, due.offset - 1, why)

    def _pass_over(self, level: _Level, offset: int, why: Exception) -> None:
        log.error("message %d of delay level %d is passed over: %s", offset, level.number, why)

    def _lost(self, level: _Level, offset: int) -> None:
        log.error("messages %d to %d of delay level %d are gone", level.offset, offset - 1, level.number)
        level.offset = offset
