"""Assignment: the queues of a push consumer, each read for its listener from the stored offset on.

Which they are is kept in step with members and routes (`shares.py`); in broadcasting every queue is ours.  Offsets are
stored every few seconds, when a queue is let go, and at the end; once a queue is let go its offset is never stored
again, because it has another owner.

A queue that is consumed in order is taken with its lock and left slowly: the call that runs may end first.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bolide.client.by_broker import SILENT
from bolide.client.held import HeldQueue
from bolide.client.instance import ClientInstance
from bolide.client.locking import Locking
from bolide.client.offsets import Offsets
from bolide.client.queue_calls import QueueCalls
from bolide.client.reader import Reading, read_queue
from bolide.client.shares import Shares, everything
from bolide.client.start import begin_at
from bolide.machines.consumer import Cache, ProcessQueue
from bolide.machines.orderly import OrderedQueue
from bolide.model.errors import BolideError
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.tasks import Tasks
from bolide.rules.allocate import Strategy

log = logging.getLogger(__name__)

LEAVE_MS = 20_000
"""How long a queue that is consumed in order waits for the end of its call (RocketMQ: unlockDelayTimeMills)."""

PULL_EXPIRED_MS = 120_000
"""After so long without a pull a queue is begun anew (RocketMQ: PULL_MAX_IDLE_TIME)."""


@dataclass(frozen=True)
class Sharing:
    """How queues are come by."""

    offsets: Offsets
    start_from: str | int
    strategy: Strategy | None
    """None: all queues are ours."""
    in_order: bool = False
    locking: Locking | None = None


class Assignment(Shares[HeldQueue]):
    """The queues held now, each with a task that reads it."""

    def __init__(
        self,
        instance: ClientInstance,
        calls: QueueCalls,
        reading: Reading,
        subscriptions: Callable[[], Mapping[str, Subscription]],
        sharing: Sharing,
    ) -> None:
        super().__init__(instance, calls, subscriptions, sharing.strategy or everything)
        self._clock = instance.clock
        self._reading = reading
        self._sharing = sharing
        self._offsets = sharing.offsets
        self._cache = Cache()
        self._leaving: dict[MessageQueue, HeldQueue] = {}
        self._unlocking: set[MessageQueue] = set()  # never held, and their locks may be ours
        self._tasks = Tasks()
        self._farewells = Tasks()

    @property
    def held(self) -> list[HeldQueue]:
        return list(self._held.values())

    # ---- who has what --------------------------------------------------------------------------------------

    async def rebalance(self) -> int | None:
        """One round; what was not pulled from for a long time is begun anew in it."""
        for held in self.held:
            if self._clock.monotonic_ms() - held.pulled_ms > PULL_EXPIRED_MS:
                log.warning("%s was not pulled from for a long time, and is begun anew", held.queue)
                await self._let_go(held)
        return await super().rebalance()

    async def _share_of(self, topic: str, queues: list[MessageQueue]) -> set[MessageQueue] | None:
        if self._sharing.strategy is None:
            return set(queues)
        return await super()._share_of(topic, queues)

    # ---- taking and leaving --------------------------------------------------------------------------------

    async def _take(self, queue: MessageQueue, subscription: Subscription) -> bool:
        if not self._has_room():
            return True  # there is nothing to wait for
        if queue in self._leaving:
            return False  # its last call still runs
        if queue in self._unlocking:
            return False  # the next lock would be given back in place of the last one
        try:
            held = await self._new_held(queue, subscription)
        except SILENT:
            raise
        except BolideError as error:
            log.warning("the start offset of %s: %s", queue, error)
            return False
        if held is None:
            return False
        self._held[queue] = held
        held.reader = self._tasks.start(read_queue(held, self._reading), f"reader of {queue}")
        log.info("took %s from offset %d", queue, held.process.next_offset)
        return True

    async def _new_held(self, queue: MessageQueue, subscription: Subscription) -> HeldQueue | None:
        """Where to begin is asked for after the lock; None while another member has the lock."""
        locking, lock = self._sharing.locking, None
        try:
            if locking is not None and (lock := await locking.lock_one(queue)) is None:
                return None
            start = await begin_at(self._calls, queue, self._sharing.start_from, self._offsets.stored)
        except BaseException as error:
            if locking is not None and (lock is not None or not isinstance(error, BolideError)):
                self._unlocking.add(queue)  # who was cancelled may not have heard that he has got it
                self._farewells.start(self._unlock(locking, queue), f"unlocking {queue}")
            raise
        process = (
            OrderedQueue(start, self._cache, locked_ms=lock and lock.asked_ms)
            if self._sharing.in_order
            else ProcessQueue(start, self._cache)
        )
        held = HeldQueue(queue, subscription, process, self._clock.monotonic_ms())
        held.lock_link = lock and lock.link
        return held

    async def _unlock(self, locking: Locking, queue: MessageQueue) -> None:
        try:
            await locking.unlock(queue)
        finally:
            self._unlocking.discard(queue)

    async def _let_go(self, held: HeldQueue, offset: GroupOffset | None = None) -> None:
        """It is not ours any more; its offset is stored, or this one instead.

        Until that is done, and the lock given back, the queue is not taken again where it would matter.
        """
        self._held.pop(held.queue, None)
        if not self._sharing.in_order and offset is None:
            await self._part_with(held)
            return
        held.leave()
        self._leaving[held.queue] = held
        if self._sharing.in_order and held.process.is_at_work:
            self._farewells.start(self._leave_slowly(held, offset), f"leaving {held.queue}")
        else:
            await self._leave(held, offset)

    async def _leave_slowly(self, held: HeldQueue, offset: GroupOffset | None) -> None:
        until_ms = self._clock.monotonic_ms() + LEAVE_MS
        while held.process.is_at_work and (left_ms := until_ms - self._clock.monotonic_ms()) > 0:
            await held.wait_progress(left_ms)
        await self._leave(held, offset)

    async def _leave(self, held: HeldQueue, offset: GroupOffset | None) -> None:
        await self._part_with(held, offset)
        self._leaving.pop(held.queue, None)

    async def _part_with(self, held: HeldQueue, offset: GroupOffset | None = None) -> None:
        may_store = self._may_store(held)
        held.let_go()
        offset = held.process.commit_offset if offset is None else offset
        log.info("let go %s at offset %d", held.queue, offset)
        if may_store:
            await self._store(held.queue, offset)
        if self._sharing.locking is not None:
            await self._sharing.locking.unlock(held.queue)

    # ---- locks ---------------------------------------------------------------------------------------------

    async def renew_locks(self) -> bool:
        """Ask again for the locks of what is held; whether all of them are ours."""
        locking = self._sharing.locking
        assert locking is not None
        queues = [*self._held, *self._leaving]
        told = await locking.renew(queues)
        ours = True
        for queue, lock in told.items():
            held = self._held.get(queue) or self._leaving.get(queue)
            if held is None or held.is_gone:
                continue
            assert isinstance(held.process, OrderedQueue)
            if lock is not None and held.process.renewed(lock.asked_ms, self._clock.monotonic_ms()):
                held.lock_link = lock.link
                self._reading.on_messages(held)
                continue
            ours = False
            log.warning("%s may have been another member's meanwhile, and is begun anew", queue)
            held.process.lost()
            if queue in self._held:
                await self._let_go(held)
        return ours and len(told) == len(queues)

    # ---- offsets -------------------------------------------------------------------------------------------

    def _may_store(self, held: HeldQueue) -> bool:
        """Whether its offset is ours to tell."""
        process = held.process
        if not isinstance(process, OrderedQueue):
            return True
        return held.is_locked and process.is_trusted(self._clock.monotonic_ms())

    async def persist(self) -> None:
        """Store the offsets that have moved since they were stored last."""
        await self._offsets.persist([held for held in self.held if self._may_store(held)])

    async def move(self, topic: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Go on at these offsets, as an operator wants it.  What is at work now counts no more."""
        moved = [held for held in self.held if held.queue.topic == topic and held.queue in offsets]
        await asyncio.gather(*(self._let_go(held, GroupOffset(offsets[held.queue])) for held in moved))

    async def stop_reading(self) -> None:
        """Take nothing more.  What was taken can still be worked on."""
        await self._tasks.close()

    async def close(self) -> None:
        """Store the offsets and let go everything."""
        locking, unlocking = self._sharing.locking, sorted(self._unlocking)
        await self._farewells.close()
        await asyncio.gather(
            *(self._part_with(held) for held in (*self.held, *self._leaving.values())),
            *(locking.unlock(queue) for queue in unlocking if locking is not None),
        )
        self._held.clear()
        self._offsets.close()

    async def _store(self, queue: MessageQueue, offset: GroupOffset) -> None:
        try:
            await self._offsets.store(queue, offset)
        except BolideError as error:
            log.warning("the offset of %s was not stored; messages may come again: %s", queue, error)
