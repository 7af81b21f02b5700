"""What answers of brokers bring: a success or not, and messages only as far as they agree with what was asked."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from bolide.client.results import PullBlock
from bolide.client.rounds import Seldom
from bolide.model.clock import Clock
from bolide.model.errors import MalformedRecord, RemoteError
from bolide.model.limits import PULL_COST_BYTES_MAX
from bolide.model.numbers import INT32_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.record.decode import decode_some
from bolide.record.layout import HEAD
from bolide.record.stored import StoredMessage, misplaced
from bolide.wire.codes import ResponseCode
from bolide.wire.command import Command

log = logging.getLogger(__name__)

SAY_SKIPPED_MS = 10_000


def raise_for(answer: Command) -> Command:
    """The answer if it is a success, else `RemoteError`."""
    if answer.code != ResponseCode.SUCCESS:
        raise RemoteError(answer.code, answer.remark or "")
    return answer


@dataclass(frozen=True, slots=True)
class Part:
    """Some messages of a block, and where those begin that are left of it, as an offset and as a place in its bytes."""

    messages: list[StoredMessage]
    next_offset: GroupOffset
    end_at: int
    cost_bytes: int
    is_broken: bool
    """Whether what is left cannot be read."""


def messages_of(
    block: PullBlock, queue: MessageQueue, offset: GroupOffset
) -> tuple[list[StoredMessage], GroupOffset]:
    """The messages of an answer to a pull at `offset`, and where to go on.

    There may be fewer than came: an answer is read only as far as it may take memory, and as far as it can be read.
    The next pull begins with the rest.  `MalformedRecord` when not even the first message can be read.
    """
    part = part_of(block.data, queue, offset, block.next_offset)
    return part.messages, part.next_offset


def part_of(
    data: bytes,
    queue: MessageQueue,
    begin: GroupOffset,
    end: GroupOffset,
    *,
    at: int = 0,
    count_max: int = INT32_MAX,
    cost_bytes_max: int = PULL_COST_BYTES_MAX,
) -> Part:
    """The next messages of a block that has those from `begin` to before `end`, from the byte `at` on.

    `MalformedRecord` when not even the first one can be read.
    """
    decoded = decode_some(data, queue.broker_name, cost_bytes_max, at=at, count_max=count_max)
    if decoded.broken is not None and not decoded.messages:
        raise decoded.broken
    next_offset = end if decoded.next_offset is None else min(decoded.next_offset, end)
    if (index := misplaced(decoded.messages, begin, next_offset)) is not None:
        last = decoded.messages[index - 1].queue_offset if index else begin
        raise MalformedRecord(
            f"the broker sent the message at offset {decoded.messages[index].queue_offset}, which is not from {last}"
            f" to {next_offset}"
        )
    is_broken = decoded.broken is not None
    return Part(decoded.messages, GroupOffset(next_offset), decoded.end_at, decoded.cost_bytes, is_broken)


def end_of(data: bytes) -> int:
    """Behind the queue offset of the last message of a block, as far as there are messages in it."""
    at = end = 0
    while at + HEAD.size <= len(data):
        size, _, _, _, _, queue_offset, *_ = HEAD.unpack_from(data, at)
        end = queue_offset + 1
        at += max(size, HEAD.size)
    return end


class Wanted:
    """Which of the messages that have come are for the application: those whose tag really is asked for, because
    brokers compare only hashes; and no bad ones, if these are skipped.  `on_skipped` is told how many were.
    """

    def __init__(self, clock: Clock, on_skipped: Callable[[int], None], *, skips_bad_bodies: bool) -> None:
        self._on_skipped = on_skipped
        self._skips_bad_bodies = skips_bad_bodies
        self.say_skipped = Seldom(clock, SAY_SKIPPED_MS)

    def of(
        self, messages: list[StoredMessage], queue: MessageQueue, subscription: Subscription
    ) -> list[StoredMessage]:
        if not subscription.takes_all:
            messages = [message for message in messages if message.tags in subscription.tags]
        if not self._skips_bad_bodies:
            return messages
        good = [message for message in messages if message.body_error is None]
        if len(good) < len(messages):
            self._on_skipped(len(messages) - len(good))
            if self.say_skipped.is_due():
                bad = next(message for message in messages if message.body_error is not None)
                log.warning(
                    "%s: skipped the message at offset %d, and others perhaps: %s",
                    *(queue, bad.queue_offset, bad.body_error),
                )
        return good
