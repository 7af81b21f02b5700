"""The blocking producer: the one of `client/producer.py`, behind a thread."""

from collections.abc import Iterable
from itertools import islice
from types import TracebackType
from typing import Self, Unpack

from bolide.client import producer as producing
from bolide.client.blocking.direct import Direct
from bolide.client.blocking.exit import send_at_exit
from bolide.client.bulk import Bulk
from bolide.client.gather import SendFuture, SendReceipt
from bolide.client.gather_twin import Callback
from bolide.client.loop_thread import ThreadShell, shared_loop
from bolide.client.preparation import PACK_FROM_BYTES, ZLIB
from bolide.client.results import TableReceipt
from bolide.client.selectors import Selector
from bolide.client.soon import LINGER_MS, check_callback
from bolide.client.terms import ClientOptions
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.record.stored import StoredMessage

TAKEN_AT_ONCE = 256
"""So many messages of `send_many` are made before they are handed over to the loop's thread."""


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
        compression: how: "zlib", which every consumer reads, "lz4" or "zstd".
        avoid_slow_brokers: whether a broker that took half a second or longer, or failed, gets no messages for a while
            if there are others.  Off, as in the original: a broker that is slow for a moment would throw its share on
            those that are left.
        trace: whether to tell of every message in the topic of traces, in the background (`mqadmin queryMsgTraceById`
            finds it there).  Traces that cannot be sent are dropped.
        linger_ms: how long `send_soon` waits for more messages before it sends those that it has.
        options: what every client takes: see `ClientOptions`.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str = producing.DEFAULT_GROUP,
        timeout_ms: int = producing.SEND_TIMEOUT_MS,
        retries: int = producing.RETRIES,
        pack_from_bytes: int = PACK_FROM_BYTES,
        compression: str = ZLIB,
        avoid_slow_brokers: bool = False,
        trace: bool = False,
        linger_ms: int = LINGER_MS,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._loop = shared_loop()
        self._core = producing.Producer(
            nameserver,
            group=group,
            timeout_ms=timeout_ms,
            retries=retries,
            pack_from_bytes=pack_from_bytes,
            compression=compression,
            avoid_slow_brokers=avoid_slow_brokers,
            trace=trace,
            linger_ms=linger_ms,
            **options,
        )
        self._share()

    def _share(self) -> None:
        """Threads give messages of `send_soon`, and the loop sends them; plain ones of `send` they send themselves."""
        self._core.soon.shell = ThreadShell(self._loop)
        self._direct = Direct(self._loop, self._core)
        send_at_exit(self._loop, self._core.soon)

    def start(self) -> None:
        """Called by `with`.  Brokers are connected when the first message needs them."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        """Called by `with`.  Sends what `send_soon` has collected, says goodbye to the brokers and closes the
        connections.
        """
        self._loop.check_process()  # a forked one has the same sockets, and leaves them alone
        self._loop.check_caller()  # who is refused ends nothing
        try:
            self._loop.run(self._core.close())
        finally:
            self._direct.close()

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
        that must stay in order go to the same queue: those with the same `sharding_key` do, or whatever `queue` or
        `selector` say.  Such a queue is never exchanged for another.

        Args:
            message: what to send.
            queue: where to send it, one of `queues(topic)`.
            selector: who chooses the queue, as in `lambda queues, message: queues[customer % len(queues)]`, or one of
                `by_hash(key)`, `by_random()` and `by_machine_room(...)`.
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
        if queue is None and selector is None:
            receipt = self._direct.send(message, timeout_ms)
            if receipt is not None:
                return receipt
        return self._loop.run(self._core.send(message, queue=queue, selector=selector, timeout_ms=timeout_ms))

    def send_soon(
        self,
        message: Message,
        *,
        queue: MessageQueue | None = None,
        selector: Selector | None = None,
        callback: Callback | None = None,
    ) -> SendFuture:
        """Give a message to be sent with others, and go on: it is collected into a batch by time and size.

        It waits only for room, when as many messages as may be are not acknowledged yet.  Messages to one queue, or
        with one sharding key, keep their order.

        Args:
            message: what to send; it must not be changed any more.
            queue: where to send it, one of `queues(topic)`.
            selector: who chooses the queue, as in `lambda queues, message: queues[customer % len(queues)]`.
            callback: called with the receipt and None, or with None and what went wrong, on the event loop that serves
                all clients: it must be quick.

        Returns:
            Where the outcome will be.

        Raises:
            MessageIllegal, InvalidRequest: the message itself cannot be sent.
            NoRoom: there was no room for it within the time of a send.
        """
        if callback is not None:
            check_callback(callback)
        soon = self._core.soon
        if queue is None and selector is None and (future := soon.lanes.add(message, callback)) is not None:
            return future  # most go this way
        lane = soon.known_lane(message, queue) if selector is None else None
        if lane is None:
            lane = self._loop.run(soon.lane_for(message, queue, selector))
        if soon.pool.is_full:
            self._loop.run(soon.room())
        return lane.add(message, callback) or soon.give(lane, message, callback)

    def flush(self, timeout_ms: int | None = None) -> None:
        """Send what `send_soon` has collected so far, and wait for its outcome.

        Args:
            timeout_ms: how long to wait; until each message has its outcome if None.

        Raises:
            CallTimeout: some have none yet; they are still being sent.
        """
        self._loop.run(self._core.flush(timeout_ms))

    def send_batch(
        self,
        messages: Iterable[Message],
        *,
        queue: MessageQueue | None = None,
        timeout_ms: int | None = None,
    ) -> list[SendReceipt]:
        """Store several messages of one topic in one queue, one behind the other.

        Up to 4 MiB they are one request: all are stored or none.  More are several requests, one after the other, and
        messages of others may come between them.

        Args:
            messages: what to send; all to one topic, and with the same sharding key if they have any.
            queue: where to send them, one of `queues(topic)`.
            timeout_ms: how long each request may take with all its tries, instead of the producer's own time.

        Returns:
            One receipt per message.

        Raises:
            PartlyStored: a later request failed; `receipts` of the error tells what is stored.
        """
        return self._loop.run(self._core.send_batch(messages, queue=queue, timeout_ms=timeout_ms))

    def send_many(self, messages: Iterable[Message], *, timeout_ms: int | None = None) -> list[SendReceipt]:
        """Store any number of messages, to any topics, in batches of which several are under way.

        Messages with the same sharding key stay in their order, the others are spread over the queues.

        Args:
            messages: what to send; taken as there is room for more, so a generator may make them.
            timeout_ms: how long each request may take with all its tries, instead of the producer's own time.

        Returns:
            One receipt per message, in the order of the messages.

        Raises:
            PartlyStored: something went wrong, and no more was sent; `receipts` of the error tells what is stored.
        """
        bulk = Bulk(self._core.sending, self._core.preparation, timeout_ms)
        source = iter(producing.several(messages))  # asked in this thread: it may wait for something itself
        try:
            while some := list(islice(source, TAKEN_AT_ONCE)):
                self._loop.run(bulk.add(some))
            return self._loop.run(bulk.finish())
        finally:
            self._loop.run(bulk.abandon())

    def send_arrow(
        self, table: object, *, topic: str | None = None, timeout_ms: int | None = None
    ) -> TableReceipt:
        """Store the rows of a table as messages, in batches of which several are under way.

        The columns are those of the Spark sink (docs/spark.md): `body` (or `value`), and any of `topic`, `tags`,
        `keys`, `properties`, `delay_level`, `deliver_at`, `sharding_key` and `queue_id`.  Rows with the same sharding
        key or queue stay in their order, the others are spread over the queues.  Bodies are not compressed.  Needs
        `pip install 'bolide[arrow]'`.

        Example::

            table = pa.table({"body": ["first", "second"], "tags": ["paid", None]})
            receipt = producer.send_arrow(table, topic="orders")
            assert receipt.rows == 2

        Args:
            table: a pyarrow Table, RecordBatch or RecordBatchReader, or anything with `__arrow_c_stream__`, as frames
                of pandas and polars are.
            topic: where all rows go; it wins over a column.
            timeout_ms: how long each request may take with all its tries, instead of the producer's own time.

        Returns:
            How many rows are stored.

        Raises:
            InvalidRequest: the columns are not those of messages, or hooks look at what is sent; nothing was sent.
            BadRow: a row is no message, `row` says which; nothing was sent.
            RowsPartlyStored: something went wrong, and no more was sent; `missing` of the error tells which rows are
                not stored.
            RequirementMissing: pyarrow is not installed.
        """
        pieces, sending = self._loop.run(self._core.tables.begin(table, topic, timeout_ms))
        try:
            for piece in pieces:  # read in this thread: a stream may wait for something itself
                self._loop.run(sending.add(piece))
            return self._loop.run(sending.finish())
        finally:
            self._loop.run(sending.abandon())

    def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send without asking for an acknowledgement: nobody learns whether the message was stored.

        Args:
            message: what to send.
            queue: where to send it, one of `queues(topic)`.
        """
        self._loop.run(self._core.send_oneway(message, queue=queue))

    def request(self, message: Message, *, timeout_ms: int | None = None) -> StoredMessage:
        """Send a message and wait for the reply of a consumer, which makes it with `reply_to`.

        Args:
            message: what to send; every group that consumes its topic gets it, and the first reply counts.
            timeout_ms: how long it may take until the reply is here, instead of the producer's own time for a send.

        Returns:
            The reply.  It was handed over and lies in no queue, so its offsets are -1.

        Raises:
            NoReply: the request was sent, and nobody has replied in time.
            MessageIllegal, RouteNotFound, RemoteError, CallTimeout, ConnectionLost: as of `send`.
        """
        return self._loop.run(self._core.request(message, timeout_ms=timeout_ms))

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
