"""PullConsumer: reads queues from offsets that the caller keeps, on asyncio.

It only reads, and moves the group's offset when told to.  It is nobody's member, and takes no queues from anybody,
until it subscribes to a topic: then it has a share of the topic's queues, and says which.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from bolide.client import checks
from bolide.client.answers import Wanted, messages_of
from bolide.client.instance import ClientInstance
from bolide.client.membership import Membership
from bolide.client.queue_calls import QueueCalls
from bolide.client.queue_changes import QueuesListener
from bolide.client.results import PullBlock, PullResult, PullStatus
from bolide.client.terms import ClientOptions
from bolide.model.errors import InvalidRequest, MalformedRecord, ProtocolError
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.model.numbers import INT32_MAX
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings
from bolide.rules.allocate import AVERAGELY, Strategy

DEFAULT_GROUP = "DEFAULT_READER"
MESSAGES_MAX = 32
BLOCK_MESSAGES_MAX = 1024


@dataclass(eq=False)
class _Share:
    """A queue of ours, of which nothing but that is known: the caller reads it, and stores its offset."""

    queue: MessageQueue
    subscription: Subscription
    reader: "asyncio.Task[None] | None" = None
    own_offset: GroupOffset | None = None
    stored: GroupOffset | None = None
    storing: asyncio.Lock = field(default_factory=asyncio.Lock)
    is_gone: bool = False

    def let_go(self) -> None:
        self.is_gone = True


async def _share(queue: MessageQueue, subscription: Subscription) -> _Share:
    return _Share(queue, subscription)


class PullConsumer:
    """Reads any queue from any offset.

    Example::

        async with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            for queue in await consumer.queues("orders"):
                result = await consumer.pull(queue, await consumer.min_offset(queue))
                for message in result.messages:
                    print(message.queue_offset, message.body)

    After `subscribe(topic)` it is a member of its group, and `queues_in_balance(topic)` are those that it is to read.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: in whose name to read; `commit` and `committed_offset` use its offsets.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them, and the log tells of some).
        strategy: how the members of the group share the queues, the same for all of them: "averagely", or a function
            that takes all queues of a topic, the client ids of all members and the own one, and gives a list of the
            own queues.
        on_queues_changed: called with a topic, all its queues and those that belong to this member, when these have
            changed; a plain function runs in a thread, a coroutine function on the event loop.
        options: what every client takes: see `ClientOptions`.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str = DEFAULT_GROUP,
        bad_bodies: str = checks.DELIVER,
        strategy: str | Strategy = AVERAGELY,
        on_queues_changed: QueuesListener | None = None,
        surroundings: Surroundings | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        skips_bad_bodies = checks.bad_bodies(bad_bodies)
        self._instance = ClientInstance(checks.nameserver(nameserver), surroundings, **options)
        self._wanted = Wanted(self._instance.clock, self._skip, skips_bad_bodies=skips_bad_bodies)
        self._calls = QueueCalls(self._instance, checks.group(group))
        self._member: Membership[_Share] = Membership(
            *(self._instance, self._calls, group, _share),
            strategy=strategy,
            on_queues_changed=on_queues_changed,
        )
        self._skipped = 0

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Called by `async with`.  Brokers are connected when a queue of theirs is first asked about."""
        await self._instance.start()
        try:
            await self._member.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Called by `async with`.  Says goodbye to the brokers and closes the connections."""
        self._instance.check_place()
        await self._member.close()
        await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- as a member ---------------------------------------------------------------------------------------

    async def subscribe(self, topic: str) -> None:
        """Be a member of the group, with a share of the topic's queues.  What is pulled of them stays the caller's."""
        await self._member.subscribe(topic)

    async def unsubscribe(self, topic: str) -> None:
        """Have no share of the topic's queues any more."""
        await self._member.unsubscribe(topic)

    async def queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that belong to this member now; `on_queues_changed` says when others do.

        Raises:
            InvalidRequest: the consumer does not subscribe to the topic.
        """
        self._instance.check_running()
        if checks.topic(topic) not in self._member.subscriptions:
            raise InvalidRequest(f"this consumer has no share of {topic!r}: call subscribe({topic!r}) first")
        return sorted(queue for queue in self._member.held if queue.topic == topic)

    # ---- messages ------------------------------------------------------------------------------------------

    @property
    def skipped(self) -> int:
        """How many messages with bad bodies were skipped, if they are to be."""
        return self._skipped

    def _skip(self, count: int) -> None:
        self._skipped += count

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
        wanted = self._instance.hooks.kept(self._wanted.of(messages, queue, subscription))
        status = block.status
        if messages and not wanted:  # the broker compares hashes of tags, we compare tags
            status = PullStatus.NO_MATCHED_MESSAGE
        return PullResult(status, next_offset, block.min_offset, block.max_offset, wanted)

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
