"""PullConsumer: reads queues from offsets that the caller keeps, on asyncio.

It is nobody's member: it never takes queues from the push consumers of its group, it only reads, and moves the
group's offset when told to.
"""

from datetime import datetime
from types import TracebackType
from typing import Self

from bolide.client import checks
from bolide.client.answers import messages_of
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullResult, PullStatus
from bolide.model.errors import InvalidRequest, MalformedRecord, ProtocolError
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.model.numbers import INT32_MAX
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings

DEFAULT_GROUP = "DEFAULT_READER"
MESSAGES_MAX = 32
BLOCK_MESSAGES_MAX = 1024


class PullConsumer:
    """Reads any queue from any offset.

    Example::

        async with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            for queue in await consumer.queues("orders"):
                result = await consumer.pull(queue, await consumer.min_offset(queue))
                for message in result.messages:
                    print(message.queue_offset, message.body)

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: in whose name to read; `commit` and `committed_offset` use its offsets.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them).
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str = DEFAULT_GROUP,
        bad_bodies: str = checks.DELIVER,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._skips_bad_bodies = checks.bad_bodies(bad_bodies)
        self._instance = ClientInstance(checks.nameserver(nameserver), surroundings)
        self._calls = QueueCalls(self._instance, checks.group(group))
        self._skipped = 0

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Called by `async with`.  Brokers are connected when a queue of theirs is first asked about."""
        await self._instance.start()

    async def close(self) -> None:
        """Called by `async with`.  Says goodbye to the brokers and closes the connections."""
        await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- messages ------------------------------------------------------------------------------------------

    @property
    def skipped(self) -> int:
        """How many messages with bad bodies were skipped, if they are to be."""
        return self._skipped

    async def queues(self, topic: str) -> list[MessageQueue]:
        """All queues of the topic that can be read."""
        self._instance.check_running()
        return (await self._instance.routes.route(checks.topic(topic))).readable(topic)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = MESSAGES_MAX,
        *,
        tags: str = "*",
        sql: str | None = None,
        wait_ms: int = 0,
    ) -> PullResult:
        """Messages of a queue from `offset` on; the next pull is made at `next_offset` of the result.

        Args:
            queue: one of `queues(topic)`.
            offset: the first message wanted.
            max_messages: how many at most; there may be fewer, because brokers have limits and messages sizes.
            tags: `*` for all, or `A || B`.
            sql: instead of tags, an expression over the messages' properties: `price > 3 AND colour = 'red'`.
            wait_ms: how long a pull at the end of the queue waits for a message.

        Raises:
            MalformedRecord: the broker's answer does not begin with a message.
            ProtocolError: the answer contradicts what was asked.
            RouteNotFound, RemoteError, CallTimeout, ConnectionLost: as for every call.
        """
        subscription = checks.subscription(checks.queue(queue).topic, tags, sql)
        place = checks.offset(offset)
        block = await self._pull(queue, place, subscription, max_messages, wait_ms)
        try:
            messages, next_offset = messages_of(block, queue, place)
        except MalformedRecord as error:
            raise MalformedRecord(
                f"{queue} at offset {offset}: {error}; a pull at {offset + 1} may go on behind it"
            ) from error
        if block.status is PullStatus.FOUND and next_offset <= place:
            raise ProtocolError(f"{queue}: the broker goes on at {next_offset} after a pull at {place}")
        matching = [
            message for message in messages if subscription.takes_all or message.tags in subscription.tags
        ]
        if self._skips_bad_bodies:
            good = [message for message in matching if message.body_error is None]
            self._skipped += len(matching) - len(good)
            matching = good
        status = block.status
        if messages and not matching:  # the broker compares hashes of tags, we compare tags
            status = PullStatus.NO_MATCHED_MESSAGE
        return PullResult(status, next_offset, block.min_offset, block.max_offset, matching)

    async def pull_block(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = BLOCK_MESSAGES_MAX,
        max_bytes: int | None = None,
        *,
        wait_ms: int = 0,
    ) -> PullBlock:
        """The same without decoding: records one behind the other, as `bolide.record.layout` describes them.

        Args:
            queue: one of `queues(topic)`.
            offset: the first message wanted.
            max_messages: how many at most.
            max_bytes: how many bytes of records at most.
            wait_ms: how long a pull at the end of the queue waits for a message.
        """
        if max_bytes is not None:
            checks.number("max_bytes", max_bytes, 1, FRAME_BYTES_MAX, InvalidRequest)
        everything = Subscription.parse(checks.queue(queue).topic, "*")
        return await self._pull(queue, checks.offset(offset), everything, max_messages, wait_ms, max_bytes)

    async def _pull(
        self,
        queue: MessageQueue,
        offset: GroupOffset,
        subscription: Subscription,
        messages_max: int,
        wait_ms: int,
        bytes_max: int | None = None,
    ) -> PullBlock:
        return await self._calls.pull(
            queue,
            offset,
            subscription,
            messages_max=checks.number("max_messages", messages_max, 1, INT32_MAX, InvalidRequest),
            bytes_max=bytes_max,
            wait_ms=checks.number("wait_ms", wait_ms, 0, checks.WAIT_MS_MAX, InvalidRequest),
        )

    # ---- offsets -------------------------------------------------------------------------------------------

    async def min_offset(self, queue: MessageQueue) -> QueueOffset:
        """The first message that is still there."""
        return await self._calls.min_offset(checks.queue(queue))

    async def max_offset(self, queue: MessageQueue) -> QueueOffset:
        """The end of the queue: the offset that the next message will get."""
        return await self._calls.max_offset(checks.queue(queue))

    async def offset_at(self, queue: MessageQueue, moment: datetime | int) -> QueueOffset:
        """The first message of a queue stored at or after a moment (milliseconds, or a datetime), else its end."""
        return await self._calls.offset_at(checks.queue(queue), checks.moment_ms("moment", moment))

    async def committed_offset(self, queue: MessageQueue) -> GroupOffset | None:
        """The group's offset, None when it has none."""
        return await self._calls.committed_offset(checks.queue(queue))

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Set the group's offset in a queue: the next message that the group wants."""
        await self._calls.commit(checks.queue(queue), checks.offset(offset))
