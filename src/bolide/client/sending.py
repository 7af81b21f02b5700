"""Sending: brings what is ready to be sent to a broker, and what the broker says back.

Chooses a queue (`rules/choose.py`), asks its broker to store, and on a failure that another broker may not have tries
another, all within one deadline.  Never looks into a message: `client/outgoing.py` has made it ready.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from bolide.client import checks
from bolide.client.gather import SendReceipt
from bolide.client.hooks import Send
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import Outgoing
from bolide.client.results import SendStatus
from bolide.client.routes import patiently
from bolide.machines.slow_brokers import SlowBrokers
from bolide.model.errors import (
    CallTimeout,
    ClientError,
    ClientNotRunning,
    ConnectionLost,
    InvalidRequest,
    NoNameServer,
    NotWritable,
    ProtocolError,
    RemoteError,
    RequestError,
)
from bolide.model.message import Message
from bolide.model.names import DEFAULT_TOPIC
from bolide.model.offsets import MessageQueue, QueueOffset
from bolide.rules.choose import QueueTurn, Wish, hashed
from bolide.wire.bodies.client import Route
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.send import SendAnswer, send_fields

TOPIC_QUEUES = 4
"""How many queues a topic gets that is created by a first send (defaultTopicQueueNums)."""

GRACE_MS = 20
"""A call's own deadline comes first: with it ends the use of a connection on which nothing comes any more."""

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

Choose = Callable[[Sequence[MessageQueue]], MessageQueue]


class Stored(NamedTuple):
    """A request that was acknowledged: after so long, by the broker at this address."""

    outgoing: Outgoing
    queue: MessageQueue
    status: SendStatus
    header: SendAnswer
    address: str
    took_ms: int

    def receipts(self) -> list[SendReceipt]:
        """One for each message."""
        ids, offset_ids = self.outgoing.message_ids, self.header.msg_id.split(",")
        if len(offset_ids) != len(ids):
            raise ProtocolError(f"{len(ids)} messages sent, {len(offset_ids)} acknowledged")
        return [
            SendReceipt(
                message_id,
                offset_id,
                self.queue,
                QueueOffset(self.header.queue_offset + number),
                self.status,
                self.header.recall_handle,
            )
            for number, (message_id, offset_id) in enumerate(zip(ids, offset_ids, strict=True))
        ]


class Failed(NamedTuple):
    """A first try that was made elsewhere: by which broker it was not stored, why, and when the time of all is over."""

    broker_name: str
    trouble: ClientError | ProtocolError
    deadline_ms: int


class Course(Protocol):
    """Who looks at the way of a request that may go to any queue."""

    def likes(self, broker_name: str) -> bool:
        """Whether it should go there, if it can."""
        ...

    def goes_to(self, broker_name: str) -> None:
        """A try begins."""
        ...


class Sending:
    """One producer's way to the brokers.

    Args:
        instance: the client.
        group: the producer group.
        timeout_ms: how long a send may take with all its tries, unless it says otherwise.
        retries: how many more tries a failed one has.
        slow: if given, brokers that were slow or failed are avoided for a while.
        on_stored: if given, hears of every request that was acknowledged.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        *,
        timeout_ms: int,
        retries: int,
        slow: SlowBrokers | None = None,
        on_stored: Callable[[Stored], None] | None = None,
    ) -> None:
        self._instance = instance
        self._group = group
        self._timeout_ms = timeout_ms
        self._retries = retries
        self._slow = slow
        self._on_stored = on_stored
        self._turn = QueueTurn(instance.surroundings.random.randrange(1 << 16))
        self._writable: dict[str, tuple[Route, list[MessageQueue]]] = {}  # worked out once per route
        self.is_watched = any(one.before_send or one.after_send for one in instance.hooks.all)
        """Whether hooks look at what is sent."""

    def time(self, timeout_ms: int | None) -> int:
        """What a call is given, or else the producer's own."""
        return self._timeout_ms if timeout_ms is None else checks.timeout(timeout_ms)

    def known_queues(self, topic: str) -> list[MessageQueue]:
        """The same if they are known, or else none; any thread may ask."""
        return self._writable.get(topic, (None, []))[1]

    async def queues(self, topic: str, timeout_ms: int | None = None) -> list[MessageQueue]:
        """The queues that can be sent to; never none.  A name server is waited for no longer than this, or a send."""
        routes = self._instance.routes
        route, borrowed = await patiently(
            lambda: routes.route_for_sending(topic), timeout_ms or self._timeout_ms
        )
        queues = self._queues_of(topic, route, TOPIC_QUEUES if borrowed else None)
        if not queues:
            raise NotWritable(
                f"the topic {topic!r} has no queue that can be written to now:"
                " its brokers are drained, or it does not permit writing"
            )
        return queues

    def _queues_of(self, topic: str, route: Route, queues_max: int | None = None) -> list[MessageQueue]:
        known, queues = self._writable.get(topic, (None, []))
        if known is not route:
            queues = route.writable(topic) if queues_max is None else route.writable(topic, queues_max)
            self._writable[topic] = (route, queues)
        return queues

    def next_at_hand(self, topic: str) -> MessageQueue | None:
        """Whose turn it is, where everything is known that says so and every broker is as good as another; any thread
        may ask.
        """
        route = self._instance.routes.known(topic)
        queues = self._queues_of(topic, route) if route is not None and self._slow is None else []
        return self._turn.next(queues) if queues else None

    async def _queues_to_try(
        self, topic: str, failed_broker: str | None, timeout_ms: int
    ) -> list[MessageQueue]:
        """Where only the broker is known that has just failed, the topic may have moved, or it is starting again."""
        queues = await self.queues(topic, timeout_ms)
        if failed_broker is None or any(queue.broker_name != failed_broker for queue in queues):
            return queues
        await self._instance.routes_renewed()
        return await self.queues(topic, timeout_ms)

    def watched(
        self, messages: Sequence[Message], queue: MessageQueue | None, send: Send
    ) -> Awaitable[Sequence[SendReceipt]]:
        """A send of the application, of which its hooks hear, and which they may veto; `queue` if it asks for one."""
        return self._instance.hooks.around_send(self._group, messages, queue, send)

    async def store(
        self,
        outgoing: Outgoing,
        timeout_ms: int | None = None,
        *,
        queue: MessageQueue | None = None,
        choose: Choose | None = None,
        failed: Failed | None = None,
    ) -> list[SendReceipt]:
        """The receipts of what a request carries, when it is stored."""
        stored = await self.acknowledged(outgoing, timeout_ms, queue=queue, choose=choose, failed=failed)
        return stored.receipts()

    async def acknowledged(
        self,
        outgoing: Outgoing,
        timeout_ms: int | None = None,
        *,
        queue: MessageQueue | None = None,
        choose: Choose | None = None,
        failed: Failed | None = None,
        course: Course | None = None,
    ) -> Stored:
        """Try, and try again elsewhere, until it is stored, the tries are used up or the time is over.

        A queue that is given, chosen or that of a sharding key is never exchanged for another.  A try that has `failed`
        already is one of them.
        """
        timeout_ms = self.time(timeout_ms)
        choose = _chooser(outgoing, queue, choose)
        clock = self._instance.clock
        deadline_ms = clock.monotonic_ms() + timeout_ms
        tries = 1 if queue is not None or choose is not None else 1 + self._retries
        failed_broker: str | None = None
        trouble: ClientError | ProtocolError | None = None
        if failed is not None:
            failed_broker, trouble, deadline_ms = failed
            tries -= 1
            self._instance.refresh_routes_soon()
        for _ in range(tries):
            left_ms = deadline_ms - clock.monotonic_ms()
            if left_ms <= 0:
                break
            target = queue
            try:
                async with asyncio.timeout((left_ms + GRACE_MS) / 1000):
                    queues = await self._queues_to_try(outgoing.topic, failed_broker, left_ms)
                    if choose is not None:
                        target = choose(queues)
                    target = target or self._next(queues, outgoing.near, failed_broker, course)
                    if course is not None:
                        course.goes_to(target.broker_name)
                    left_ms = max(1, deadline_ms - clock.monotonic_ms())
                    return await self._try(outgoing, target, left_ms)
            except TimeoutError:
                trouble = trouble or CallTimeout(  # why a first try failed says more
                    f"the message to {target or outgoing.topic} took over {timeout_ms} ms"
                )
            except (
                NoNameServer,
                ClientNotRunning,
            ) as error:  # waited for already, or closed behind a first try
                trouble = trouble or error
                break
            except (CallTimeout, ConnectionLost, ProtocolError) as error:
                trouble = error
            except RemoteError as error:
                if not may_try_another(error):
                    raise
                trouble = error
            if target is not None:
                failed_broker = target.broker_name
                self._failed(failed_broker, trouble)
            self._instance.refresh_routes_soon()
        raise trouble or CallTimeout(
            f"the message to {outgoing.topic} was given {timeout_ms} ms, too few to try"
        )

    async def notify(self, outgoing: Outgoing, queue: MessageQueue | None) -> None:
        """Send without waiting for an answer."""
        choose = _chooser(outgoing, queue)
        try:
            async with asyncio.timeout(self._timeout_ms / 1000):
                queues = await self.queues(outgoing.topic)
                if queue is None:
                    queue = self._next(queues, outgoing.near, None) if choose is None else choose(queues)
                address = self._instance.routes.address(queue.broker_name)
                await self._instance.notify(address, self.request(outgoing, queue))
        except TimeoutError:
            raise CallTimeout(f"the message to {outgoing.topic} took over {self._timeout_ms} ms") from None

    def _next(
        self,
        queues: Sequence[MessageQueue],
        near: str | None,
        failed_broker: str | None,
        course: Course | None = None,
    ) -> MessageQueue:
        """Whose turn it is."""
        wishes: list[Wish] = []
        if near is not None:
            wishes.append(near.__eq__)
        if self._slow is not None:
            now_ms, slow = self._instance.clock.monotonic_ms(), self._slow
            wishes += (
                lambda name: slow.is_available(name, now_ms),
                lambda name: slow.is_reachable(name, now_ms),
            )
        if course is not None:
            wishes = [*(_both(course.likes, wish) for wish in wishes), course.likes, *wishes]
        return self._turn.next(queues, failed_broker, wishes)

    async def _try(self, outgoing: Outgoing, queue: MessageQueue, timeout_ms: int) -> Stored:
        address = self._instance.routes.address(queue.broker_name)
        began_ms = self._instance.clock.monotonic_ms()
        answer = await self._instance.call(address, self.request(outgoing, queue), timeout_ms)
        stored = self.read(answer, outgoing, queue, address, began_ms)
        if self._slow is not None:
            now_ms = self._instance.clock.monotonic_ms()
            self._slow.answered(queue.broker_name, stored.took_ms, now_ms)
        if self._on_stored is not None:
            self._on_stored(stored)
        return stored

    def read(
        self, answer: Command, outgoing: Outgoing, queue: MessageQueue, address: str, began_ms: int
    ) -> Stored:
        """What a broker's answer says; `RemoteError` where it has not stored."""
        status = STORED.get(answer.code)
        if status is None:
            raise RemoteError(answer.code, answer.remark or "")
        header = _read(answer)
        place = MessageQueue(queue.topic, queue.broker_name, header.queue_id)
        took_ms = self._instance.clock.monotonic_ms() - began_ms
        return Stored(outgoing, place, status, header, address, took_ms)

    def _failed(self, broker_name: str, trouble: ClientError | ProtocolError) -> None:
        if self._slow is not None:
            has_answered = isinstance(trouble, RemoteError | ProtocolError)
            self._slow.failed(broker_name, self._instance.clock.monotonic_ms(), has_answered=has_answered)

    def request(self, outgoing: Outgoing, queue: MessageQueue) -> Command:
        fields = send_fields(
            outgoing.topic,
            self._group,
            DEFAULT_TOPIC,
            TOPIC_QUEUES,
            queue.queue_id,
            outgoing.sys_flag,
            self._instance.clock.now_ms(),
            outgoing.flag,
            outgoing.properties,
            batch=outgoing.batch,
        )
        code = RequestCode.SEND_MESSAGE_V2
        if outgoing.batch:
            code = RequestCode.SEND_BATCH_MESSAGE
        elif outgoing.is_reply:
            code = RequestCode.SEND_REPLY_MESSAGE_V2
        return Command(code, fields, outgoing.body)


def may_try_another(error: RemoteError) -> bool:
    """Whether another broker may take what this one has refused."""
    return error.response_code in TRY_ANOTHER


def _chooser(outgoing: Outgoing, queue: MessageQueue | None, choose: Choose | None = None) -> Choose | None:
    """Who chooses the queue; None when it is given, or any will do."""
    if queue is not None:
        if checks.queue(queue).topic != outgoing.topic:
            raise InvalidRequest(f"{queue} is no queue of {outgoing.topic!r}, where the message goes")
        return None
    if choose is None and outgoing.sharding_key is not None:
        return partial(hashed, outgoing.sharding_key)
    return choose


def _both(first: Wish, second: Wish) -> Wish:
    return lambda name: first(name) and second(name)


def _read(answer: Command) -> SendAnswer:
    try:
        header = SendAnswer.decode(answer.fields)
    except RequestError as error:
        raise ProtocolError(f"an acknowledgement that cannot be read: {error}") from error
    if header.queue_id < 0 or header.queue_offset < 0:
        where = f"queue {header.queue_id}, offset {header.queue_offset}"
        raise ProtocolError(f"an acknowledgement of a place that cannot be: {where}")
    return header
