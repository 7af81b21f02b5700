"""read_queue: pulls one held queue, one request after the other, for as long as it is held.

Nothing that goes wrong ends it: a broker that is away is asked again, an offset outside the queue is corrected as the
broker says, and while the listener is behind it does not pull at all.  Nothing makes it spin either: after answers that
bring nothing it waits before it asks again, and what cannot be read is passed over after some tries.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from bolide.client.answers import messages_of
from bolide.client.held import HeldQueue
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullStatus
from bolide.client.rounds import Seldom, wait_at_most
from bolide.model.clock import Clock
from bolide.model.errors import MalformedRecord, RemoteError
from bolide.model.message import StoredMessage
from bolide.model.offsets import GroupOffset
from bolide.net.trouble import Trouble
from bolide.wire.codes import ResponseCode

log = logging.getLogger(__name__)

PULL_MESSAGES = 32
HOLD_MS = 15_000
"""How long a broker may hold a pull that finds nothing."""

ERROR_PAUSE_MS = 1_000
FLOW_CONTROL_PAUSE_MS = 20
CROWDED_PAUSE_MS = 1_000
"""How often a queue looks for room that work on other queues may have made."""

BARREN_PAUSE_MS = 10
"""After a quick answer that brought nothing; twice as long after each further one, up to the pause after an error."""

QUICK_MS = 1_000
"""A broker that held a pull for so long does not make us spin."""

ALONE_TRIES = 3
"""How often a message that cannot be read is asked for alone, before it is passed over."""

SAY_AGAIN_MS = 10_000


@dataclass(frozen=True)
class Reading:
    """What all readers of one consumer share."""

    calls: QueueCalls
    clock: Clock
    on_messages: Callable[[HeldQueue], None]
    on_trouble: Callable[[], None]
    on_skipped: Callable[[int], None]
    skips_bad_bodies: bool = False
    messages_max: int = PULL_MESSAGES


async def read_queue(held: HeldQueue, reading: Reading) -> None:
    """Until the queue is let go."""
    reader = _Reader(held, reading)
    while not held.is_gone:
        try:
            await reader.step()
        except Exception as error:  # a queue that nobody reads any more is worse than one that is read slowly
            reader.say(error)
            reading.on_trouble()
            await wait_at_most(held.gone, _pause_ms(error))


class _Reader:
    """One queue's pulls, and how they went lately."""

    def __init__(self, held: HeldQueue, reading: Reading) -> None:
        self._held = held
        self._process = held.process
        self._reading = reading
        self._clock = reading.clock
        self._trouble = Trouble(log, f"reading {held.queue}", logging.WARNING)
        self._barren = 0  # quick answers in a row that brought nothing
        self._unread = 0  # answers in a row that could not be read
        self._say_trouble = Seldom(self._clock, ERROR_PAUSE_MS)
        self._say_moved = Seldom(self._clock, SAY_AGAIN_MS)
        self._say_skipped = Seldom(self._clock, SAY_AGAIN_MS)

    async def step(self) -> None:
        """One pull and what follows from it, or a wait for room."""
        if self._process.brake is not None:
            await self._held.wait_progress(CROWDED_PAUSE_MS if self._process.is_crowded_out else None)
            return
        asked_ms = self._clock.monotonic_ms()
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
        wanted = self._wanted(messages)
        await self._take_over(block, wanted, next_offset)
        if wanted:
            self._reading.on_messages(self._held)
        went_on = next_offset > place and block.status is not PullStatus.OFFSET_ILLEGAL
        await self._pace(asked_ms, brought_something=bool(wanted) or went_on)

    def say(self, error: Exception) -> None:
        """A broker could have us say another thing each time."""
        if self._say_trouble.is_due():
            self._trouble.met(error)

    async def _pull(self) -> PullBlock:
        offset = self._process.commit_offset
        return await self._reading.calls.pull(
            self._held.queue,
            self._process.next_offset,
            self._held.subscription,
            messages_max=1 if self._unread else self._reading.messages_max,
            wait_ms=HOLD_MS,
            commit=offset if offset > 0 else None,
            broker_id=self._held.broker_id,
        )

    def _wanted(self, messages: list[StoredMessage]) -> list[StoredMessage]:
        """Those whose tag really is ours, because brokers compare only hashes; and no bad ones, if told so."""
        subscription = self._held.subscription
        if not subscription.takes_all:
            messages = [message for message in messages if message.tags in subscription.tags]
        if not self._reading.skips_bad_bodies:
            return messages
        good = [message for message in messages if message.body_error is None]
        if len(good) < len(messages):
            self._reading.on_skipped(len(messages) - len(good))
            if self._say_skipped.is_due():
                bad = next(message for message in messages if message.body_error is not None)
                log.warning(
                    "%s: skipped the message at offset %d, and others perhaps: %s",
                    *(self._held.queue, bad.queue_offset, bad.body_error),
                )
        return good

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
                    await self._held.wait_progress()
                if not self._held.is_gone:
                    process.moved_back(next_offset)
                return
        process.pulled(messages, max(next_offset, process.next_offset))

    async def _pace(self, asked_ms: int, *, brought_something: bool) -> None:
        """Wait before the next pull, if this one was no use: a broker that does not hold pulls would make us spin."""
        if brought_something or self._clock.monotonic_ms() - asked_ms >= QUICK_MS:
            self._barren = 0
            return
        pause_ms = min(BARREN_PAUSE_MS << self._barren, ERROR_PAUSE_MS)
        self._barren = min(self._barren + 1, ERROR_PAUSE_MS.bit_length())
        await wait_at_most(self._held.gone, pause_ms)


def _pause_ms(error: Exception) -> int:
    if isinstance(error, RemoteError) and error.response_code == ResponseCode.FLOW_CONTROL:
        return FLOW_CONTROL_PAUSE_MS
    return ERROR_PAUSE_MS
