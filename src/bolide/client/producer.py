"""Producer: sends messages, on asyncio.  The blocking one in `blocking.py` is this one behind a thread.

A send chooses a queue (`rules/choose.py`), asks its broker to store the message, and on a failure that another
broker may not have tries another, all within one deadline.  A retry after a lost connection may store a message
twice: the receipt names the last one, and both carry the same message id.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from types import TracebackType
from typing import Self

from bolide.client import checks
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import PACK_FROM_BYTES, Outgoing, packed, prepare, prepare_batch
from bolide.client.results import SendReceipt, SendStatus
from bolide.model.errors import (
    CallTimeout,
    ClientError,
    ConnectionLost,
    InvalidRequest,
    MessageIllegal,
    NotWritable,
    ProtocolError,
    RemoteError,
    RequestError,
)
from bolide.model.message import BODY_BYTES_MAX, Message
from bolide.model.names import DEFAULT_TOPIC
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.model.recall import decode_handle
from bolide.net.surroundings import Surroundings
from bolide.rules.choose import QueueTurn
from bolide.wire.bodies.client import Route
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.send import RecallAnswer, RecallRequest, SendAnswer, SendRequest

DEFAULT_GROUP = "DEFAULT_PRODUCER"
SEND_TIMEOUT_MS = 3_000
RETRIES = 2
RETRIES_MAX = 100
TOPIC_QUEUES = 4
"""How many queues a topic gets that is created by a first send (defaultTopicQueueNums)."""

PACK_ASIDE_BYTES = 64 * 1024
"""Bodies from this size on are packed in a thread: the event loop must not wait for them."""

PACKERS = 4

STORED: Mapping[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.SEND_OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}

# Refusals that say something about the broker and not about the message (the original's retryResponseCodes).
TRY_ANOTHER = frozenset(
    {
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
        ResponseCode.GO_AWAY,
    }
)

Selector = Callable[[Sequence[MessageQueue], Message], MessageQueue]
SELECTOR_TAKES = "the queues and the message"


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
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str = DEFAULT_GROUP,
        timeout_ms: int = SEND_TIMEOUT_MS,
        retries: int = RETRIES,
        pack_from_bytes: int = PACK_FROM_BYTES,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._group = checks.group(group)
        self._timeout_ms = _timeout(timeout_ms)
        self._retries = checks.number("retries", retries, 0, RETRIES_MAX)
        self._pack_from_bytes = checks.number("pack_from_bytes", pack_from_bytes, 0, BODY_BYTES_MAX + 1)
        self._instance = ClientInstance(checks.nameserver(nameserver), surroundings)
        self._instance.act_as_producer(group)
        self._turn = QueueTurn(self._instance.surroundings.random.randrange(1 << 16))
        self._writable: dict[str, tuple[Route, list[MessageQueue]]] = {}  # worked out once per route
        self._packers: Executor | None = None

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Called by `async with`.  Brokers are connected when the first message needs them."""
        await self._instance.start()

    async def close(self) -> None:
        """Called by `async with`.  Says goodbye to the brokers and closes the connections."""
        if self._packers is not None:
            self._packers.shutdown(wait=False)
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
        outgoing = await self._prepare(message)
        choose = None
        if selector is not None:
            if queue is not None:
                raise InvalidRequest("a send takes a queue or a selector, not both")
            checks.function("selector", selector, SELECTOR_TAKES, InvalidRequest)
            choose = partial(_selected, selector, message)
        (receipt,) = await self._send(outgoing, queue, timeout_ms, choose)
        return receipt

    async def send_batch(
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
        self._instance.check_running()
        if isinstance(messages, Message) or not isinstance(messages, Iterable):
            raise MessageIllegal(f"messages is a list of messages, not {checks.described(messages)}")
        listed = list(messages)
        outgoing = prepare_batch(listed, [self._instance.ids.next() for _ in listed])
        return await self._send(outgoing, queue, timeout_ms)

    async def send_oneway(self, message: Message, *, queue: MessageQueue | None = None) -> None:
        """Send without asking for an acknowledgement: nobody learns whether the message was stored.

        Args:
            message: what to send.
            queue: where to send it, one of `queues(topic)`.
        """
        outgoing = await self._prepare(message)
        _check_queue(outgoing, queue)
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                queues = await self._queues(message.topic)
                queue = queue or self._turn.next(queues)
                address = self._instance.routes.address(queue.broker_name)
                await self._instance.notify(address, self._request(outgoing, queue))
        except TimeoutError:
            raise CallTimeout(f"the message to {message.topic} took over {self._timeout_ms} ms") from None

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
        timeout_ms = self._timeout_ms if timeout_ms is None else _timeout(timeout_ms)
        request = RecallRequest(called.topic, handle, self._group)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._queues(checks.topic(called.topic))  # knows the brokers of the topic then
                address = self._instance.routes.address(called.broker_name)
                command = Command(RequestCode.RECALL_MESSAGE, request.encode())
                answer = await self._instance.call(address, command, timeout_ms)
        except TimeoutError:
            raise CallTimeout(f"recalling a message of {called.topic} took over {timeout_ms} ms") from None
        if answer.code != ResponseCode.SUCCESS:
            raise RemoteError(answer.code, answer.remark or "")
        try:
            return RecallAnswer.decode(answer.fields).msg_id
        except RequestError as error:
            raise ProtocolError(f"an answer that cannot be read: {error}") from error

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues that messages to the topic can go to."""
        self._instance.check_running()
        return list(await self._queues(checks.topic(topic)))

    async def _queues(self, topic: str) -> list[MessageQueue]:
        route, borrowed = await self._instance.routes.route_for_sending(topic)
        known, queues = self._writable.get(topic, (None, []))
        if known is not route:
            queues = route.writable(topic, TOPIC_QUEUES) if borrowed else route.writable(topic)
            self._writable[topic] = (route, queues)
        if not queues:
            raise NotWritable(
                f"the topic {topic!r} has no queue that can be written to now:"
                " its brokers are drained, or it does not permit writing"
            )
        return queues

    async def _prepare(self, message: Message) -> Outgoing:
        self._instance.check_running()
        outgoing = prepare(message, self._instance.ids.next())
        if len(outgoing.body) < self._pack_from_bytes:
            return outgoing
        if len(outgoing.body) < PACK_ASIDE_BYTES:
            return packed(outgoing)
        if self._packers is None:
            self._packers = self._instance.surroundings.threads("bolide-pack", PACKERS)
        return await asyncio.get_running_loop().run_in_executor(self._packers, packed, outgoing)

    async def _send(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        timeout_ms: int | None,
        choose: Callable[[Sequence[MessageQueue]], MessageQueue] | None = None,
    ) -> list[SendReceipt]:
        """Try, and try again elsewhere, until it is stored, the tries are used up or the time is over."""
        timeout_ms = self._timeout_ms if timeout_ms is None else _timeout(timeout_ms)
        _check_queue(outgoing, queue)
        deadline_ms = self._instance.clock.monotonic_ms() + timeout_ms
        tries = 1 if queue is not None or choose is not None else 1 + self._retries
        failed_broker: str | None = None
        trouble: ClientError | ProtocolError | None = None
        for _ in range(tries):
            left_ms = deadline_ms - self._instance.clock.monotonic_ms()
            if left_ms <= 0:
                break
            target = queue
            try:
                async with asyncio.timeout(left_ms / 1000):
                    queues = await self._queues(outgoing.topic)
                    if choose is not None:
                        target = choose(queues)
                    target = target or self._turn.next(queues, failed_broker)
                    return await self._try(outgoing, target, left_ms)
            except TimeoutError:
                trouble = CallTimeout(f"the message to {target or outgoing.topic} took over {timeout_ms} ms")
            except (CallTimeout, ConnectionLost, ProtocolError) as error:
                trouble = error
            except RemoteError as error:
                if error.response_code not in TRY_ANOTHER:
                    raise
                trouble = error
            failed_broker = target.broker_name if target else None
            self._instance.refresh_routes_soon()
        raise trouble or CallTimeout(
            f"the message to {outgoing.topic} was given {timeout_ms} ms, too few to try"
        )

    async def _try(self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int) -> list[SendReceipt]:
        address = self._instance.routes.address(queue.broker_name)
        answer = await self._instance.call(address, self._request(outgoing, queue), timeout_ms)
        status = STORED.get(answer.code)
        if status is None:
            raise RemoteError(answer.code, answer.remark or "")
        return _receipts(outgoing, queue, status, answer)

    def _request(self, outgoing: Outgoing, queue: MessageQueue) -> Command:
        header = SendRequest(
            topic=outgoing.topic,
            producer_group=self._group,
            default_topic=DEFAULT_TOPIC,
            default_topic_queues=TOPIC_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=outgoing.sys_flag,
            born_timestamp_ms=self._instance.clock.now_ms(),
            flag=outgoing.flag,
            properties=outgoing.properties,
            batch=outgoing.batch,
        )
        code = RequestCode.SEND_BATCH_MESSAGE if outgoing.batch else RequestCode.SEND_MESSAGE_V2
        return Command(code, header.encode(), outgoing.body)


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


def _timeout(value: object) -> int:
    return checks.number("timeout_ms", value, 1, checks.DAY_MS)


def _check_queue(outgoing: Outgoing, queue: MessageQueue | None) -> None:
    if queue is not None and checks.queue(queue).topic != outgoing.topic:
        raise InvalidRequest(f"{queue} is no queue of {outgoing.topic!r}, where the message goes")


def _selected(selector: Selector, message: Message, queues: Sequence[MessageQueue]) -> MessageQueue:
    try:
        chosen: object = selector(queues, message)
    except TypeError:  # looked at only now, and not with every send
        checks.can_take("selector", selector, 2, SELECTOR_TAKES, InvalidRequest)
        raise
    if not isinstance(chosen, MessageQueue) or chosen.topic != message.topic:
        raise InvalidRequest(
            "the selector returns one of the queues that it is given, as in queues[0],"
            f" not {checks.described(chosen)}"
        )
    return chosen


def _receipts(
    outgoing: Outgoing, queue: MessageQueue, status: SendStatus, answer: Command
) -> list[SendReceipt]:
    try:
        header = SendAnswer.decode(answer.fields)
    except RequestError as error:
        raise ProtocolError(f"an acknowledgement that cannot be read: {error}") from error
    offset_ids = header.msg_id.split(",")
    if len(offset_ids) != len(outgoing.message_ids):
        raise ProtocolError(f"{len(outgoing.message_ids)} messages sent, {len(offset_ids)} acknowledged")
    stored = MessageQueue(queue.topic, queue.broker_name, header.queue_id)
    return [
        SendReceipt(
            message_id,
            offset_id,
            stored,
            QueueOffset(header.queue_offset + number),
            status,
            header.recall_handle,
        )
        for number, (message_id, offset_id) in enumerate(zip(outgoing.message_ids, offset_ids, strict=True))
    ]
