"""Producer: sends messages, on asyncio.  The blocking one in `blocking/producer.py` is this one behind a thread.

A send makes a message ready (`client/outgoing.py`) and brings it to a broker (`client/sending.py`).  A retry after a
lost connection may store a message twice: the receipt names the last one, and both carry the same message id.
"""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Self, Unpack

from bolide.client import checks
from bolide.client.bulk import Bulk
from bolide.client.gather import SendFuture, SendReceipt
from bolide.client.gather_twin import Callback
from bolide.client.instance import ClientInstance, Serve, raise_for
from bolide.client.outgoing import Outgoing, prepare_batch
from bolide.client.preparation import PACK_FROM_BYTES, ZLIB, Preparation
from bolide.client.requests import Requests
from bolide.client.results import PartlyStored, TableReceipt
from bolide.client.selectors import SELECTOR_TAKES, Selector, selected
from bolide.client.sending import Sending
from bolide.client.soon import LINGER_MS, LINGER_MS_MAX, Soon, check_callback
from bolide.client.soon_loop import LoopShell
from bolide.client.tables import Tables
from bolide.client.terms import ClientOptions
from bolide.client.tracing import Tracer
from bolide.machines.slow_brokers import SlowBrokers
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ClientError,
    InvalidRequest,
    MessageIllegal,
    NoReply,
    ProtocolError,
    RequestError,
)
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.model.recall import decode_handle
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.send import RecallAnswer, RecallRequest

DEFAULT_GROUP = "DEFAULT_PRODUCER"
SEND_TIMEOUT_MS = 3_000
RETRIES = 2
RETRIES_MAX = 100


class Producer:
    """Sends messages.

    Example::

        async with Producer("127.0.0.1:9876", group="orders") as producer:
            receipt = await producer.send(Message("orders", b"...", tags="paid", keys=["42"]))

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
        group: str = DEFAULT_GROUP,
        timeout_ms: int = SEND_TIMEOUT_MS,
        retries: int = RETRIES,
        pack_from_bytes: int = PACK_FROM_BYTES,
        compression: str = ZLIB,
        avoid_slow_brokers: bool = False,
        trace: bool = False,
        linger_ms: int = LINGER_MS,
        surroundings: Surroundings | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._group = checks.group(group)
        self._instance = ClientInstance(checks.nameserver(nameserver), surroundings, **options)
        self.preparation = Preparation(self._instance, compression, pack_from_bytes)
        self._tracer = Tracer(self._instance, group) if checks.flag("trace", trace) else None
        self.sending = Sending(
            self._instance,
            group,
            timeout_ms=checks.timeout(timeout_ms),
            retries=checks.number("retries", retries, 0, RETRIES_MAX),
            slow=SlowBrokers() if checks.flag("avoid_slow_brokers", avoid_slow_brokers) else None,
            on_stored=None if self._tracer is None else self._tracer.stored,
        )
        self.tables = Tables(self._instance, self.sending, names_messages=self._tracer is not None)
        self._requests = Requests(self._instance)
        self.sees_each = trace or bool(self._instance.hooks.all)
        """Whether somebody sees each message: then each goes by `send`."""

        self.soon = Soon(
            self._instance,
            self.sending,
            lambda message, queue: self.send(message, queue=queue),
            LoopShell(self._instance.check_place),
            linger_ms=checks.number("linger_ms", linger_ms, 0, LINGER_MS_MAX),
            body_below=0 if self.sees_each else self.preparation.pack_from_bytes,
        )

    @property
    def instance(self) -> ClientInstance:
        """The client as such, for a shell."""
        return self._instance

    def _serves(self) -> dict[int, Serve]:
        """What brokers ask this client."""
        return {RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._requests.serve}

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Called by `async with`.  Brokers are connected when the first message needs them."""
        self._instance.act_as_producer(self._group, self._serves())
        await self._instance.start()
        if self._tracer is not None:
            self._tracer.start()

    async def close(self) -> None:
        """Called by `async with`.  Sends what `send_soon` has collected, says goodbye to the brokers and closes the
        connections.
        """
        self._instance.check_place()
        await self.soon.close(self.sending.time(None))
        self._requests.close()
        self.preparation.close()
        if self._tracer is not None:
            await self._tracer.close()
        await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- sending -------------------------------------------------------------------------------------------

    async def send(
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
        outgoing = await self.preparation.packed(self.preparation.prepared(message))
        choose = None
        if selector is not None:
            if queue is not None:
                raise InvalidRequest("a send takes a queue or a selector, not both")
            checks.function("selector", selector, SELECTOR_TAKES, InvalidRequest)
            choose = partial(selected, selector, message)
        (receipt,) = await self.sending.watched(
            (message,),
            queue,
            lambda: self.sending.store(outgoing, timeout_ms, queue=queue, choose=choose),
        )
        return receipt

    async def send_soon(
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
        if queue is None and selector is None and self._instance.is_here:
            future = self.soon.lanes.add(message, callback)
            if future is not None:
                return future  # most go this way
        lane = await self.soon.lane_for(message, queue, selector)
        if self.soon.pool.is_full:
            await self.soon.room()
        return self.soon.give(lane, message, callback)

    async def flush(self, timeout_ms: int | None = None) -> None:
        """Send what `send_soon` has collected so far, and wait for its outcome.

        Args:
            timeout_ms: how long to wait; until each message has its outcome if None.

        Raises:
            CallTimeout: some have none yet; they are still being sent.
        """
        self._instance.check_running()
        await self.soon.flush(timeout_ms)

    async def send_batch(
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
        self._instance.check_running()
        listed = list(several(messages))
        parts = prepare_batch(listed, [self._instance.ids.next() for _ in listed])
        stored = await self.sending.watched(
            listed, queue, lambda: self._store_parts(parts, queue, timeout_ms)
        )
        return list(stored)

    async def _store_parts(
        self, parts: Sequence[Outgoing], queue: MessageQueue | None, timeout_ms: int | None
    ) -> list[SendReceipt]:
        """One after the other, all to the queue of the first."""
        receipts: list[SendReceipt] = []
        for part in parts:
            try:
                receipts += await self.sending.store(part, timeout_ms, queue=queue)
            except BolideError as error:
                if not receipts:
                    raise
                count = sum(len(one.message_ids) for one in parts)
                raise PartlyStored([*receipts, *[None] * (count - len(receipts))], error) from error
            queue = receipts[-1].queue
        return receipts

    async def send_many(
        self, messages: Iterable[Message], *, timeout_ms: int | None = None
    ) -> list[SendReceipt]:
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
        self._instance.check_running()
        bulk = Bulk(self.sending, self.preparation, timeout_ms)
        try:
            await bulk.add(several(messages))
            return await bulk.finish()
        finally:
            await bulk.abandon()

    async def send_arrow(
        self, table: object, *, topic: str | None = None, timeout_ms: int | None = None
    ) -> TableReceipt:
        """Store the rows of a table as messages, in batches of which several are under way.

        The columns are those of the Spark sink (docs/spark.md): `body` (or `value`), and any of `topic`, `tags`,
        `keys`, `properties`, `delay_level`, `deliver_at`, `sharding_key` and `queue_id`.  Rows with the same sharding
        key or queue stay in their order, the others are spread over the queues.  Bodies are not compressed.  Needs
        `pip install 'bolide[arrow]'`.

        Example::

            table = pa.table({"body": ["first", "second"], "tags": ["paid", None]})
            receipt = await producer.send_arrow(table, topic="orders")
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
        pieces, sending = await self.tables.begin(table, topic, timeout_ms)
        try:
            for piece in pieces:
                await sending.add(piece)
            return await sending.finish()
        finally:
            await sending.abandon()

    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send without asking for an acknowledgement: nobody learns whether the message was stored.

        Args:
            message: what to send.
            queue: where to send it, one of `queues(topic)`.
        """
        outgoing = await self.preparation.packed(self.preparation.prepared(message))
        await self.sending.watched((message,), queue, lambda: self._notify(outgoing, queue))

    async def _notify(self, outgoing: Outgoing, queue: MessageQueue | None) -> Sequence[SendReceipt]:
        await self.sending.notify(outgoing, queue)
        return ()

    async def request(self, message: Message, *, timeout_ms: int | None = None) -> StoredMessage:
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
        timeout_ms = self.sending.time(timeout_ms)
        self._instance.check_running()
        is_sent = False
        with self._requests.waiting(timeout_ms) as (own, reply):
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    outgoing = await self.preparation.packed(self.preparation.prepared(message, own))
                    await self._requests.meet(outgoing.topic)
                    await self._store_request(message, outgoing, timeout_ms, reply)
                    is_sent = True
                    return await reply
            except TimeoutError:
                if not is_sent:
                    raise CallTimeout(f"the request to {message.topic} took over {timeout_ms} ms") from None
                raise NoReply(
                    f"nobody has replied to the request to {message.topic} within {timeout_ms} ms: a consumer of it"
                    " has to send what reply_to(message, ...) makes"
                ) from None

    async def _store_request(
        self, message: Message, outgoing: Outgoing, timeout_ms: int, reply: "asyncio.Future[StoredMessage]"
    ) -> None:
        try:
            await self.sending.watched((message,), None, lambda: self.sending.store(outgoing, timeout_ms))
        except ClientError:
            if not reply.done():  # a reply is better than an acknowledgement that did not come
                raise

    async def recall(self, receipt: SendReceipt | str | None, *, timeout_ms: int | None = None) -> str:
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
        self._instance.check_running()
        handle = _handle(receipt)
        called = decode_handle(handle)
        timeout_ms = self.sending.time(timeout_ms)
        request = RecallRequest(called.topic, handle, self._group)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.sending.queues(checks.topic(called.topic))  # knows the brokers of the topic then
                address = self._instance.routes.address(called.broker_name)
                command = Command(RequestCode.RECALL_MESSAGE, request.encode())
                answer = raise_for(await self._instance.call(address, command, timeout_ms))
        except TimeoutError:
            raise CallTimeout(f"recalling a message of {called.topic} took over {timeout_ms} ms") from None
        try:
            return RecallAnswer.decode(answer.fields).msg_id
        except RequestError as error:
            raise ProtocolError(f"an answer that cannot be read: {error}") from error

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that messages to the topic can go to."""
        self._instance.check_running()
        return list(await self.sending.queues(checks.topic(topic)))


def several(messages: object) -> Iterable[Message]:
    """What must be messages, and not one."""
    if isinstance(messages, Message) or not isinstance(messages, Iterable):
        raise MessageIllegal(f"messages is a list of messages, not {checks.described(messages)}")
    return messages


def _handle(receipt: object) -> str:
    handle = receipt.recall_handle if isinstance(receipt, SendReceipt) else receipt
    if handle is None:
        raise InvalidRequest(
            "only timed messages have a handle: send with delay= or deliver_at= to recall one"
        )
    if not isinstance(handle, str):
        raise InvalidRequest(
            f"receipt is a SendReceipt, or its recall_handle, not {checks.described(handle)}"
        )
    return handle
