"""Frame: messages that are sent in one request, and where they may go."""

import struct
from dataclasses import dataclass, replace

from bolide.model.message import parse_properties
from bolide.pipeline.rows import IdSet
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

_U16 = struct.Struct(">H")
_ID_DIGITS = 16


@dataclass(frozen=True)
class Frame:
    """`data` is a batch as a broker takes it; a delayed message is alone in its own."""

    topic: str
    lane: int
    data: bytes
    rows: int
    delayed: bool

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
