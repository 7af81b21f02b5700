"""Frame: messages that are sent in one request, and where they may go; rows become frames here."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bolide.arrow.rows import IdSet, RowEncoder
from bolide.model.errors import BadRow
from bolide.model.offsets import MessageQueue
from bolide.model.pairs import parse_properties
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

if TYPE_CHECKING:
    from bolide.arrow.row_columns import Rows

_U16 = struct.Struct(">H")
_ID_DIGITS = 16


@dataclass(frozen=True)
class Frame:
    """`data` is a batch as a broker takes it; a message that waits is alone in its own."""

    topic: str
    lane: int
    data: bytes
    rows: int

    @property
    def is_alone(self) -> bool:
        """It is sent as the message that it is: in a batch the bytes around it count, and the largest is refused."""
        return self.rows == 1

    @property
    def numbers(self) -> list[int]:
        """What its messages' unique keys end with, in order."""
        return [_id_of(item) for item in _items(self.data)]

    def without(self, stored: IdSet) -> "Frame":
        """What is not stored yet."""
        left = [item for item in _items(self.data) if _id_of(item) not in stored]
        return replace(self, data=b"".join(left), rows=len(left))

    def properties(self) -> list[dict[str, str]]:
        """Of each message, in order."""
        return [parse_properties(_properties_of(item)) for item in _items(self.data)]

    def only_message(self) -> tuple[bytes, str]:
        """Body and properties of the one message."""
        *_, body_length = BATCH_ITEM.unpack_from(self.data)
        return self.data[BATCH_ITEM.size : BATCH_ITEM.size + body_length], _properties_of(self.data)


def frames_of(rows: "Rows", encoder: RowEncoder) -> list[Frame]:
    """The rows as frames, but for what is left in the encoder's lanes (`rest_of`)."""
    frames: list[Frame] = []
    at = 0
    try:
        while True:
            at = encoder.append(rows.columns, at, rows.count)
            if encoder.full < 0:
                return frames
            lane = encoder.full
            frames.append(Frame(rows.topic, lane, *encoder.take(lane)))
    except BadRow as error:
        raise BadRow(rows.place(error.row), error.column, error.why) from None


def rest_of(topic: str, encoder: RowEncoder) -> list[Frame]:
    """What is left in the lanes."""
    return [Frame(topic, lane, *encoder.take(lane)) for lane in encoder.waiting()]


def queue_ids_of(queues: Sequence[MessageQueue]) -> int:
    """How many lanes an encoder needs for rows that name their queue."""
    return 1 + max(queue.queue_id for queue in queues)


def queues_of(lane: int, queues: Sequence[MessageQueue]) -> tuple[Sequence[MessageQueue], bool]:
    """Where frames of a lane (`rows_twin.py`) may go, and whether they must keep their order."""
    if lane == 0:
        return queues, False
    if lane <= len(queues):
        return [queues[lane - 1]], True
    queue_id = lane - 1 - len(queues)
    return [queue for queue in queues if queue.queue_id == queue_id], True


def _items(data: bytes) -> list[bytes]:
    items, at = [], 0
    while at + BATCH_ITEM_FIXED_BYTES <= len(data):
        size = BATCH_ITEM.unpack_from(data, at)[0]
        items.append(data[at : at + size])
        at += size
    return items


def _properties_of(item: bytes) -> str:
    *_, body_length = BATCH_ITEM.unpack_from(item)
    return item[BATCH_ITEM.size + body_length + _U16.size :].decode()


def _id_of(item: bytes) -> int:
    """The unique key is the last property."""
    return int(item[-_ID_DIGITS - 1 : -1], 16)
