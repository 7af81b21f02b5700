"""PullConsumer: reads queues from offsets that the caller keeps, on asyncio.

It is nobody's member: it never takes queues from the push consumers of its group, it only reads, and moves the
group's offset when told to.
"""

from datetime import datetime
from types import TracebackType
from typing import Self

from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullResult, PullStatus
from bolide.model.names import check_group
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings
from bolide.record.decode import decode_messages

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
    """

    def __init__(
        self, nameserver: str, *, group: str = DEFAULT_GROUP, surroundings: Surroundings | None = None
    ) -> None:
        self._instance = ClientInstance(nameserver, surroundings)
        self._calls = QueueCalls(self._instance, check_group(group))

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Called by `async with`."""
        await self._instance.start()

    async def close(self) -> None:
        await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- messages ------------------------------------------------------------------------------------------

    async def queues(self, topic: str) -> list[MessageQueue]:
        """All queues of the topic that can be read."""
        self._instance.check_running()
        return (await self._instance.routes.route(topic)).readable(topic)

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = MESSAGES_MAX,
        *,
        tags: str = "*",
        wait_ms: int = 0,
    ) -> PullResult:
        """Messages of a queue from `offset` on, at most as many as asked for (brokers have a limit of their own).

        `tags` is `*` or `A || B`.  With `wait_ms` a pull at the end of the queue waits that long for a message.
        """
        subscription = Subscription.parse(queue.topic, tags)
        block = await self._calls.pull(
            queue, GroupOffset(offset), subscription, messages_max=max_messages, wait_ms=wait_ms
        )
        messages = decode_messages(block.data, queue.broker_name)
        matching = [
            message for message in messages if subscription.takes_all or message.tags in subscription.tags
        ]
        status = block.status
        if messages and not matching:  # the broker compares hashes of tags, we compare tags
            status = PullStatus.NO_MATCHED_MESSAGE
        return PullResult(status, block.next_offset, block.min_offset, block.max_offset, matching)

    async def pull_block(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = BLOCK_MESSAGES_MAX,
        max_bytes: int | None = None,
        *,
        wait_ms: int = 0,
    ) -> PullBlock:
        """The same without decoding: records one behind the other, as `bolide.record.layout` describes them."""
        return await self._calls.pull(
            queue,
            GroupOffset(offset),
            Subscription.parse(queue.topic, "*"),
            messages_max=max_messages,
            bytes_max=max_bytes,
            wait_ms=wait_ms,
        )

    # ---- offsets -------------------------------------------------------------------------------------------

    async def min_offset(self, queue: MessageQueue) -> QueueOffset:
        """The first message that is still there."""
        return await self._calls.min_offset(queue)

    async def max_offset(self, queue: MessageQueue) -> QueueOffset:
        """The end of the queue: the offset that the next message will get."""
        return await self._calls.max_offset(queue)

    async def offset_at(self, queue: MessageQueue, moment: datetime | int) -> QueueOffset:
        """The first message stored at or after a moment (milliseconds, or a datetime), else the end."""
        return await self._calls.offset_at(queue, to_ms(moment))

    async def committed_offset(self, queue: MessageQueue) -> GroupOffset | None:
        """The group's offset, None when it has none."""
        return await self._calls.committed_offset(queue)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Set the group's offset: the next message that the group wants."""
        await self._calls.commit(queue, GroupOffset(offset))


def to_ms(moment: datetime | int) -> int:
    """Milliseconds since the epoch; a datetime without a zone is local time."""
    return round(moment.timestamp() * 1000) if isinstance(moment, datetime) else moment
