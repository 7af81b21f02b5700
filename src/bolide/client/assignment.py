"""Assignment: which queues of the group are ours, kept in step with members and routes.

Each round asks for the members, shares the queues out as every member does (`rules/allocate.py`), lets go what is not
ours any more and takes what is new from the group's offset on.  Offsets go to the broker every few seconds, when a
queue is let go, and at the end; once a queue is let go its offset is never sent again, because it has another owner.

Topics and brokers are asked side by side, and a broker that does not answer is asked no more in the same round: it
keeps nobody from the queues of the others.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from bolide.client.held import HeldQueue
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.client.reader import Reading, read_queue
from bolide.machines.consumer import Cache
from bolide.model.errors import BolideError, CallTimeout, ConnectionLost, RouteNotFound
from bolide.model.limits import CONSUMER_QUEUES_MAX
from bolide.model.names import RETRY_PREFIX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.tasks import Tasks
from bolide.rules.allocate import allocate_average

log = logging.getLogger(__name__)

FIRST = "first"
LAST = "last"
UNSETTLED_PAUSE_MS = 1_000

_SILENT = (CallTimeout, ConnectionLost)

T = TypeVar("T")


class Assignment:
    """The queues held now, each with a task that reads it."""

    def __init__(
        self,
        instance: ClientInstance,
        calls: QueueCalls,
        reading: Reading,
        subscriptions: Callable[[], Mapping[str, Subscription]],
        start_from: str | int,
    ) -> None:
        self._instance = instance
        self._calls = calls
        self._reading = reading
        self._subscriptions = subscriptions
        self._start_from = start_from
        self._cache = Cache()
        self._held: dict[MessageQueue, HeldQueue] = {}
        self._missing: set[str] = set()  # topics that nobody has, as far as was said
        self._has_too_many = False
        self._is_forgotten = False
        self._tasks = Tasks()

    @property
    def queues(self) -> list[MessageQueue]:
        return sorted(self._held)

    # ---- who has what --------------------------------------------------------------------------------------

    async def rebalance(self) -> int | None:
        """One round; a short pause until the next if something was missing, None if all is settled."""
        subscriptions = dict(self._subscriptions())  # more may be added while this waits; they come next
        for topic in subscriptions:  # brokers must know us before they are asked for members
            try:
                await self._instance.routes.route(topic)
            except RouteNotFound:
                continue
        await self._instance.greet_all()
        self._is_forgotten = False
        settled = await asyncio.gather(*(self._settle(*one) for one in subscriptions.items()))
        if self._is_forgotten:
            await self._instance.beat_now()
        return None if all(settled) else UNSETTLED_PAUSE_MS

    async def _settle(self, topic: str, subscription: Subscription) -> bool:
        try:
            return await self._rebalance_topic(topic, subscription)
        except RouteNotFound as error:
            self._say_missing(topic, error)
        except BolideError as error:
            log.warning("sharing the queues of %s: %s", topic, error)
        return False

    async def _rebalance_topic(self, topic: str, subscription: Subscription) -> bool:
        queues = (await self._instance.routes.route(topic)).readable(topic)
        self._say_found(topic)
        members = await self._calls.members(topic)
        if self._instance.client_id not in members:
            self._is_forgotten = True  # the broker has lost us: tell it again, keep what we have
            return False
        ours = set(allocate_average(queues, members, self._instance.client_id))
        mine_before = [held for held in self._held.values() if held.queue.topic == topic]
        await asyncio.gather(*(self._let_go(held) for held in mine_before if held.queue not in ours))
        for held in mine_before:
            held.subscription = subscription
        new = sorted(ours - self._held.keys())
        return await _each_broker(new, _broker_of, lambda queue: self._take(queue, subscription))

    def _say_missing(self, topic: str, error: RouteNotFound) -> None:
        if not topic.startswith(RETRY_PREFIX) and topic not in self._missing:
            self._missing.add(topic)
            log.warning("nothing to consume yet: %s", error)

    def _say_found(self, topic: str) -> None:
        """Where the warning went, so that whoever saw it sees its end too."""
        if topic in self._missing:
            self._missing.discard(topic)
            log.warning("the topic %r is there now, and is consumed", topic)

    async def _take(self, queue: MessageQueue, subscription: Subscription) -> bool:
        if len(self._held) >= CONSUMER_QUEUES_MAX:
            self._say_too_many()
            return True  # there is nothing to wait for
        try:
            start = await self._start_offset(queue)
        except _SILENT:
            raise
        except BolideError as error:
            log.warning("the start offset of %s: %s", queue, error)
            return False
        held = self._held[queue] = HeldQueue(queue, subscription, start, self._cache)
        held.reader = self._tasks.start(read_queue(held, self._reading), f"reader of {queue}")
        log.info("took %s from offset %d", queue, start)
        return True

    def _say_too_many(self) -> None:
        if not self._has_too_many:
            self._has_too_many = True
            log.warning(
                "more queues than the %d that one consumer reads would be its own: the group needs more members",
                CONSUMER_QUEUES_MAX,
            )

    async def _start_offset(self, queue: MessageQueue) -> GroupOffset:
        """The group's offset; for a group without one, where the consumer was told to begin."""
        is_retry = queue.topic.startswith(RETRY_PREFIX)
        committed = await self._calls.committed_offset(queue, zero_for_young=self._start_from == LAST)
        if committed is not None:
            return committed
        if is_retry or self._start_from == FIRST:
            return GroupOffset(0)  # where the queue begins later, the broker corrects it
        if isinstance(self._start_from, int):
            return GroupOffset(await self._calls.offset_at(queue, self._start_from))
        return GroupOffset(await self._calls.max_offset(queue))

    async def _let_go(self, held: HeldQueue) -> None:
        del self._held[held.queue]
        held.let_go()
        log.info("let go %s at offset %d", held.queue, held.process.commit_offset)
        await self._commit(held)

    # ---- offsets -------------------------------------------------------------------------------------------

    async def persist(self) -> None:
        """Send the offsets that have moved since they were sent last."""
        moved = [held for held in self._held.values() if held.process.commit_offset != held.committed]
        await _each_broker(moved, lambda held: _broker_of(held.queue), self._send_offset)

    async def _send_offset(self, held: HeldQueue) -> bool:
        if held.is_gone:
            return True
        offset = held.process.commit_offset
        try:
            await self._calls.commit_soon(held.queue, offset)
        except _SILENT:
            raise
        except BolideError as error:
            log.warning("the offset of %s is not stored yet: %s", held.queue, error)
            return False
        held.committed = offset
        return True

    async def stop_reading(self) -> None:
        """Take nothing more.  What was taken can still be worked on."""
        await self._tasks.close()

    async def close(self) -> None:
        """Commit and let go everything."""
        await asyncio.gather(*(self._let_go(held) for held in list(self._held.values())))

    async def _commit(self, held: HeldQueue) -> None:
        try:
            await self._calls.commit(held.queue, held.process.commit_offset)
        except BolideError as error:
            log.warning("the offset of %s was not stored; messages may come again: %s", held.queue, error)


def _broker_of(queue: MessageQueue) -> str:
    return queue.broker_name


async def _each_broker(
    things: Iterable[T], broker_of: Callable[[T], str], work: Callable[[T], Awaitable[bool]]
) -> bool:
    """Brokers side by side, the things of each one after the other until it does not answer; whether all went well."""
    by_broker: defaultdict[str, list[T]] = defaultdict(list)
    for thing in things:
        by_broker[broker_of(thing)].append(thing)
    return all(await asyncio.gather(*(_until_silent(some, work) for some in by_broker.values())))


async def _until_silent(things: Iterable[T], work: Callable[[T], Awaitable[bool]]) -> bool:
    went_well = True
    for thing in things:
        try:
            went_well &= await work(thing)
        except _SILENT as error:
            log.warning("a broker does not answer, and is asked again in the next round: %s", error)
            return False
    return went_well
