"""What the driver asks the servers when it plans: which queues there are, where they begin and end, what lies where.

Nothing is decided here.  Questions about many queues are asked side by side.  A connection that breaks is made again,
a few times; a broker that cannot be reached at all is an error with its address.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from bolide.admin.topics import did_you_mean, list_topics
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullStatus
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    MalformedRecord,
    NoBroker,
    RemoteError,
    RouteNotFound,
)
from bolide.model.limits.spark import SPARK_TASKS_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.response_code import ResponseCode
from bolide.model.topic import Subscription
from bolide.net.ticks import pause
from bolide.pipeline.moments import Stored, first_since
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.places import Mark
from bolide.pipeline.ranges import Ends, QueueRange
from bolide.record.layout import OpenRecord, open_record
from bolide.wire.bodies.client import Route

log = logging.getLogger(__name__)

AT_ONCE_MAX = 128
PULLS_AT_ONCE_MAX = 16
"""Of one message each, which may have some megabytes."""

SAMPLES = 5
"""Messages of a range that are looked at to learn how large they are."""

TRIES = 3
TRIES_ONCE_REACHED = 12
PAUSE_MS = 300
PAUSE_MAX_MS = 1_000
"""A broker that was there before may be starting again: that takes some seconds."""

UNREACHABLE = (ConnectionLost, CallTimeout, NoBroker)

K = TypeVar("K")
V = TypeVar("V")


class Cluster:
    """Connections of one read, on the loop that it is used on."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._instance = options.cluster.instance()
        self._calls = QueueCalls(self._instance, options.group, masters_only=True)
        self._admin = options.cluster.admin()
        self._at_once = asyncio.Semaphore(AT_ONCE_MAX)
        self._pulls_at_once = asyncio.Semaphore(PULLS_AT_ONCE_MAX)
        self._was_reached = False
        self._silent: set[str] = set()
        self._untold: set[MessageQueue] = set()
        self._group_was: dict[MessageQueue, int] = {}
        """Where the group was when this query met its queues, until the query is there."""

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

    async def queues(self, known: Collection[MessageQueue] = ()) -> list[MessageQueue]:
        """The queues of all topics that are read, as the name servers have them now.

        One that is assigned must be there, unless it is known: name servers forget a broker that is away.
        """
        topics = self._options.topics
        names: Iterable[str] = topics.names
        if topics.pattern is not None:
            names = topics.matching(await self._again(list_topics, self._admin))
        await self._again(self._instance.routes.refresh)
        routes = [(name, await self._route(name)) for name in names]
        queues = [queue for name, route in routes for queue in route.readable(name) if topics.has(queue)]
        if len(queues) > SPARK_TASKS_MAX:
            raise ConfigError(
                f"{len(queues)} queues would be as many tasks, and Spark gets at most {SPARK_TASKS_MAX}:"
                " subscribe to fewer topics at a time"
            )
        if absent := topics.absent([*queues, *known]):
            raise ConfigError(f"assign names queues that are not there: {listed(absent)}")
        return queues

    async def _route(self, topic: str) -> Route:
        try:
            return await self._again(self._instance.routes.route, topic)
        except RouteNotFound as error:
            raise await did_you_mean(self._admin, topic, error) from error

    async def ends(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        """A broker that cannot be reached is an error."""
        return await self._of_each(queues, self._ends_of)

    async def ends_there(self, queues: Collection[MessageQueue]) -> dict[MessageQueue, Ends]:
        """Of those queues whose brokers can be reached; it is an error when none can.

        Name servers name a broker for some minutes after its machine is gone.  After the usual tries it gets a single
        one each time, until it answers again.
        """
        failures: list[BolideError] = []

        async def ends_or_none(queue: MessageQueue) -> Ends | None:
            name = queue.broker_name
            try:
                async with self._at_once:
                    ends = await self._again(self._ends_of, queue, once=name in self._silent)
            except (*UNREACHABLE, RouteNotFound) as error:
                self._silent.add(name)
                failures.append(error)
                return None
            self._silent.discard(name)
            return ends

        found = await asyncio.gather(*map(ends_or_none, queues))
        if failures and not any(found):
            raise failures[0]
        return {queue: ends for queue, ends in zip(queues, found, strict=True) if ends is not None}

    async def _ends_of(self, queue: MessageQueue) -> Ends:
        first, last = await asyncio.gather(self._calls.min_offset(queue), self._calls.max_offset(queue))
        return Ends(first, max(first, last))

    async def offsets_at(
        self, moments_ms: Mapping[MessageQueue, int], *, is_end: bool = False
    ) -> dict[MessageQueue, int]:
        """The first message stored at or after the moment; the end of the queue where there is none.

        `is_end` says that it is where a read ends, which damage must not shorten.
        """

        async def first_in(queue: MessageQueue) -> int:
            async def look(offset: int) -> tuple[Stored | None, int]:
                record, following = await self._pull_one(queue, offset)
                if record is None or record.queue_offset < offset:
                    return None, following
                return Stored(record.queue_offset, record.store_timestamp_ms), following

            moment_ms = moments_ms[queue]
            ends, told = await asyncio.gather(self._ends_of(queue), self._calls.offset_at(queue, moment_ms))
            return await first_since(moment_ms, told, ends, look, is_end=is_end)

        return await self._of_each(moments_ms, first_in)

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
            records = [await self._record(queue, place) for place in sorted(places)]
            found = [record.size for record in records if record is not None]
            return sum(found) / len(found) if found else 1.0

        by_queue = {one.queue: one for one in ranges if one.length > 0}
        return await self._of_each(by_queue, size_in)

    async def _record(self, queue: MessageQueue, offset: int) -> OpenRecord | None:
        if offset < 0:
            return None
        record, _ = await self._pull_one(queue, offset)
        return record if record is not None and record.queue_offset == offset else None

    async def _pull_one(self, queue: MessageQueue, offset: int) -> tuple[OpenRecord | None, int]:
        """The first record that a pull brings, if it brings one, and where the next pull goes on."""
        everything = Subscription.parse(queue.topic, "*")
        async with self._pulls_at_once:
            block: PullBlock = await self._calls.pull(queue, GroupOffset(offset), everything, messages_max=1)
            if block.status is not PullStatus.FOUND or not block.data:
                return None, block.next_offset
            try:
                return open_record(block.data, 0, len(block.data)), block.next_offset
            except MalformedRecord as error:
                log.warning("%s: the message at offset %d cannot be read: %s", queue, offset, error)
                return None, block.next_offset

    # ---- progress ------------------------------------------------------------------------------------------

    async def commit(self, offsets: Mapping[MessageQueue, int]) -> list[MessageQueue]:
        """Tell the brokers how far the group has come; the queues of which they know it then.

        A query that begins again, or has taken the name of others by mistake, moves nobody back: it tells nothing
        until it is where the group was.  Nothing depends on it, so a failure is only said, once.  A broker that did not
        answer before is not waited for.
        """

        async def commit_one(queue: MessageQueue) -> bool:
            try:
                if queue not in self._group_was:
                    self._group_was[queue] = await self._committed(queue)
                if offsets[queue] >= self._group_was[queue]:
                    await self._commit(queue, GroupOffset(offsets[queue]))
                    self._group_was[queue] = 0  # what is behind it from now on is a queue that was made anew
            except BolideError as error:
                if queue not in self._untold:
                    log.warning(
                        "%s: the group %s cannot show its progress: %s", queue, self._options.group, error
                    )
                self._untold.add(queue)
                return False
            self._untold.discard(queue)
            return True

        asked = [queue for queue in offsets if queue.broker_name not in self._silent]
        was_told = await self._of_each(asked, commit_one)
        return [queue for queue in asked if was_told[queue]]

    async def _committed(self, queue: MessageQueue) -> int:
        try:
            return int(await self._calls.committed_offset(queue) or 0)
        except RemoteError as error:
            if error.response_code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            return 0

    async def _commit(self, queue: MessageQueue, offset: GroupOffset) -> None:
        try:
            await self._calls.commit(queue, offset)
        except RemoteError as error:
            if error.response_code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            await self._record(queue, offset)  # brokers make a group at its first pull
            await self._calls.commit(queue, offset)

    # ---- asking --------------------------------------------------------------------------------------------

    async def _of_each(self, keys: Iterable[K], ask: Callable[[K], Awaitable[V]]) -> dict[K, V]:
        async def bounded(key: K) -> V:
            async with self._at_once:
                return await self._again(ask, key)

        keys = list(keys)
        return dict(zip(keys, await asyncio.gather(*map(bounded, keys)), strict=True))

    async def _again(self, ask: Callable[..., Awaitable[V]], *arguments: Any, once: bool = False) -> V:
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = await ask(*arguments)
            except UNREACHABLE:
                if once or attempt >= (TRIES_ONCE_REACHED if self._was_reached else TRIES):
                    raise
                await pause(min(PAUSE_MS * attempt, PAUSE_MAX_MS) / 1000)
            else:
                self._was_reached = True
                return answer


NAMED_MAX = 10


def listed(queues: Collection[MessageQueue]) -> str:
    names = [str(queue) for queue in queues]
    return ", ".join(names[:NAMED_MAX]) + (f" and {len(names) - NAMED_MAX} more" if names[NAMED_MAX:] else "")
