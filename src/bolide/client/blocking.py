"""The blocking shell: the asyncio clients, run on one event loop in a thread of its own.

Nothing is decided here.  Each method hands its coroutine to the loop and waits for the outcome, so both shells do the
same thing in the same way.  All blocking clients of a process share the loop; a process that was forked gets its own.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from bolide.client import producer as producing
from bolide.client import pull as pulling
from bolide.client import push as pushing
from bolide.client.assignment import LAST
from bolide.client.delivery import Listener
from bolide.client.outgoing import PACK_FROM_BYTES
from bolide.client.producer import Selector
from bolide.client.reader import PULL_MESSAGES
from bolide.client.results import PullBlock, PullResult, SendReceipt
from bolide.model.errors import ClientNotRunning
from bolide.model.message import Message
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.pid = os.getpid()
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bolide-clients", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for it.  An interrupt here cancels it there."""
        if self.pid != os.getpid():  # threads do not survive a fork: nobody would ever run it
            work.close()
            raise ClientNotRunning(
                "this client was made before the process was forked, and its connections belong to the other"
                " process: make a new client in this one"
            )
        if threading.current_thread() is self._thread:
            work.close()
            raise ClientNotRunning(
                "a blocking client was called from a coroutine of a listener, where it would wait for itself:"
                " use the clients of bolide.aio there"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


_shared: LoopThread | None = None
_shared_lock = threading.Lock()


def shared_loop() -> LoopThread:
    """The loop of this process, started when it is first needed."""
    global _shared  # noqa: PLW0603 - one loop per process is the point
    with _shared_lock:
        if _shared is None or _shared.pid != os.getpid():
            _shared = LoopThread(_new_loop)
        return _shared


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Producer:
    """Sends messages.

    Example::

        with Producer("127.0.0.1:9876", group="orders") as producer:
            receipt = producer.send(Message("orders", b"...", tags="paid", keys=["42"]))

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
        """Called by `with`."""
        self._loop.run(self._core.start())

    def close(self) -> None:
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
        """Store one message; see `bolide.aio.Producer.send`."""
        return self._loop.run(self._core.send(message, queue=queue, selector=selector, timeout_ms=timeout_ms))

    def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> list[SendReceipt]:
        """Store several messages of one topic with one request; see `bolide.aio.Producer.send_batch`."""
        return self._loop.run(self._core.send_batch(messages, queue=queue, timeout_ms=timeout_ms))

    def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send without asking for an acknowledgement."""
        self._loop.run(self._core.send_oneway(message, queue=queue))

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
        with consumer:
            input("Enter ends it.")

    The arguments are those of `bolide.aio.PushConsumer`.  The listener runs in threads, up to `concurrency` at once.
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
        )

    def start(self) -> None:
        """Join the group and begin to consume.  Called by `with`."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        """Stop pulling, let the listener finish, store the offsets, leave the group."""
        self._loop.run(self._core.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, topic: str, tags: str = "*") -> None:
        """Consume a topic too, before or after the start; `tags` is `*` or `A || B`."""
        self._loop.run(self._core.subscribe(topic, tags))

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this member now."""
        return self._core.queues


class PullConsumer:
    """Reads any queue from any offset.

    Example::

        with PullConsumer("127.0.0.1:9876", group="audit") as consumer:
            for queue in consumer.queues("orders"):
                result = consumer.pull(queue, consumer.min_offset(queue))
                for message in result.messages:
                    print(message.queue_offset, message.body)

    The arguments are those of `bolide.aio.PullConsumer`.
    """

    def __init__(self, nameserver: str, *, group: str = pulling.DEFAULT_GROUP) -> None:
        self._loop = shared_loop()
        self._core = pulling.PullConsumer(nameserver, group=group)

    def start(self) -> None:
        """Called by `with`."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        self._loop.run(self._core.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

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
        wait_ms: int = 0,
    ) -> PullResult:
        """Messages of a queue from `offset` on; see `bolide.aio.PullConsumer.pull`."""
        return self._loop.run(self._core.pull(queue, offset, max_messages, tags=tags, wait_ms=wait_ms))

    def pull_block(
        self,
        queue: MessageQueue,
        offset: int,
        max_messages: int = pulling.BLOCK_MESSAGES_MAX,
        max_bytes: int | None = None,
        *,
        wait_ms: int = 0,
    ) -> PullBlock:
        """The same without decoding: records one behind the other, as the broker stores them."""
        return self._loop.run(self._core.pull_block(queue, offset, max_messages, max_bytes, wait_ms=wait_ms))

    def min_offset(self, queue: MessageQueue) -> QueueOffset:
        """The first message that is still there."""
        return self._loop.run(self._core.min_offset(queue))

    def max_offset(self, queue: MessageQueue) -> QueueOffset:
        """The end of the queue: the offset that the next message will get."""
        return self._loop.run(self._core.max_offset(queue))

    def offset_at(self, queue: MessageQueue, moment: datetime | int) -> QueueOffset:
        """The first message stored at or after a moment (milliseconds, or a datetime), else the end."""
        return self._loop.run(self._core.offset_at(queue, moment))

    def committed_offset(self, queue: MessageQueue) -> GroupOffset | None:
        """The group's offset, None when it has none."""
        return self._loop.run(self._core.committed_offset(queue))

    def commit(self, queue: MessageQueue, offset: int) -> None:
        """Set the group's offset: the next message that the group wants."""
        self._loop.run(self._core.commit(queue, offset))
