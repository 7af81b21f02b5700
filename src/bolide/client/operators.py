"""Operators: what a consumer answers to the requests that brokers pass on to it from those who run the cluster.

What it does right now (307), how far it is (221), one message by hand (309), and going on elsewhere (220).  A request
that names another group is not for us.  Nothing here changes how the consumer works, but a reset.
"""

import logging
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass

from bolide.client.assignment import Assignment
from bolide.client.context import ConsumeContext
from bolide.client.delivery import Delivery, ListenerTerms
from bolide.client.held import HeldQueue
from bolide.client.instance import Serve
from bolide.machines.orderly import OrderedQueue
from bolide.model.errors import ClientError, MalformedRecord, RequestError
from bolide.model.offsets import MessageQueue
from bolide.model.printable import printable_part
from bolide.model.topic import Subscription
from bolide.model.verdicts import Later, Suspend
from bolide.model.versions import version_name
from bolide.net.link import Link
from bolide.net.turns import join_pieces
from bolide.record.decode import decode_messages
from bolide.wire.bodies.admin import decode_reset, member_offsets_pieces
from bolide.wire.bodies.group import ConsumeType
from bolide.wire.bodies.running import (
    DirectResult,
    DirectVerdict,
    QueueFigures,
    RunningProperty,
    running_info_pieces,
)
from bolide.wire.codes import RequestCode
from bolide.wire.command import VERSION, Command
from bolide.wire.headers.admin import ConsumeDirectly, ConsumerStatusRequest, ResetOffset, RunningInfoRequest

log = logging.getLogger(__name__)

DIRECT_MAX = 4
"""Messages that operators may hand to the listener at once."""

STACKS_LENGTH_MAX = 256 * 1024
REMARK_LENGTH_MAX = 512


@dataclass(frozen=True)
class Consumer:
    """What is asked about."""

    group: str
    nameserver: str
    is_orderly: bool
    terms: ListenerTerms
    assignment: Assignment
    delivery: Delivery
    subscriptions: Callable[[], Iterable[Subscription]]
    on_moved: Callable[[], None]


class Operators:
    """Answers for one consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._direct = 0
        self.started_ms = 0

    def serves(self) -> dict[int, Serve]:
        return {
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._serve(
                lambda fields: RunningInfoRequest.decode(fields).consumer_group, self._running_info
            ),
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._serve(
                lambda fields: ConsumerStatusRequest.decode(fields).group, self._status
            ),
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._serve(
                lambda fields: ConsumeDirectly.decode(fields).consumer_group, self._consume
            ),
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._serve(
                lambda fields: ResetOffset.decode(fields).group, self._reset
            ),
        }

    def _serve(
        self,
        group_of: Callable[[Mapping[str, str]], str],
        work: Callable[[Command], Awaitable[Command | None]],
    ) -> Serve:
        def serve(link: Link, request: Command) -> Coroutine[None, None, Command | None] | None:
            try:
                is_ours = group_of(request.fields) == self._consumer.group
            except RequestError as error:
                log.warning("a request of %s that cannot be read: %s", link.remote, error)
                return None
            return _awaited(work(request)) if is_ours else None

        return serve

    # ---- 307 -----------------------------------------------------------------------------------------------

    async def _running_info(self, request: Command) -> Command:
        consumer = self._consumer
        subscriptions = list(consumer.subscriptions())
        body = await join_pieces(
            running_info_pieces(
                self._properties(),
                subscriptions,
                [(held.queue, self._figures(held)) for held in _sorted(consumer.assignment.held)],
                [(one.topic, consumer.terms.consumption.of(one.topic)) for one in subscriptions],
                _stacks() if RunningInfoRequest.decode(request.fields).jstack_enable else "",
            )
        )
        return request.answer(body=body)

    def _properties(self) -> dict[str, str]:
        consumer = self._consumer
        return {
            RunningProperty.NAMESERVER: consumer.nameserver,
            RunningProperty.CONSUME_TYPE: ConsumeType.PASSIVELY.value,
            RunningProperty.CLIENT_VERSION: "V" + version_name(VERSION).replace(".", "_"),
            RunningProperty.ORDERLY: str(consumer.is_orderly).lower(),
            RunningProperty.THREADS: str(consumer.delivery.concurrency),
            RunningProperty.STARTED_MS: str(self.started_ms),
        }

    def _figures(self, held: HeldQueue) -> QueueFigures:
        clock, process = self._consumer.terms.clock, held.process
        since_boot_ms = clock.now_ms() - clock.monotonic_ms()
        counts = process.held
        locked_ms = process.locked_ms if isinstance(process, OrderedQueue) else None
        return QueueFigures(
            commit_offset=process.commit_offset,
            messages=counts.messages,
            size_bytes=counts.size_bytes,
            first=counts.first,
            last=counts.last,
            pulled_ms=since_boot_ms + held.pulled_ms,
            consumed_ms=held.consumed_ms,
            locked=locked_ms is not None,
            locked_ms=0 if locked_ms is None else since_boot_ms + locked_ms,
            uncommitted=process.uncommitted if isinstance(process, OrderedQueue) else 0,
            is_leaving=held.is_leaving,
        )

    # ---- 220 and 221 ---------------------------------------------------------------------------------------

    async def _status(self, request: Command) -> Command:
        topic = ConsumerStatusRequest.decode(request.fields).topic
        held = [one for one in _sorted(self._consumer.assignment.held) if one.queue.topic == topic]
        rows = [(one.queue, int(one.process.commit_offset)) for one in held]
        return request.answer(body=await join_pieces(member_offsets_pieces(rows)))

    async def _reset(self, request: Command) -> None:
        """Nobody waits for an answer."""
        topic = ResetOffset.decode(request.fields).topic
        offsets = decode_reset(request.body)
        log.warning("%s goes on elsewhere in %s, as an operator wants it", self._consumer.group, topic)
        await self._consumer.assignment.move(
            topic, {queue: offset for queue, offset in offsets.items() if offset >= 0}
        )
        self._consumer.on_moved()

    # ---- 309 -----------------------------------------------------------------------------------------------

    async def _consume(self, request: Command) -> Command:
        """The listener gets a message by hand; its outcome is told, and changes nothing."""
        if self._direct >= DIRECT_MAX:
            raise ClientError(f"{self._direct} messages are being consumed by hand already; try again later")
        self._direct += 1
        try:
            return request.answer(body=(await self._consumed(request)).encode())
        finally:
            self._direct -= 1

    async def _consumed(self, request: Command) -> DirectResult:
        consumer, terms = self._consumer, self._consumer.terms
        broker_name = ConsumeDirectly.decode(request.fields).broker_name or ""
        messages = decode_messages(request.body, broker_name)
        if len(messages) != 1:
            raise MalformedRecord(f"{len(request.body)} bytes that are not one message")
        message = messages[0]
        queue = MessageQueue(message.topic, broker_name, message.queue_id)
        context = ConsumeContext(queue, by_hand=terms.by_hand)
        began_ms = terms.clock.monotonic_ms()
        outcome = await terms.calls.outcome([terms.prepare(message)], context)
        return DirectResult(
            _verdict(context, outcome),
            _remark(outcome),
            terms.clock.monotonic_ms() - began_ms,
            consumer.is_orderly,
            not terms.by_hand,
        )


async def _awaited(work: Awaitable[Command | None]) -> Command | None:
    return await work


def _sorted(queues: Iterable[HeldQueue]) -> list[HeldQueue]:
    return sorted(queues, key=lambda held: held.queue)


def _verdict(context: ConsumeContext, outcome: Exception | None) -> str:
    if isinstance(outcome, Later | Suspend) or (outcome is None and context.ack_index == -1):
        return DirectVerdict.LATER
    if outcome is not None:
        return DirectVerdict.RAISED
    if context.verdict is None:
        return DirectVerdict.SUCCESS
    return DirectVerdict.COMMIT if context.verdict else DirectVerdict.ROLLBACK


def _remark(outcome: Exception | None) -> str:
    if outcome is None:
        return ""
    return printable_part(f"{type(outcome).__name__}: {outcome}", REMARK_LENGTH_MAX)


def _stacks() -> str:
    """What each thread does right now."""
    stacks = (
        f"thread {number}\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()
    )
    return "\n".join(stacks)[:STACKS_LENGTH_MAX]
