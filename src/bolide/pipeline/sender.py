"""Sender: frames to brokers, many on their way at once; it is done when every message is acknowledged.

A frame that a broker refuses for reasons of its own goes to another queue.  Of one whose answer is lost nobody knows
whether it is stored.  With an account (`account.py`) the broker is asked, and only what is missing is sent again;
without one the frame is sent again as it is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bolide.arrow.frames import Frame, queues_of
from bolide.arrow.rows import IdSet
from bolide.client.instance import ClientInstance
from bolide.client.sending import STORED, TOPIC_QUEUES, TRY_ANOTHER
from bolide.model.errors import (
    CallTimeout,
    ClientError,
    ConnectionLost,
    NotWritable,
    ProtocolError,
    RemoteError,
    RouteNotFound,
)
from bolide.model.limits import SPARK_WRITE_AHEAD_BYTES_MAX, SPARK_WRITE_AHEAD_MAX
from bolide.model.names import DEFAULT_TOPIC
from bolide.model.offsets import MessageQueue
from bolide.net.link import Link
from bolide.net.ticks import pause
from bolide.pipeline.account import Account, Scope
from bolide.pipeline.errors import WriteInDoubt
from bolide.pipeline.pace import Pace
from bolide.pipeline.write_options import WriteOptions
from bolide.rules.choose import QueueTurn
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.send import SendAnswer, SendRequest

log = logging.getLogger(__name__)

T = TypeVar("T")

CALL_TIMEOUT_MS = 15_000
START_TIMEOUT_MS = 10_000
"""How long a task that has sent nothing yet waits for brokers: a wrong address is to be heard of in seconds."""

PAUSE_FIRST_MS = 50
PAUSE_MAX_MS = 1_000

Receipts = Callable[[Frame, MessageQueue, int], None]
"""Called with a frame that is stored, its queue, and the offset of its first message; the others follow that."""


@dataclass
class Target:
    """A topic that the task writes to: its queues as they were when it began, and what of it is stored already."""

    topic: str
    queues: Sequence[MessageQueue]
    stored: IdSet

    @property
    def brokers(self) -> list[str]:
        return sorted({queue.broker_name for queue in self.queues})


class Sender:
    def __init__(
        self,
        instance: ClientInstance,
        options: WriteOptions,
        scope: Scope | None,
        *,
        delays: bool,
        receipts: Receipts | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._instance = instance
        self._options = options
        self._scope = scope
        self._delays = delays
        self._receipts = receipts
        self._pace = pace or Pace(options.rate, instance.clock)
        self._targets: dict[str, Target] = {}
        self._stored: dict[str, IdSet] = {}
        self._accounts: dict[str, Account] = {}
        self._holding = asyncio.Lock()
        self._turn = QueueTurn(instance.surroundings.random.randrange(1 << 16))
        self._tails: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._under_way: dict[asyncio.Task[None], int] = {}
        self._bytes_ahead = 0
        self._says_unsafe = True
        self.rows = 0
        """How many messages are acknowledged."""

    # ---- topics --------------------------------------------------------------------------------------------

    async def target(self, topic: str) -> Target:
        """The topic, ready to be written to: every broker of it has told what it has of the batch."""
        known = self._targets.get(topic)
        if known is None:
            known = self._targets[topic] = await self._patiently(
                min(START_TIMEOUT_MS, self._options.timeout_ms), lambda: self._open(topic)
            )
        return known

    async def _open(self, topic: str) -> Target:
        route, borrowed = await self._instance.routes.route_for_sending(topic)
        queues = route.writable(topic, TOPIC_QUEUES) if borrowed else route.writable(topic)
        if not queues:
            raise NotWritable(f"the topic {topic!r} has no queue that can be written to now")
        # One set for every try: what a broker has told once is not asked of it again.
        stored = self._stored.setdefault(topic, IdSet())
        target = Target(topic, sorted(queues, key=lambda queue: (queue.broker_name, queue.queue_id)), stored)
        if self._scope is not None:
            await self._hold(target)
        return target

    async def _hold(self, target: Target) -> None:
        """Have all brokers of the batch at one moment, each of which has told what it has: those of the topics, and
        all others that the batch has been to.

        The others may have had queues of the topic when the batch was tried before.  Another attempt at this part that
        begins meanwhile cuts off a connection, which the checks behind the last beginning find; so of two attempts
        one has been everywhere after the other, and knows all that is stored.
        """
        async with self._holding:
            begun = [account for account in self._accounts.values() if account.has_begun]
            await asyncio.gather(*(account.renew() for account in begun))
            await asyncio.gather(
                *(self._account(name).begin(*self._begin(target)) for name in target.brokers)
            )
            asked = set(target.brokers)
            while others := self._known_brokers(asked) - asked:
                for name in sorted(others):
                    try:
                        await self._account(name).begin(*self._begin(target))
                    except (CallTimeout, ConnectionLost, RouteNotFound) as error:
                        raise WriteInDoubt(
                            f"this batch was written before, also to the broker {name}, which cannot be asked now what"
                            f" it has of it ({error}): start that broker, and try again. A stream can give up the"
                            " certainty that a row is stored once, with idempotent=false"
                        ) from error
                asked |= others
            held = list(self._accounts.values())
            if len(held) > 1:
                await asyncio.gather(*(account.check() for account in held))
            for account in held:
                account.hold()

    def _known_brokers(self, asked: set[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self._account(name).others for name in asked))

    def _account(self, broker: str) -> Account:
        assert self._scope is not None
        found = self._accounts.get(broker)
        if found is None:
            found = Account(self._instance, self._options.group, self._scope, broker, delays=self._delays)
            self._accounts[broker] = found
        return found

    @staticmethod
    def _begin(target: Target) -> tuple[str, str, IdSet]:
        return target.topic, ",".join(target.brokers), target.stored

    # ---- frames --------------------------------------------------------------------------------------------

    async def send(self, frame: Frame) -> None:
        """Send; returns when there is room for another one.  Errors of frames before it come here, too."""
        await self._pace.turn(frame.rows)
        size = len(frame.data)
        while self._under_way and (
            len(self._under_way) >= SPARK_WRITE_AHEAD_MAX
            or self._bytes_ahead + size > SPARK_WRITE_AHEAD_BYTES_MAX
        ):
            await self._some_done()
        _, ordered = queues_of(frame.lane, self._targets[frame.topic].queues)
        before = self._tails.get((frame.topic, frame.lane)) if ordered else None
        task = asyncio.get_running_loop().create_task(self._deliver(frame, before))
        if ordered:
            self._tails[frame.topic, frame.lane] = task
        self._under_way[task] = size
        self._bytes_ahead += size
        await pause(0)  # so that it is written

    async def finish(self) -> None:
        """Wait for all acknowledgements."""
        while self._under_way:
            await self._some_done()

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _some_done(self) -> None:
        done, _ = await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            self._bytes_ahead -= self._under_way.pop(task)
            task.result()

    async def _deliver(self, frame: Frame, before: "asyncio.Task[None] | None") -> None:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        if before is not None:
            before.result()
        rows = frame.rows
        attempt = _Attempt(self, frame)
        await self._patiently(self._options.timeout_ms, attempt.go)
        self.rows += rows

    async def link(self, frame: Frame, broker: str) -> Link:
        """A connection to send over; with an account, one that is held."""
        if self._scope is None:
            return await self._instance.link(self._instance.routes.address(broker))
        account = self._account(broker)
        link = await account.held_link(frame.topic)
        if link is None:
            await self._hold(self._targets[frame.topic])
            link = await account.held_link(frame.topic)
        if link is None:
            raise ConnectionLost(f"the connection to the broker {broker} was lost again")
        return link

    async def send_over(self, link: Link, frame: Frame, queue: MessageQueue) -> None:
        """One try; returns when the frame is stored.  Of a connection that did not answer nothing more is believed."""
        try:
            answer = await link.call(self._request(frame, queue), CALL_TIMEOUT_MS)
        except CallTimeout:
            link.abort()
            raise
        if answer.code == ResponseCode.SYSTEM_ERROR:  # it may have happened behind the store
            link.abort()
        self._check(answer)
        if self._receipts is not None:
            self._receipts(frame, queue, SendAnswer.decode(answer.fields).queue_offset)

    def _check(self, answer: Command) -> None:
        if answer.code not in STORED:
            raise RemoteError(answer.code, answer.remark or "")
        if answer.code != ResponseCode.SUCCESS and self._says_unsafe:
            self._says_unsafe = False
            log.warning(
                "messages are stored, but not as safely as they should be: %s", STORED[answer.code].value
            )

    @property
    def has_begun_again(self) -> bool:
        """Whether frames that were made before may be stored by now."""
        return any(account.has_begun_again for account in self._accounts.values())

    def keeps_account(self, broker: str) -> bool:
        """Whether it can be asked what it has of the batch; brokers of Apache cannot."""
        return self._scope is not None and self._account(broker).is_kept

    def stored(self, topic: str) -> IdSet:
        return self._stored[topic]

    def choose(self, frame: Frame, avoid: str | None) -> MessageQueue:
        queues, _ = queues_of(frame.lane, self._targets[frame.topic].queues)
        return self._turn.next(queues, avoid)

    def _request(self, frame: Frame, queue: MessageQueue) -> Command:
        body, properties = frame.only_message() if frame.is_alone else (frame.data, "")
        header = SendRequest(
            topic=frame.topic,
            producer_group=self._options.group,
            default_topic=DEFAULT_TOPIC,
            default_topic_queues=TOPIC_QUEUES,
            queue_id=queue.queue_id,
            born_timestamp_ms=self._instance.clock.now_ms(),
            properties=properties,
            batch=not frame.is_alone,
        )
        code = RequestCode.SEND_MESSAGE_V2 if frame.is_alone else RequestCode.SEND_BATCH_MESSAGE
        return Command(code, header.encode(), body)

    async def _patiently(self, timeout_ms: int, work: Callable[[], Awaitable[T]]) -> T:
        """Again and again, as long as it fails for reasons that may pass."""
        clock = self._instance.clock
        deadline_ms: int | None = None
        pause_ms = PAUSE_FIRST_MS
        while True:
            try:
                return await work()
            except (ClientError, ProtocolError) as error:
                if isinstance(error, RemoteError) and error.response_code not in TRY_ANOTHER:
                    raise
                now_ms = clock.monotonic_ms()
                deadline_ms = now_ms + timeout_ms if deadline_ms is None else deadline_ms
                if now_ms + pause_ms > deadline_ms:
                    raise
                log.info("trying again: %s", error)
            self._instance.refresh_routes_soon()
            await pause(pause_ms / 1000)
            pause_ms = min(pause_ms * 2, PAUSE_MAX_MS)


class _Attempt:
    """The tries of one frame: where the last one went, and what of the frame is left."""

    def __init__(self, sender: Sender, frame: Frame) -> None:
        self._sender = sender
        self._frame = frame
        self._avoid: str | None = None
        self._in_doubt: str | None = None

    async def go(self) -> None:
        sender = self._sender
        if self._in_doubt is not None:
            # First of all what the broker has of it: no other may get what it has stored.
            await sender.link(self._frame, self._in_doubt)
            self._in_doubt = None
        queue = sender.choose(self._frame, self._avoid)
        self._avoid = queue.broker_name
        link = await sender.link(self._frame, queue.broker_name)
        if sender.has_begun_again:
            # Ours, or of another attempt that has had this part meanwhile.
            self._frame = self._frame.without(sender.stored(self._frame.topic))
            if not self._frame.rows:
                return
        try:
            await sender.send_over(link, self._frame, queue)
        except (CallTimeout, ConnectionLost, RemoteError) as error:
            refused = isinstance(error, RemoteError) and error.response_code != ResponseCode.SYSTEM_ERROR
            if sender.keeps_account(queue.broker_name) and not refused:
                self._in_doubt = queue.broker_name
            raise
