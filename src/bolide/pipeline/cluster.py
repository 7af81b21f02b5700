"""What the driver asks the servers when it plans: which queues there are, where they begin and end, what lies where.

Nothing is decided here.  Questions about many queues are asked side by side.  A connection that breaks is made again,
a few times; a broker that cannot be reached at all is an error with its address.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from bolide.admin.connection import AdminConnection
from bolide.admin.topics import list_topics
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullStatus
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    MalformedRecord,
    NoBroker,
)
from bolide.model.limits.spark import SPARK_TASKS_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.ticks import pause
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.places import Mark
from bolide.pipeline.ranges import Ends, QueueRange
from bolide.record.layout import OpenRecord, open_record

log = logging.getLogger(__name__)

AT_ONCE_MAX = 128
SAMPLES = 5
"""Messages of a range that are looked at to learn how large they are."""

TRIES = 3
TRIES_ONCE_REACHED = 12
PAUSE_MS = 300
PAUSE_MAX_MS = 1_000
"""A broker that was there before may be starting again: that takes some seconds."""

K = TypeVar("K")
V = TypeVar("V")


class Cluster:
    """Connections of one read, on the loop that it is used on."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._instance = ClientInstance(options.nameserver)
        self._calls = QueueCalls(self._instance, options.group)
        self._admin = AdminConnection(options.nameserver)
        self._at_once = asyncio.Semaphore(AT_ONCE_MAX)
        self._was_reached = False

    async def start(self) -> None:
        await self._instance.start()

    async def close(self) -> None:
        await self._instance.close()
        await self._admin.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- queues --------------------------------------------------------------------------------------------

    async def queues(self) -> list[MessageQueue]:
        """The queues of all topics that are read, as the name servers have them now."""
        topics = self._options.topics
        names: Iterable[str] = topics.names
        if topics.pattern is not None:
            names = topics.matching(await self._again(list_topics, self._admin))
        await self._again(self._instance.routes.refresh)
        routes = [(name, await self._again(self._instance.routes.route, name)) for name in names]
        queues = [queue for name, route in routes for queue in route.readable(name) if topics.has(queue)]
        if len(queues) > SPARK_TASKS_MAX:
            raise ConfigError(
                f"{len(queues)} queues would be as many tasks, and Spark gets at most {SPARK_TASKS_MAX}:"
                " subscribe to fewer topics at a time"
            )
        if absent := topics.absent(queues):
            raise ConfigError(f"assign names queues that are not there: {listed(absent)}")
        return queues

    async def ends(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        async def ends_of(queue: MessageQueue) -> Ends:
            first, last = await asyncio.gather(self._calls.min_offset(queue), self._calls.max_offset(queue))
            return Ends(first, max(first, last))

        return await self._of_each(queues, ends_of)

    async def offsets_at(self, moments_ms: Mapping[MessageQueue, int]) -> dict[MessageQueue, int]:
        """The first message stored at or after the moment; the end of the queue where there is none."""
        return await self._of_each(moments_ms, lambda queue: self._calls.offset_at(queue, moments_ms[queue]))

    # ---- single messages -----------------------------------------------------------------------------------

    async def marks(self, offsets: Mapping[MessageQueue, int]) -> dict[MessageQueue, Mark | None]:
        """The message at one offset of each queue; None where it has none."""

        async def mark_at(queue: MessageQueue) -> Mark | None:
            record = await self._record(queue, offsets[queue])
            return None if record is None else Mark(record.store_timestamp_ms, record.log_offset)

        return await self._of_each(offsets, mark_at)

    async def sizes(self, ranges: Iterable[QueueRange]) -> dict[MessageQueue, float]:
        """How large a message of each range is, about: the mean of some."""

        async def size_in(queue: MessageQueue) -> float:
            one = by_queue[queue]
            places = {one.begin + (one.length - 1) * at // (SAMPLES - 1) for at in range(SAMPLES)}
            records = await asyncio.gather(*(self._record(queue, place) for place in places))
            found = [record.size for record in records if record is not None]
            return sum(found) / len(found) if found else 1.0

        by_queue = {one.queue: one for one in ranges if one.length > 0}
        return await self._of_each(by_queue, size_in)

    async def _record(self, queue: MessageQueue, offset: int) -> OpenRecord | None:
        everything = Subscription.parse(queue.topic, "*")
        if offset < 0:
            return None
        block: PullBlock = await self._calls.pull(queue, GroupOffset(offset), everything, messages_max=1)
        if block.status is not PullStatus.FOUND or not block.data:
            return None
        try:
            record = open_record(block.data, 0, len(block.data))
        except MalformedRecord as error:
            log.warning("%s: the message at offset %d cannot be read: %s", queue, offset, error)
            return None
        return record if record.queue_offset == offset else None

    # ---- progress ------------------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> None:
        """Tell the brokers how far the group has come.  Nothing depends on it, so a failure is only said."""

        async def commit_one(queue: MessageQueue) -> None:
            try:
                await self._calls.commit(queue, GroupOffset(offsets[queue]))
            except BolideError as error:
                log.warning(
                    "%s: the group %s cannot show its progress: %s", queue, self._options.group, error
                )

        await self._of_each(offsets, commit_one)

    # ---- asking --------------------------------------------------------------------------------------------

    async def _of_each(self, keys: Iterable[K], ask: Callable[[K], Awaitable[V]]) -> dict[K, V]:
        async def bounded(key: K) -> V:
            async with self._at_once:
                return await self._again(ask, key)

        keys = list(keys)
        return dict(zip(keys, await asyncio.gather(*map(bounded, keys)), strict=True))

    async def _again(self, ask: Callable[..., Awaitable[V]], *arguments: Any) -> V:
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = await ask(*arguments)
            except (ConnectionLost, CallTimeout, NoBroker):
                if attempt >= (TRIES_ONCE_REACHED if self._was_reached else TRIES):
                    raise
                await pause(min(PAUSE_MS * attempt, PAUSE_MAX_MS) / 1000)
            else:
                self._was_reached = True
                return answer


NAMED_MAX = 10


def listed(queues: Collection[MessageQueue]) -> str:
    names = [str(queue) for queue in queues]
    return ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} more" if names[NAMED_MAX:] else "")
