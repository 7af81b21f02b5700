"""read_queue: pulls one held queue, one request after the other, for as long as it is held.

Nothing that goes wrong ends it: a broker that is away is asked again, an offset outside the queue is corrected as the
broker says, and while the listener is behind it does not pull at all.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from bolide.client.held import HeldQueue
from bolide.client.queue_calls import QueueCalls
from bolide.client.results import PullBlock, PullStatus
from bolide.client.rounds import wait_at_most
from bolide.model.errors import BolideError, MalformedRecord, RemoteError
from bolide.model.message import StoredMessage
from bolide.model.offsets import GroupOffset
from bolide.record.decode import decode_messages
from bolide.wire.codes import ResponseCode

log = logging.getLogger(__name__)

PULL_MESSAGES = 32
HOLD_MS = 15_000
"""How long a broker may hold a pull that finds nothing."""

ERROR_PAUSE_MS = 1_000
FLOW_CONTROL_PAUSE_MS = 20


@dataclass(frozen=True)
class Reading:
    """What all readers of one consumer share."""

    calls: QueueCalls
    on_messages: Callable[[HeldQueue], None]
    on_trouble: Callable[[], None]
    messages_max: int = PULL_MESSAGES


async def read_queue(held: HeldQueue, reading: Reading) -> None:
    """Until the queue is let go."""
    trouble = ""
    while not held.is_gone:
        if held.process.brake is not None:
            await held.wait_progress()
            continue
        try:
            block = await _pull(held, reading)
            messages = _matching(held, block)
        except BolideError as error:
            if str(error) != trouble:  # once, and not every second for as long as it lasts
                trouble = str(error)
                log.warning("reading %s at %d: %s", held.queue, held.process.next_offset, error)
            reading.on_trouble()
            await wait_at_most(held.gone, _pause_ms(error))
            continue
        trouble = ""
        held.broker_id = block.suggested_broker_id
        await _take_over(held, block, messages)
        if messages:
            reading.on_messages(held)


async def _pull(held: HeldQueue, reading: Reading) -> PullBlock:
    offset = held.process.commit_offset
    return await reading.calls.pull(
        held.queue,
        held.process.next_offset,
        held.subscription,
        messages_max=reading.messages_max,
        wait_ms=HOLD_MS,
        commit=offset if offset > 0 else None,
        broker_id=held.broker_id,
    )


def _matching(held: HeldQueue, block: PullBlock) -> list[StoredMessage]:
    """The messages whose tag really is one of ours: the broker compares only hashes."""
    messages = decode_messages(block.data, held.queue.broker_name)
    for message in messages:
        if not held.process.next_offset <= message.queue_offset < block.next_offset:
            raise MalformedRecord(
                f"the broker sent offset {message.queue_offset} for "
                f"{held.process.next_offset} to {block.next_offset}"
            )
    if held.subscription.takes_all:
        return messages
    return [message for message in messages if message.tags in held.subscription.tags]


async def _take_over(held: HeldQueue, block: PullBlock, messages: list[StoredMessage]) -> None:
    process = held.process
    if block.status is PullStatus.OFFSET_ILLEGAL:
        log.warning(
            "%s: offset %d is outside the queue, which has %d to %d; going on at %d",
            *(held.queue, process.next_offset, block.min_offset, block.max_offset, block.next_offset),
        )
        if block.next_offset < process.next_offset:
            while not process.is_idle and not held.is_gone:
                await held.wait_progress()
            if not held.is_gone:
                process.moved_back(block.next_offset)
            return
    process.pulled(messages, GroupOffset(max(block.next_offset, process.next_offset)))


def _pause_ms(error: BolideError) -> int:
    if isinstance(error, RemoteError) and error.response_code == ResponseCode.FLOW_CONTROL:
        return FLOW_CONTROL_PAUSE_MS
    return ERROR_PAUSE_MS
