"""From a message to what a send request carries: checked, with its id, its body packed.

Never sends.  The limits are the original client's: they are checked here so that the error names the message and not
an answer of a distant broker.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from bolide.model.errors import MessageIllegal
from bolide.model.message import (
    BODY_BYTES_MAX,
    PROPERTIES_BYTES_MAX,
    Message,
    Property,
    SysFlag,
    format_properties,
)
from bolide.model.names import RETRY_PREFIX, check_topic
from bolide.model.properties import NOT_IN_A_BATCH
from bolide.record.compress import pack_body
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

PACK_FROM_BYTES = 4096
"""The original's compressMsgBodyOverHowmuch."""

_U16 = struct.Struct(">H")


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One message as a send request carries it."""

    topic: str
    message_ids: tuple[str, ...]
    body: bytes
    properties: str
    flag: int
    sys_flag: int
    batch: bool = False


def prepare(message: Message, message_id: str, pack_from_bytes: int = PACK_FROM_BYTES) -> Outgoing:
    """One message; a body of `pack_from_bytes` or more is packed if that makes it smaller."""
    properties = _properties(message, message_id)
    body, sys_flag = message.body, 0
    if len(body) >= pack_from_bytes:
        packed = pack_body(body)
        if len(packed) < len(body):
            body, sys_flag = packed, SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZLIB
    return Outgoing(message.topic, (message_id,), body, properties, message.flag, int(sys_flag))


def prepare_batch(messages: Sequence[Message], message_ids: Sequence[str]) -> Outgoing:
    """Several messages of one topic as one request.  Bodies in a batch are not packed."""
    if not messages:
        raise MessageIllegal("a batch needs at least one message")
    topic = messages[0].topic
    if topic.startswith(RETRY_PREFIX):
        raise MessageIllegal("batches cannot go to a retry topic")
    parts: list[bytes] = []
    size = 0
    for message, message_id in zip(messages, message_ids, strict=True):
        if message.topic != topic:
            raise MessageIllegal(f"a batch goes to one topic, not to {topic!r} and {message.topic!r}")
        for name in NOT_IN_A_BATCH:
            if name in message.properties:
                raise MessageIllegal(f"a message with the property {name} cannot be part of a batch")
        part = _batch_item(message, _properties(message, message_id).encode())
        size += len(part)
        parts.append(part)
    if size > BODY_BYTES_MAX:
        raise MessageIllegal(f"the batch has {size} bytes; {BODY_BYTES_MAX} are allowed, so split it")
    return Outgoing(topic, tuple(message_ids), b"".join(parts), "", 0, 0, batch=True)


def _batch_item(message: Message, properties: bytes) -> bytes:
    size = BATCH_ITEM_FIXED_BYTES + len(message.body) + len(properties)
    head = BATCH_ITEM.pack(size, 0, 0, message.flag, len(message.body))
    return b"".join((head, message.body, _U16.pack(len(properties)), properties))


def _properties(message: Message, message_id: str) -> str:
    check_topic(message.topic)
    if not message.body:
        raise MessageIllegal(f"the message to {message.topic!r} has no body")
    if not isinstance(message.body, bytes | bytearray | memoryview):
        raise MessageIllegal(
            f"the body of a message is bytes, not {type(message.body).__name__}: encode it, as in text.encode()"
        )
    if len(message.body) > BODY_BYTES_MAX:
        raise MessageIllegal(
            f"the message to {message.topic!r} has {len(message.body)} bytes; {BODY_BYTES_MAX} are allowed"
        )
    properties = dict(message.properties)
    if message.tags:
        properties[Property.TAGS] = message.tags
    keys = (message.keys,) if isinstance(message.keys, str) else tuple(message.keys)
    if keys:
        properties[Property.KEYS] = " ".join(keys)
    properties[Property.UNIQUE_KEY] = message_id
    text = format_properties(properties)
    if len(text) * 4 > PROPERTIES_BYTES_MAX and len(text.encode()) > PROPERTIES_BYTES_MAX:
        raise MessageIllegal(
            f"the properties of the message to {message.topic!r} take {len(text.encode())} bytes;"
            f" {PROPERTIES_BYTES_MAX} are allowed"
        )
    return text
