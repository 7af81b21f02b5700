"""What clients give back."""

from dataclasses import dataclass
from enum import Enum

from bolide.model.message import StoredMessage
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset


class SendStatus(Enum):
    """How safe a stored message is.  Only `SEND_OK` reached what the broker is configured for."""

    SEND_OK = "stored as safely as the broker is configured for"
    FLUSH_DISK_TIMEOUT = "stored, but not known to be on disk in time"
    FLUSH_SLAVE_TIMEOUT = "stored, but not known to be on a replica in time"
    SLAVE_NOT_AVAILABLE = "stored, but there is no replica in reach"


@dataclass(frozen=True, slots=True)
class SendReceipt:
    """Where a message went.  `message_id` is the producer's id, `offset_message_id` its place on the broker."""

    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: QueueOffset
    status: SendStatus
    recall_handle: str | None = None
    """What `Producer.recall` needs, of a message that waits for its time."""


class PullStatus(Enum):
    FOUND = "messages were found"
    NO_NEW_MESSAGE = "the offset is at the end of the queue"
    NO_MATCHED_MESSAGE = "messages were examined and none matched; go on at next_offset"
    OFFSET_ILLEGAL = "the offset is outside the queue; go on at next_offset"


@dataclass(frozen=True, slots=True)
class PullBlock:
    """A pull's answer with the records as the broker stores them, not decoded."""

    status: PullStatus
    next_offset: GroupOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    data: bytes
    suggested_broker_id: int = 0


@dataclass(frozen=True, slots=True)
class PullResult:
    """A pull's answer.  Continue at `next_offset`; the queue reaches from `min_offset` to before `max_offset`."""

    status: PullStatus
    next_offset: GroupOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    messages: list[StoredMessage]
