"""The blocking shell: the asyncio clients, run on one event loop in a thread of its own (`loop_thread.py`).

Nothing is decided here.  Each method hands its coroutine to the loop and waits for the outcome, so both shells do the
same thing in the same way.
"""

from collections.abc import Iterable
from datetime import datetime
from types import TracebackType
from typing import Self

from bolide.client import checks
from bolide.client import producer as producing
from bolide.client import pull as pulling
from bolide.client import push as pushing
from bolide.client.assignment import LAST
from bolide.client.delivery import Listener
from bolide.client.loop_thread import shared_loop
from bolide.client.outgoing import PACK_FROM_BYTES
from bolide.client.producer import Selector
from bolide.client.reader import PULL_MESSAGES
from bolide.client.results import PullBlock, PullResult, SendReceipt
from bolide.client.signals import caught
from bolide.model.message import Message
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset


class Producer:
    """Sends messages.

    Example::

        with Producer("127.0.0.1:9876", group="orders") as producer:
            receipt = producer.send(Message("orders", b"...", tags="paid", keys=["42"]))

    One producer serves any number of threads.  It is started and closed once.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the producer group; it matters to transactions and shows in the admin tools.
        timeout_ms: how long a send may take, with all its retries.
        retries: how many other brokers a failed send tries.
        pack_from_bytes: bodies of this size or more are sent compressed.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str = producing.DEFAULT_GROUP,
        timeout_ms: int = producing.SEND_TIMEOUT_MS,
        retries: int = producing.RETRIES,
        pack_from_bytes: int = PACK_FROM_BYTES,
    ) -> None:
        self._loop = shared_loop()
        self._core = producing.Producer(
            nameserver,
            group=group,
            timeout_ms=timeout_ms,
            retries=retries,
            pack_from_bytes=pack_from_bytes,
        )

    def start(self) -> None:
        """Called by `with`.  Brokers are connected when the first message needs them."""
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

    def send(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        timeout_ms: int | None = None,
    ) -> SendReceipt:
        """Store one message; returns when the broker has acknowledged it.

        Without `queue` and `selector` the queues take turns, and a failed try is repeated on another broker.  Messages
        that must stay in order go to the same queue; a chosen queue is never exchanged for another.

        Args:
            message: what to send.
            queue: where to send it, one of `queues(topic)`.
            selector: who chooses the queue, as in `lambda queues, message: queues[customer % len(queues)]`.
            timeout_ms: how long it may take with all its tries, instead of the producer's own.

        Returns:
            Where the message went.  Unless its `status` is `SEND_OK`, the message is stored, but not as safely as the
            broker is configured for.

        Raises:
            MessageIllegal, InvalidRequest: the message itself cannot be sent.
            RouteNotFound: nobody has the topic, and nobody creates it; as NotWritable, it may not be sent to.
            RemoteError: the broker refused; `response_code` says why.
            CallTimeout, ConnectionLost: no answer; the message may be stored or not.
        """
        return self._loop.run(self._core.send(message, queue=queue, selector=selector, timeout_ms=timeout_ms))

    def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> list[SendReceipt]:
        """Store several messages of one topic with one request, in one queue, one behind the other.

        All are stored or none.  Together they may have 4 MiB.

        Args:
            messages: what to send; all to one topic.
            queue: where to send them, one of `queues(topic)`.
            timeout_ms: how long it may take with all its tries, instead of the producer's own.

        Returns:
            One receipt per message.
        """
        return self._loop.run(self._core.send_batch(messages, queue=queue, timeout_ms=timeout_ms))

    def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send without asking for an acknowledgement: nobody learns whether the message was stored.

        Args:
            message: what to send.
            queue: where to send it, one of `queues(topic)`.
        """
        self._loop.run(self._core.send_oneway(message, queue=queue))

    def recall(self, receipt: SendReceipt | str | None, *, timeout_ms: int | None = None) -> str:
        """Call a message back that waits for its time: it is not delivered.

        Args:
            receipt: what its send returned, or the `recall_handle` of that, which any producer can use.
            timeout_ms: how long it may take, instead of the producer's own time for a send.

        Returns:
            The id of the message.

        Raises:
            InvalidRequest: this is no handle; the receipt of a message that goes at once has none.
            RemoteError: the broker refused, and says why: it is too late (code 604), or the broker permits no recalls
                (code 16; recallMessageEnable).
            CallTimeout, ConnectionLost: no answer; the message may be called back or not.
        """
        return self._loop.run(self._core.recall(receipt, timeout_ms=timeout_ms))

    def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that messages to the topic can go to."""
        return self._loop.run(self._core.queues(topic))


class PushConsumer:
    """Consumes topics as a member of a group: the members share the queues, each message goes to one of them.

    Example::

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                print(message.topic, message.body)

        consumer = PushConsumer("127.0.0.1:9876", group="billing", listener=handle)
        consumer.subscribe("orders", tags="paid || refunded")
        consumer.run()  # until Ctrl-C or SIGTERM

    Without `run`: `with consumer: ...`.  Each message comes at least once: the group's offset passes it only after the
    listener has returned from it.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the group; all its members must subscribe to the same topics and tags.
        listener: called with a list of messages of one queue, in threads, up to `concurrency` at once.  When it
            raises, the messages come again, each alone, after 1 s, 2 s, 5 s … up to a minute; `reconsume_times`
            counts.  Until it succeeds, the group's offset stays before it.
        start_from: where a group begins that has no offsets yet: "last" (only new messages; on a queue that still has
            its first messages, those too), "first", or a moment (datetime, or milliseconds).
        concurrency: how many calls of the listener may run at once.  No number of them promises an order: messages are
            handed out as they lie in their queue, but one that failed comes again later than those behind it.
        messages_max: how many messages one call of the listener gets at most.
        close_timeout_ms: how long `close` waits for calls of the listener that still run.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them, and the log tells of some).
        max_reconsume_times: None: a message that fails comes again here, until it succeeds.  A number: it is sent back
            to its broker, which brings it again later, to any member of the group, so many times at most, and then
            keeps it as a dead letter.  A listener that raises `RetryLater` chooses the delay.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str,
        listener: Listener,
        start_from: str | int | datetime = LAST,
        concurrency: int = pushing.CONCURRENCY,
        messages_max: int = PULL_MESSAGES,
        close_timeout_ms: int = pushing.CLOSE_TIMEOUT_MS,
        bad_bodies: str = checks.DELIVER,
        max_reconsume_times: int | None = None,
    ) -> None:
        self._loop = shared_loop()
        self._core = pushing.PushConsumer(
            nameserver,
            group=group,
            listener=listener,
            start_from=start_from,
            concurrency=concurrency,
            messages_max=messages_max,
            close_timeout_ms=close_timeout_ms,
            bad_bodies=bad_bodies,
            max_reconsume_times=max_reconsume_times,
        )

    def start(self) -> None:
        """Join the group and begin to consume.  Called by `with`, and by `run`."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        """Stop pulling, let the listener finish, store the offsets, leave the group."""
        self._loop.run(self._core.close())

    def run(self) -> None:
        """Start, and consume until SIGINT (Ctrl-C) or SIGTERM; returns after a close in order.

        A second signal does not wait for that.  Only for the main thread, which gets the signals.
        """
        with caught() as came:
            self.start()
            try:
                came.get()
            except BaseException:
                self.close()
                raise
        self.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, topic: str, tags: str = "*", sql: str | None = None) -> None:
        """Consume a topic too, before or after the start.

        Args:
            topic: one that does not exist yet is consumed when it does; a warning says so.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties: `price > 3 AND colour = 'red'`.
        """
        self._loop.run(self._core.subscribe(topic, tags, sql))

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this member now."""
        return self._core.queues

    @property
    def skipped(self) -> int:
        """How many messages were passed over: bad bodies, if they are to be, and what no broker could give whole."""
        return self._core.skipped


class PullConsumer:
    """Reads any queue from any offset.  It is nobody's member: it takes no queues from the push consumers of its group.

    Example::

        with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            for queue in consumer.queues("orders"):
                result = consumer.pull(queue, consumer.min_offset(queue))
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
        group: str = pulling.DEFAULT_GROUP,
        bad_bodies: str = checks.DELIVER,
    ) -> None:
        self._loop = shared_loop()
        self._core = pulling.PullConsumer(nameserver, group=group, bad_bodies=bad_bodies)

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
