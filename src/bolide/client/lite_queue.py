"""LiteQueue: a queue that a polling consumer has, and the pulls that run ahead of its polls.

Nothing that goes wrong ends the pulls: a broker that is away is asked again, an offset outside the queue is corrected
as the broker says.  Nothing makes them spin either: after answers that bring nothing there is a pause.  What to ask
for, and what becomes of the answers, is decided in `machines/fetched.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from bolide.client.queue_calls import QueueCalls
from bolide.client.reader import ERROR_PAUSE_MS, HOLD_MS, SAY_AGAIN_MS, Pace, pause_after_ms
from bolide.client.results import PullBlock, PullStatus
from bolide.client.rounds import Seldom, wait_at_most
from bolide.machines.consumer import Cache
from bolide.machines.fetched import Ask, FetchedQueue
from bolide.model.clock import Clock
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.tasks import Tasks
from bolide.net.trouble import Trouble
from bolide.wire.bodies.route import MASTER_ID

log = logging.getLogger(__name__)


class LiteQueue:
    """One queue of the consumer.  After `let_go` nothing of it is given out, and its offset is not stored any more.

    `commits`: whether its offset moves by itself, with the polls.
    """

    def __init__(
        self,
        queue: MessageQueue,
        subscription: Subscription,
        start: GroupOffset,
        cache: Cache,
        *,
        commits: bool,
        on_gone: "Callable[[LiteQueue], None]",
    ) -> None:
        self.queue = queue
        self.subscription = subscription
        self.fetched = FetchedQueue(start, cache)
        self.stored: GroupOffset | None = None
        self.storing = asyncio.Lock()
        self.reader: asyncio.Task[None] | None = None
        self.pulls = Tasks()
        self.gone = asyncio.Event()
        self._commits = commits
        self._on_gone = on_gone
        self._stirred = asyncio.Event()

    @property
    def own_offset(self) -> GroupOffset | None:
        """How far the group has come, if that is stored by itself."""
        return self.fetched.done if self._commits else None

    @property
    def is_gone(self) -> bool:
        return self.gone.is_set()

    def let_go(self) -> None:
        self.gone.set()
        self.fetched.let_go()
        if self.reader is not None:
            self.reader.cancel()
        self._on_gone(self)

    def stir(self) -> None:
        """There may be something to pull."""
        self._stirred.set()

    async def until_stirred(self) -> None:
        await self._stirred.wait()
        self._stirred.clear()

    async def seek(self, offset: GroupOffset) -> None:
        """Go on at another place.  What was fetched or is under way is dropped."""
        self.fetched.seek(offset)
        await self.pulls.close()
        self.stir()


@dataclass(frozen=True)
class LiteReading:
    """What all queues of one consumer share."""

    calls: QueueCalls
    clock: Clock
    on_fetched: Callable[[LiteQueue], None]
    on_crowded: Callable[[], None]
    on_trouble: Callable[[], None]
    pull_bytes: Callable[[], int]
    """How many bytes a pull may bring."""


async def read_ahead(held: LiteQueue, reading: LiteReading) -> None:
    """Pull until the queue is let go."""
    reader = _Reader(held, reading)
    try:
        while True:
            reader.ask()
            await held.until_stirred()
    finally:
        await held.pulls.close()


class _Reader:
    """The pulls of one queue, and how they went lately."""

    def __init__(self, held: LiteQueue, reading: LiteReading) -> None:
        self._held = held
        self._fetched = held.fetched
        self._reading = reading
        self._broker_id = MASTER_ID  # where the broker says to pull
        self._pace = Pace(reading.clock)
        self._trouble = Trouble(log, f"reading {held.queue}", logging.WARNING)
        self._say_trouble = Seldom(reading.clock, ERROR_PAUSE_MS)
        self._say_moved = Seldom(reading.clock, SAY_AGAIN_MS)

    def ask(self) -> None:
        """Begin the pulls that may be made now."""
        whole = self._held.subscription.expression == "*"
        while (ask := self._fetched.ask(whole=whole)) is not None:
            self._held.pulls.start(self._pull(ask), f"pull of {self._held.queue}")
        if self._fetched.is_crowded_out and not self._fetched.is_paused:
            self._reading.on_crowded()

    async def _pull(self, ask: Ask) -> None:
        """One pull and what comes of it."""
        try:
            if self._fetched.is_unread:
                await wait_at_most(self._held.gone, ERROR_PAUSE_MS)
            asked_ms = self._reading.clock.monotonic_ms()
            block = await self._call(ask)
            is_moved = block.status is PullStatus.OFFSET_ILLEGAL
            if is_moved and self._say_moved.is_due():
                self._tell_moved(ask, block)
            went_on = bool(block.data) or (block.next_offset > ask.begin and not is_moved)
            pause_ms = self._pace.pause_ms(asked_ms, brought_something=went_on)
            if pause_ms:
                await wait_at_most(self._held.gone, pause_ms)
        except Exception as error:  # a queue that nobody reads any more is worse than one that is read slowly
            await self._met(error)
            self._fetched.failed(ask)
        else:
            self._trouble.over()
            self._broker_id = block.suggested_broker_id
            self._fetched.answered(ask, block.data, block.next_offset, block.max_offset, is_moved=is_moved)
            if self._fetched.head is not None:
                self._reading.on_fetched(self._held)
        self._held.stir()

    async def _call(self, ask: Ask) -> PullBlock:
        """The group's offset does not go along: on its own it is answered, and never overtaken by a newer one."""
        return await self._reading.calls.pull(
            self._held.queue,
            ask.begin,
            self._held.subscription,
            messages_max=ask.count,
            bytes_max=self._reading.pull_bytes(),
            bulk=True,
            wait_ms=HOLD_MS if ask.may_wait else 0,
            broker_id=self._broker_id,
        )

    async def _met(self, error: Exception) -> None:
        if self._say_trouble.is_due():
            self._trouble.met(error)
        self._reading.on_trouble()
        await wait_at_most(self._held.gone, pause_after_ms(error))

    def _tell_moved(self, ask: Ask, block: PullBlock) -> None:
        log.warning(
            "%s: offset %d is outside the queue, which has %d to %d; going on at %d",
            *(self._held.queue, ask.begin, block.min_offset, block.max_offset, block.next_offset),
        )
