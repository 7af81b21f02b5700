"""PullShares: the queues of a consumer, each with what reads it, if anything does.

Offsets that move by themselves go to the broker when somebody says so, when a queue is let go, and at the end; once a
queue is let go its offset is never sent again, because it has another owner.  Of one queue there is one offset under
way at a time, and it is answered: the original serves requests of one connection side by side, and would keep the
older of two.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from bolide.client.by_broker import SILENT
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.client.shares import Changed, Shares, nobody
from bolide.model.errors import BolideError
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.tasks import Tasks
from bolide.rules.allocate import Strategy

log = logging.getLogger(__name__)


class PulledQueue(Protocol):
    """A queue that is ours now."""

    queue: MessageQueue
    subscription: Subscription
    reader: "asyncio.Task[None] | None"
    stored: GroupOffset | None
    """The last offset that the broker has answered for."""
    storing: asyncio.Lock

    @property
    def own_offset(self) -> GroupOffset | None:
        """How far the group has come, if that is stored by itself."""

    @property
    def is_gone(self) -> bool: ...

    def let_go(self) -> None: ...


H = TypeVar("H", bound=PulledQueue)

Hold = Callable[[MessageQueue, Subscription], Awaitable[H]]
Read = Callable[[H], Coroutine[Any, Any, None]]


class PullShares(Shares[H]):
    """`hold` makes what holds a queue, `read` is what reads it."""

    def __init__(
        self,
        instance: ClientInstance,
        calls: QueueCalls,
        subscriptions: Callable[[], Mapping[str, Subscription]],
        strategy: Strategy,
        hold: Hold[H],
        read: Read[H] | None,
        *,
        chosen: Callable[[], Iterable[MessageQueue] | None] = lambda: None,
        on_change: Changed = nobody,
    ) -> None:
        super().__init__(instance, calls, subscriptions, strategy, chosen=chosen, on_change=on_change)
        self._hold = hold
        self._read = read
        self._tasks = Tasks()

    @property
    def held(self) -> Mapping[MessageQueue, H]:
        """What holds each of the queues."""
        return self._held

    async def stop_reading(self) -> None:
        """Take nothing more.  What was taken can still be worked on."""
        await self._tasks.close()

    async def close(self) -> None:
        """Store the offsets and let everything go."""
        await asyncio.gather(*(self._let_go(held) for held in list(self._held.values())))

    async def _take(self, queue: MessageQueue, subscription: Subscription) -> bool:
        if not self._has_room():
            return True  # there is nothing to wait for
        try:
            held = await self._hold(queue, subscription)
        except SILENT:
            raise
        except BolideError as error:
            log.warning("%s cannot be read now: %s", queue, error)
            return False
        self._held[queue] = held
        if self._read is not None:
            held.reader = self._tasks.start(self._read(held), f"reader of {queue}")
        log.info("took %s", queue)
        return True

    async def _let_go(self, held: H) -> None:
        del self._held[held.queue]
        offset = held.own_offset
        held.let_go()
        log.info("let go %s at offset %s", held.queue, offset)
        if offset is None:
            return
        try:
            async with held.storing:  # told again even if it was: the broker may have lost it since
                await self._calls.commit(held.queue, offset)
        except BolideError as error:
            log.warning("the offset of %s was not stored; messages may come again: %s", held.queue, error)

    async def persist(self) -> None:
        """Store the offsets that move by themselves, if they have."""
        if errors := await self.store(lambda held: held.own_offset):
            log.warning("offsets of %d queues are not stored yet: %s", len(errors), errors[0])

    async def store(self, offset_of: Callable[[H], GroupOffset | None]) -> list[BaseException]:
        """Store the offsets of all queues, if they have moved and for as long as these are ours; what went wrong."""

        async def store_one(held: H) -> None:
            async with held.storing:
                offset = offset_of(held)
                if not held.is_gone and offset is not None and offset != held.stored:
                    await self._calls.commit(held.queue, offset)
                    held.stored = offset

        moved = [held for held in self._held.values() if offset_of(held) != held.stored]
        storing = asyncio.gather(*map(store_one, moved), return_exceptions=True)
        outcomes = await asyncio.shield(storing)  # who gives up waiting does not take back what was sent
        return [outcome for outcome in outcomes if outcome is not None]
