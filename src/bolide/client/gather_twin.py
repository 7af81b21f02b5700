"""Messages that are sent together, from `send_soon` to their receipts: the readable twin of `_gather.pyx`.

A `Lane` takes messages that go the same way and puts them into batches; a `Batch` knows its messages' ids, the
functions to call and, later, where its messages went; a `SendFuture` is the place of one message in its batch, and a
`SendReceipt` reads from there what it is asked for.  So a message costs little more than its bytes.  Nothing here
sends or waits.
"""

import logging
import struct
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, Protocol

from bolide.client.gather_plain import ID_PAIR_BYTES_MAX, plain_pairs
from bolide.model.message import Message, Property
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

log = logging.getLogger("bolide.client.gather")

Callback = Callable[["SendReceipt | None", Exception | None], object]

CALLBACK_FAILED = "a callback of send_soon failed"
COUNTER_MASK = 0xFFFF

_U16 = struct.Struct(">H")
_UNIQUE_KEY = Property.UNIQUE_KEY.encode()


class Home(Protocol):
    """The producer that batches belong to, as one that can be waited for."""

    def wait(self, batch: "Batch", timeout_ms: int | None) -> None:
        """Until the batch is done; `CallTimeout` when it is not in time."""
        ...

    def wait_for(self, batch: "Batch") -> Generator[Any, None, None]:
        """The same on an event loop."""
        ...


class Pool:
    """What all lanes of a producer share: how much waits or is on its way, and the numbers that end its ids.

    `head` makes the first digits of an id, with the present time; `now_ms` tells when a batch begins.
    """

    def __init__(
        self, head: Callable[[], str], now_ms: Callable[[], int], messages_max: int, bytes_max: int
    ) -> None:
        self.messages = 0
        self.size_bytes = 0
        self.head = head
        self.now_ms = now_ms
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._counter = 0

    @property
    def is_full(self) -> bool:
        return self.messages >= self._messages_max or self.size_bytes >= self._bytes_max

    def next_number(self) -> int:
        self._counter = (self._counter + 1) & COUNTER_MASK
        return self._counter


class Batch:
    """Messages of one request; with `alone`, one message that cannot be part of a batch and is sent by itself."""

    def __init__(
        self, topic: str, queue: MessageQueue | None, pool: Pool, home: Home, alone: Any = None
    ) -> None:
        self.topic = topic
        self.queue = queue
        self.home = home
        self.alone = alone
        self.receipt: SendReceipt | None = None
        """Of one that was sent alone."""
        self.is_done = False
        self.error: Exception | None = None
        self._trace: TracebackType | None = None
        self.born_ms = pool.now_ms()
        """When its first message was given, by the clock of the pool."""
        self.stored_in: MessageQueue | None = None
        self.status: Any = None
        self._pool = pool
        self._head = pool.head()
        self._numbers: list[int] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._callbacks: list[Callback | None] = []
        self._watchers: deque[Callable[[], object]] = deque()
        """Told by whoever takes them out: the thread that ends it, or one that comes just then."""
        self._first_offset = 0
        self._offset_ids = ""
        self._split: list[str] = []

    @property
    def count(self) -> int:
        return len(self._numbers)

    @property
    def size_bytes(self) -> int:
        return self._size

    def put(self, message: Message, pairs: bytes, callback: Callback | None) -> "SendFuture":
        number = self._pool.next_number()
        properties = b"%s%s\x01%s%04X\x02" % (pairs, _UNIQUE_KEY, self._head.encode(), number)
        size = BATCH_ITEM_FIXED_BYTES + len(message.body) + len(properties)
        self._parts += (
            BATCH_ITEM.pack(size, 0, 0, message.flag, len(message.body)),
            message.body,
            _U16.pack(len(properties)),
            properties,
        )
        self._numbers.append(number)
        return self._count_in(size, callback)

    def put_alone(self, size_bytes: int, callback: Callback | None) -> "SendFuture":
        self._numbers.append(0)
        return self._count_in(size_bytes, callback)

    def _count_in(self, size_bytes: int, callback: Callback | None) -> "SendFuture":
        self._callbacks.append(callback)
        self._size += size_bytes
        self._pool.messages += 1
        self._pool.size_bytes += size_bytes
        return SendFuture(self, len(self._numbers) - 1)

    def body(self) -> bytes:
        """What the request of several carries."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0]

    def when_done(self, tell: Callable[[], object]) -> None:
        """Call it when the batch is done: at once if it is."""
        self._watchers.append(tell)
        if not self.is_done:
            return
        try:
            self._watchers.remove(tell)
        except ValueError:
            return
        try:
            tell()
        except Exception:  # an interrupt is for this thread, which is the application's
            log.exception(CALLBACK_FAILED)

    def stored(self, queue: MessageQueue, status: object, first_offset: int, offset_ids: str) -> None:
        """The broker has it.  `offset_ids` are as many as messages, with commas between them."""
        if self.is_done:
            return
        self.stored_in, self.status = queue, status
        self._first_offset, self._offset_ids = first_offset, offset_ids
        self._finish()

    def stored_alone(self, receipt: "SendReceipt") -> None:
        """The broker has the one message that it is."""
        if not self.is_done:
            self.receipt = receipt
            self._finish()

    def failed(self, error: Exception) -> None:
        """It is not stored, or nobody knows.  A batch is done once: what comes after its outcome changes nothing."""
        if not self.is_done:
            self.error, self._trace = error, error.__traceback__
            self._finish()

    def fault(self) -> Exception | None:
        """What went wrong, to be raised for any of its messages: each raise would make its traceback longer."""
        return None if self.error is None else self.error.with_traceback(self._trace)

    def _finish(self) -> None:
        self.is_done = True
        self._parts = [b""]
        self._pool.messages -= self.count
        self._pool.size_bytes -= self._size
        for index, callback in enumerate(self._callbacks):
            if callback is not None:
                try:
                    if self.error is None:
                        callback(SendReceipt.of(self, index), None)
                    else:
                        callback(None, self.fault())
                except (
                    BaseException
                ):  # one that fails keeps no other from hearing, and no client from going on
                    log.exception(CALLBACK_FAILED)
        self._callbacks = []
        with suppress(IndexError):
            while True:
                _tell_safely(self._watchers.popleft())

    def message_id(self, index: int) -> str:
        return f"{self._head}{self._numbers[index]:04X}"

    def offset_id(self, index: int) -> str:
        if not self._split:
            self._split = self._offset_ids.split(",")
        return self._split[index]

    def offset(self, index: int) -> int:
        return self._first_offset + index


def _tell_safely(tell: Callable[[], object]) -> None:
    try:
        tell()
    except BaseException:  # of the application, on the event loop that serves all clients
        log.exception(CALLBACK_FAILED)


def check_no_seconds(timeout: object) -> None:
    """Who has other futures in mind gives seconds, and would wait for a thousandth of them."""
    if timeout is not None:
        raise TypeError(
            f"a wait is given in milliseconds and by name, as in timeout_ms=3000, not {timeout!r}"
        )


class SendFuture:
    """The outcome of one `send_soon`, now or later.

    Example::

        future = producer.send_soon(Message("orders", b"..."))
        receipt = future.result(timeout_ms=3000)  # on an event loop: await future
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: Batch, index: int) -> None:
        self._batch = batch
        self._index = index

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._batch.is_done

    def result(self, timeout: None = None, *, timeout_ms: int | None = None) -> "SendReceipt":
        """Wait for the receipt; raises what kept the message from being stored, or `CallTimeout`.

        `timeout` is not taken: futures of others have seconds there."""
        check_no_seconds(timeout)
        if not self._batch.is_done:
            self._batch.home.wait(self._batch, timeout_ms)
        return self._receipt()

    def exception(self, timeout: None = None, *, timeout_ms: int | None = None) -> Exception | None:
        """Wait for the outcome; what went wrong, None if nothing did."""
        check_no_seconds(timeout)
        if not self._batch.is_done:
            self._batch.home.wait(self._batch, timeout_ms)
        return self._batch.fault()

    def add_done_callback(self, tell: "Callable[[SendFuture], object]") -> None:
        """Call it with this future when the outcome is known: at once if it is."""
        self._batch.when_done(lambda: tell(self))

    def __await__(self) -> "Generator[Any, None, SendReceipt]":
        if not self._batch.is_done:
            yield from self._batch.home.wait_for(self._batch)
        return self._receipt()

    def _receipt(self) -> "SendReceipt":
        if (error := self._batch.fault()) is not None:
            raise error
        return SendReceipt.of(self._batch, self._index)


class SendReceipt:
    """Where a message went.  `message_id` is the producer's id, `offset_message_id` its place on the broker, and
    `recall_handle` what `Producer.recall` needs, of a message that waits for its time.

    Example::

        print(producer.send(Message("orders", b"paid")).queue_offset)
    """

    __slots__ = (
        "_batch",
        "_index",
        "_message_id",
        "_offset_id",
        "_queue",
        "_queue_offset",
        "_status",
        "recall_handle",
    )

    def __init__(
        self,
        message_id: str,
        offset_message_id: str,
        queue: MessageQueue,
        queue_offset: QueueOffset,
        status: Any,
        recall_handle: str | None = None,
    ) -> None:
        self._batch: Batch | None = None
        self._index = 0
        self._message_id = message_id
        self._offset_id = offset_message_id
        self._queue = queue
        self._queue_offset = queue_offset
        self._status = status
        self.recall_handle = recall_handle

    @classmethod
    def of(cls, batch: Batch, index: int) -> "SendReceipt":
        """That of a message of a batch that is stored."""
        if batch.receipt is not None:
            return batch.receipt
        receipt = cls.__new__(cls)
        receipt._batch, receipt._index, receipt.recall_handle = batch, index, None
        return receipt

    @property
    def message_id(self) -> str:
        return self._message_id if self._batch is None else self._batch.message_id(self._index)

    @property
    def offset_message_id(self) -> str:
        return self._offset_id if self._batch is None else self._batch.offset_id(self._index)

    @property
    def queue(self) -> MessageQueue:
        if self._batch is None:
            return self._queue
        assert self._batch.stored_in is not None
        return self._batch.stored_in

    @property
    def queue_offset(self) -> QueueOffset:
        return self._queue_offset if self._batch is None else QueueOffset(self._batch.offset(self._index))

    @property
    def status(self) -> Any:
        return self._status if self._batch is None else self._batch.status

    def _members(self) -> tuple[Any, ...]:
        return (
            *(self.message_id, self.offset_message_id, self.queue),
            *(self.queue_offset, self.status, self.recall_handle),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SendReceipt) and self._members() == other._members()

    def __hash__(self) -> int:
        return hash(self._members())

    def __repr__(self) -> str:
        return (
            f"SendReceipt(message_id={self.message_id!r}, offset_message_id={self.offset_message_id!r},"
            f" queue={self.queue!r}, queue_offset={self.queue_offset!r}, status={self.status!r},"
            f" recall_handle={self.recall_handle!r})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return SendReceipt, self._members()


class Lane:
    """Messages to one topic that go to any of its queues, or to one, in the order in which they were given.

    Args:
        topic: where they go.
        queue: the one queue, or None.
        pool: what the producer's lanes share.
        home: the producer.
        wake: called with the lane when its first message has come, and when a batch is full.
        guard: held while a batch is changed; several threads may send.
        body_below: bodies of this size or more go the long way.
        batch_bytes_max: how many bytes make a batch full.
        batch_messages_max: how many messages do.
    """

    def __init__(
        self,
        topic: str,
        queue: MessageQueue | None,
        pool: Pool,
        home: Home,
        wake: "Callable[[Lane], object]",
        guard: AbstractContextManager[Any],
        *,
        body_below: int,
        batch_bytes_max: int,
        batch_messages_max: int,
    ) -> None:
        self.topic = topic
        self.queue = queue
        self._pool = pool
        self._home = home
        self._wake = wake
        self._guard = guard
        self._body_below = body_below
        self._bytes_max = batch_bytes_max
        self._messages_max = batch_messages_max
        self._open: Batch | None = None
        self._full: deque[Batch] = deque()

    @property
    def has_full(self) -> bool:
        """Whether a batch need not wait for more."""
        return bool(self._full)

    @property
    def is_empty(self) -> bool:
        return self._open is None and not self._full

    def add(self, message: Message, callback: Callback | None = None) -> SendFuture | None:
        """Put a message into a batch; None when it cannot go in one, or something is wrong with it: send it alone."""
        if type(message) is not Message or not self._takes(message.body):
            return None
        pairs = plain_pairs(message, self.topic, has_queue=self.queue is not None)
        if pairs is None:
            return None
        size = BATCH_ITEM_FIXED_BYTES + len(message.body) + len(pairs) + ID_PAIR_BYTES_MAX
        with self._guard:
            wake = self._open is None and not self._full
            if self._open is not None and (
                self._open.count >= self._messages_max or self._open.size_bytes + size > self._bytes_max
            ):
                self._cut()
                wake = True
            if self._open is None:
                self._open = Batch(self.topic, self.queue, self._pool, self._home)
            future = self._open.put(message, pairs, callback)
        if wake:
            self._wake(self)
        return future

    def add_alone(self, alone: Any, size_bytes: int, callback: Callback | None = None) -> SendFuture:
        """Put a message behind the others that needs a request of its own."""
        with self._guard:
            self._cut()
            batch = Batch(self.topic, self.queue, self._pool, self._home, alone)
            future = batch.put_alone(size_bytes, callback)
            self._full.append(batch)
        self._wake(self)
        return future

    def _takes(self, body: object) -> bool:
        return type(body) is bytes and 0 < len(body) < self._body_below

    def cut(self) -> list[Batch]:
        """All batches that wait to be taken; what comes from now on goes into another."""
        with self._guard:
            self._cut()
            return list(self._full)

    def _cut(self) -> None:
        if self._open is not None:
            self._full.append(self._open)
            self._open = None

    def take(self, *, also_open: bool) -> Batch | None:
        """The next batch, the first that was filled first; one that is not full only if that is wanted."""
        with self._guard:
            if also_open and not self._full:
                self._cut()
            return self._full.popleft() if self._full else None


class Lanes(dict[str | MessageQueue, Lane]):
    """The lanes of a producer, by where they lead: a topic, or one queue."""

    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self._pool = pool

    def add(self, message: Message, callback: Callback | None = None) -> SendFuture | None:
        """Put a message into the lane of its topic; None when there is none, or no room, or it cannot go that way."""
        if type(message) is not Message or type(message.topic) is not str or self._pool.is_full:
            return None
        lane = self.get(message.topic)
        return None if lane is None else lane.add(message, callback)
