"""What a pull's answer brings, believed only as far as it agrees with what was asked."""

from bolide.client.results import PullBlock
from bolide.model.errors import MalformedRecord
from bolide.model.message import StoredMessage
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.record.decode import decode_some


def messages_of(
    block: PullBlock, queue: MessageQueue, offset: GroupOffset
) -> tuple[list[StoredMessage], GroupOffset]:
    """The messages of an answer to a pull at `offset`, and where to go on.

    There may be fewer than came: an answer is read only as far as it may take memory, and as far as it can be read.
    The next pull begins with the rest.  `MalformedRecord` when not even the first message can be read.
    """
    decoded = decode_some(block.data, queue.broker_name)
    if decoded.broken is not None and not decoded.messages:
        raise decoded.broken
    end = block.next_offset if decoded.next_offset is None else min(decoded.next_offset, block.next_offset)
    at: int = offset
    for message in decoded.messages:
        if not at <= message.queue_offset < end:
            raise MalformedRecord(
                f"the broker sent the message at offset {message.queue_offset}, which is not from {at} to {end}"
            )
        at = message.queue_offset
    return decoded.messages, GroupOffset(end)
