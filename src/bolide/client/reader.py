"""read_queue: pulls one held queue, one request after the other, for as long as it is held.

Nothing that goes wrong ends it: a broker that is away is asked again, an offset outside the queue is corrected as the
broker says, and while the listener is behind it does not pull at all.  Nothing makes it spin either: after answers that
bring nothing it waits before it asks again, and what cannot be read is passed over after some tries.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from bolide.client.answers import Wanted, messages_of
from bolide.client.consumption import Consumption
from bolide.client.held import HeldQueue
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullStatus
from bolide.client.rounds import Seldom, wait_at_most
from bolide.model.clock import Clock
from bolide.model.errors import MalformedRecord, RemoteError
from bolide.model.offsets import GroupOffset
from bolide.net.trouble import Trouble
from bolide.record.stored import StoredMessage
from bolide.wire.codes import ResponseCode

log = logging.getLogger(__name__)

PULL_MESSAGES = 32
HOLD_MS = 15_000
"""How long a broker may hold a pull that finds nothing."""

ERROR_PAUSE_MS = 1_000
FLOW_CONTROL_PAUSE_MS = 20
LOOK_AGAIN_MS = 1_000
"""How often a queue that may not be pulled from looks whether it may: work on other queues may have made room."""

BARREN_PAUSE_MS = 10
"""After a quick answer that brought nothing; twice as long after each further one, up to the pause after an error."""

QUICK_MS = 1_000
"""A broker that held a pull for so long does not make us spin."""

ALONE_TRIES = 3
"""How often a message that cannot be read is asked for alone, before it is passed over."""

SAY_AGAIN_MS = 10_000


def _set_event() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(frozen=True)
class Reading:
    """What all readers of one consumer share."""

    calls: QueueCalls
    clock: Clock
    consumption: Consumption
    on_messages: Callable[[HeldQueue], None]
    on_trouble: Callable[[], None]
    on_skipped: Callable[[int], None]
    offsets_go_along: bool = True
    """Whether a pull carries the group's offset."""
    skips_bad_bodies: bool = False
    pull_interval_ms: int = 0
    messages_max: int = PULL_MESSAGES
    may_pull: asyncio.Event = field(default_factory=_set_event)


async def read_queue(held: HeldQueue, reading: Reading) -> None:
    """Until the queue is let go."""
    reader = _Reader(held, reading)
    while not held.is_gone:
        try:
            await reader.step()
        except Exception as error:  # a queue that nobody reads any more is worse than one that is read slowly
            reader.say(error)
            reading.on_trouble()
            await wait_at_most(held.gone, pause_after_ms(error))


class _Reader:
    """One queue's pulls, and how they went lately."""

    def __init__(self, held: HeldQueue, reading: Reading) -> None:
        self._held = held
        self._process = held.process
        self._reading = reading
        self._clock = reading.clock
        self._trouble = Trouble(log, f"reading {held.queue}", logging.WARNING)
        self._pace = Pace(self._clock, reading.pull_interval_ms)
        self._unread = 0  # answers in a row that could not be read
        self._say_trouble = Seldom(self._clock, ERROR_PAUSE_MS)
        self._say_moved = Seldom(self._clock, SAY_AGAIN_MS)
        self._wanted = Wanted(self._clock, reading.on_skipped, skips_bad_bodies=reading.skips_bad_bodies)

    async def step(self) -> None:
        """One pull and what follows from it, or a wait for room."""
        self._held.pulled_ms = asked_ms = self._clock.monotonic_ms()
        if not self._reading.may_pull.is_set():
            await wait_at_most(self._reading.may_pull, LOOK_AGAIN_MS)
            return
        if self._process.brake is not None:
            await self._held.wait_progress(LOOK_AGAIN_MS)
            return
        place = self._process.next_offset
        block = await self._pull()
        if block.data and self._process.is_crowded_out:
            return  # others were faster; there will be room later, and the broker still has it
        try:
            messages, next_offset = messages_of(block, self._held.queue, place)
        except MalformedRecord as error:
            if self._pass_over(block, error):
                return
            raise
        self._unread = 0
        self._trouble.over()
        self._held.broker_id = block.suggested_broker_id
        wanted = self._wanted.of(messages, self._held.queue, self._held.subscription)
        await self._take_over(block, wanted, next_offset)
        if messages:
            took_ms = self._clock.monotonic_ms() - asked_ms
            self._reading.consumption.pulled(self._held.queue.topic, len(messages), took_ms)
        if wanted:
            self._reading.on_messages(self._held)
        went_on = next_offset > place and block.status is not PullStatus.OFFSET_ILLEGAL
        pause_ms = self._pace.pause_ms(asked_ms, brought_something=bool(wanted) or went_on)
        if pause_ms:
            await wait_at_most(self._held.gone, pause_ms)

    def say(self, error: Exception) -> None:
        """A broker could have us say another thing each time."""
        if self._say_trouble.is_due():
            self._trouble.met(error)

    async def _pull(self) -> PullBlock:
        offset = self._process.commit_offset if self._reading.offsets_go_along else GroupOffset(0)
        return await self._reading.calls.pull(
            self._held.queue,
            self._process.next_offset,
            self._held.subscription,
            messages_max=1 if self._unread else self._reading.messages_max,
            wait_ms=HOLD_MS,
            commit=offset if offset > 0 else None,
            broker_id=self._held.broker_id,
        )

    def _pass_over(self, block: PullBlock, error: MalformedRecord) -> bool:
        """Leave out what the broker cannot give in one piece, not even alone; whether that was done."""
        self._unread += 1
        if self._unread <= ALONE_TRIES or block.next_offset <= self._process.next_offset:
            return False
        log.error(
            "%s: what is at offset %d cannot be read and is skipped: %s",
            *(self._held.queue, self._process.next_offset, error),
        )
        self._unread = 0
        self._reading.on_skipped(1)
        self._process.pulled([], block.next_offset)
        return True

    async def _take_over(
        self, block: PullBlock, messages: list[StoredMessage], next_offset: GroupOffset
    ) -> None:
        process = self._process
        if block.status is PullStatus.OFFSET_ILLEGAL:
            if self._say_moved.is_due():
                log.warning(
                    "%s: offset %d is outside the queue, which has %d to %d; going on at %d",
                    *(self._held.queue, process.next_offset, block.min_offset, block.max_offset, next_offset),
                )
            if next_offset < process.next_offset:
                while not process.is_idle and not self._held.is_gone:
                    await self._held.wait_progress(LOOK_AGAIN_MS)
                    self._held.pulled_ms = self._clock.monotonic_ms()
                if not self._held.is_gone:
                    process.moved_back(next_offset)
                return
        process.pulled(messages, max(next_offset, process.next_offset))


class Pace:
    """How long to wait before the next pull of a queue, if one was no use: a broker that does not hold pulls would make
    us spin.
    """

    def __init__(self, clock: Clock, interval_ms: int = 0) -> None:
        self._clock = clock
        self._interval_ms = interval_ms  # after one that was of use
        self._barren = 0  # quick answers in a row that brought nothing

    def pause_ms(self, asked_ms: int, *, brought_something: bool) -> int:
        """After the answer to a pull that was made then; 0 for at once."""
        if brought_something or self._clock.monotonic_ms() - asked_ms >= QUICK_MS:
            self._barren = 0
            return self._interval_ms
        pause_ms = min(BARREN_PAUSE_MS << self._barren, ERROR_PAUSE_MS)
        self._barren = min(self._barren + 1, ERROR_PAUSE_MS.bit_length())
        return pause_ms


def pause_after_ms(error: Exception) -> int:
    """How long to wait before the next pull, after one that has failed."""
    if isinstance(error, RemoteError) and error.response_code == ResponseCode.FLOW_CONTROL:
        return FLOW_CONTROL_PAUSE_MS
    return ERROR_PAUSE_MS
