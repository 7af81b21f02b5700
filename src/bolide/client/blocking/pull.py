"""The blocking pull consumer: the one of `client/pull.py`, behind a thread."""

from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from bolide.client import checks
from bolide.client import pull as pulling
from bolide.client.loop_thread import shared_loop
from bolide.client.queue_changes import QueuesListener
from bolide.client.results import PullBlock, PullResult
from bolide.client.terms import ClientOptions
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.rules.allocate import AVERAGELY, Strategy


class PullConsumer:
    """Reads any queue from any offset.

    Example::

        with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            for queue in consumer.queues("orders"):
                result = consumer.pull(queue, consumer.min_offset(queue))
                for message in result.messages:
                    print(message.queue_offset, message.body)

    It is nobody's member, and takes no queues from anybody.  After `subscribe(topic)` it is a member of its group, and
    `queues_in_balance(topic)` are those that it is to read.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: in whose name to read; `commit` and `committed_offset` use its offsets.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them, and the log tells of some).
        strategy: how the members of the group share the queues, the same for all of them: "averagely", or a function
            that takes all queues of a topic, the client ids of all members and the own one, and gives a list of the
            own queues.
        on_queues_changed: called in a thread with a topic, all its queues and those that belong to this member, when
            these have changed.
        options: what every client takes: see `ClientOptions`.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str = pulling.DEFAULT_GROUP,
        bad_bodies: str = checks.DELIVER,
        strategy: str | Strategy = AVERAGELY,
        on_queues_changed: QueuesListener | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._loop = shared_loop()
        self._core = pulling.PullConsumer(
            nameserver,
            group=group,
            bad_bodies=bad_bodies,
            strategy=strategy,
            on_queues_changed=on_queues_changed,
            **options,
        )

    def start(self) -> None:
        """Called by `with`.  Brokers are connected when a queue of theirs is first asked about."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        """Called by `with`.  Says goodbye to the brokers and closes the connections."""
        self._loop.run(self._core.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, topic: str) -> None:
        """Be a member of the group, with a share of the topic's queues.  What is pulled of them stays the caller's."""
        self._loop.run(self._core.subscribe(topic))

    def unsubscribe(self, topic: str) -> None:
        """Have no share of the topic's queues any more."""
        self._loop.run(self._core.unsubscribe(topic))

    def queues_in_balance(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that belong to this member now; `on_queues_changed` says when others do.

        Raises:
            InvalidRequest: the consumer does not subscribe to the topic.
        """
        return self._loop.run(self._core.queues_in_balance(topic))

    @property
    def skipped(self) -> int:
        """How many messages with bad bodies were skipped, if they are to be."""
        return self._core.skipped

    def queues(self, topic: str) -> list[MessageQueue]:
        """All queues of the topic that can be read."""
        return self._loop.run(self._core.queues(topic))

    def pull(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = pulling.MESSAGES_MAX,
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
        return self._loop.run(
            self._core.pull(queue, offset, max_messages, tags=tags, sql=sql, wait_ms=wait_ms)
        )

    def pull_block(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = pulling.BLOCK_MESSAGES_MAX,
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
        return self._loop.run(self._core.pull_block(queue, offset, max_messages, max_bytes, wait_ms=wait_ms))

    def min_offset(self, queue: MessageQueue) -> QueueOffset:
        """The first message that is still there."""
        return self._loop.run(self._core.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> QueueOffset:
        """The end of the queue: the offset that the next message will get."""
        return self._loop.run(self._core.max_offset(queue))

    def offset_at(self, queue: MessageQueue, moment: datetime | int) -> QueueOffset:
        """The first message of a queue stored at or after a moment (milliseconds, or a datetime), else its end."""
        return self._loop.run(self._core.offset_at(queue, moment))

    def committed_offset(self, queue: MessageQueue) -> GroupOffset | None:
        """The group's offset, None when it has none."""
        return self._loop.run(self._core.committed_offset(queue))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """Set the group's offset in a queue: the next message that the group wants."""
        self._loop.run(self._core.commit(queue, offset))
