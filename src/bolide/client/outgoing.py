"""From a message to what a send request carries: checked, with its id, its body packed.

Never sends.  The limits are the original client's: they are checked here so that the error names the message and not
an answer of a distant broker.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bolide.client import checks
from bolide.model.errors import MessageIllegal
from bolide.model.limits import DELAY_LEVELS_MAX
from bolide.model.message import (
    BODY_BYTES_MAX,
    PROPERTIES_BYTES_MAX,
    Message,
    Property,
    SysFlag,
    format_properties,
)
from bolide.model.names import RETRY_PREFIX
from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.model.properties import NOT_IN_A_BATCH
from bolide.record.compress import pack_body
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

PACK_FROM_BYTES = 4096
"""The original's compressMsgBodyOverHowmuch."""

_U16 = struct.Struct(">H")


class Outgoing(NamedTuple):
    """One message as a send request carries it."""

    topic: str
    message_ids: tuple[str, ...]
    body: bytes
    properties: str
    flag: int
    sys_flag: int
    batch: bool = False


def prepare(message: Message, message_id: str) -> Outgoing:
    """One message, not packed yet."""
    body = _body(message)
    return Outgoing(message.topic, (message_id,), body, _properties(message, message_id), message.flag, 0)


def packed(outgoing: Outgoing) -> Outgoing:
    """The same with its body packed, if that makes it smaller."""
    body = pack_body(outgoing.body)
    if len(body) >= len(outgoing.body):
        return outgoing
    return outgoing._replace(body=body, sys_flag=int(SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZLIB))


def prepare_batch(messages: Sequence[Message], message_ids: Sequence[str]) -> Outgoing:
    """Several messages of one topic as one request.  Bodies in a batch are not packed."""
    if not messages:
        raise MessageIllegal("a batch needs at least one message")
    prepared = [prepare(*pair) for pair in zip(messages, message_ids, strict=True)]
    topic = prepared[0].topic
    if topic.startswith(RETRY_PREFIX):
        raise MessageIllegal("batches cannot go to a retry topic")
    for message in messages:
        if message.topic != topic:
            raise MessageIllegal(f"a batch goes to one topic, not to {topic!r} and {message.topic!r}")
        if message.delay_level:
            raise MessageIllegal("a message with a delay_level cannot be part of a batch: send it alone")
        if message.deliver_at is not None or message.delay is not None:
            raise MessageIllegal("a message with a time of its own cannot be part of a batch; send it alone")
        for name in NOT_IN_A_BATCH:
            if name in message.properties:
                raise MessageIllegal(f"a message with the property {name} cannot be part of a batch")
    body = b"".join(map(_batch_item, prepared))
    if len(body) > BODY_BYTES_MAX:
        raise MessageIllegal(f"the batch has {len(body)} bytes; {BODY_BYTES_MAX} are allowed, so split it")
    return Outgoing(topic, tuple(message_ids), body, "", 0, 0, batch=True)


def _batch_item(one: Outgoing) -> bytes:
    properties = one.properties.encode()
    size = BATCH_ITEM_FIXED_BYTES + len(one.body) + len(properties)
    head = BATCH_ITEM.pack(size, 0, 0, one.flag, len(one.body))
    return b"".join((head, one.body, _U16.pack(len(properties)), properties))


def _body(message: object) -> bytes:
    """The body of what must be a message to somewhere, and not an empty one."""
    if not isinstance(message, Message):
        raise MessageIllegal(
            f"a message is a Message, as in Message('orders', b'...'), not {checks.described(message)}"
        )
    checks.topic(message.topic)
    body: object = message.body
    if not isinstance(body, bytes):
        if not isinstance(body, bytearray | memoryview):
            raise MessageIllegal(
                f"the body of a message is bytes, not {checks.described(body)}: encode it, as in text.encode()"
            )
        body = bytes(body)  # now, because the application may write into its own while this one is on its way
    if not body:
        raise MessageIllegal(f"the message to {message.topic!r} has no body")
    if len(body) > BODY_BYTES_MAX:
        raise MessageIllegal(
            f"the message to {message.topic!r} has {len(body)} bytes; {BODY_BYTES_MAX} are allowed"
        )
    return body


def _properties(message: Message, message_id: str) -> str:
    checks.number("flag", message.flag, INT32_MIN, INT32_MAX, MessageIllegal)
    properties = _pairs(message.properties)
    if message.tags is not None and message.tags != "":
        _give(properties, Property.TAGS, "tags", checks.tag(message.tags))
    elif Property.TAGS in properties:
        checks.tag(properties[Property.TAGS])
    if keys := _keys(message.keys):
        _give(properties, Property.KEYS, "keys", keys)
    if message.delay_level != 0:
        level = checks.number("delay_level", message.delay_level, 0, DELAY_LEVELS_MAX, MessageIllegal)
        _give(properties, Property.DELAY, "delay_level", str(level))
    if message.deliver_at is not None or message.delay is not None:
        if message.delay_level != 0:
            given = "delay" if message.delay is not None else "deliver_at"
            raise MessageIllegal(f"a message has a {given} or a delay_level, not both")
        _give(properties, *_time(message))
    properties[Property.UNIQUE_KEY] = message_id
    text = format_properties(properties)
    if text.isascii() and len(text) <= PROPERTIES_BYTES_MAX:
        return text
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise MessageIllegal(
            f"the tags, keys or properties of the message to {message.topic!r} are no text: {error}"
        ) from None
    if size > PROPERTIES_BYTES_MAX:
        raise MessageIllegal(
            f"the properties of the message to {message.topic!r} take {size} bytes;"
            f" {PROPERTIES_BYTES_MAX} are allowed"
        )
    return text


def _time(message: Message) -> tuple[str, str, str]:
    """When it is to be delivered: the property, the argument that it comes from, and the value."""
    if message.delay is None:
        moment_ms = checks.moment_ms("deliver_at", message.deliver_at, MessageIllegal)
        return Property.TIMER_DELIVER_MS, "deliver_at", str(moment_ms)
    if message.deliver_at is not None:
        raise MessageIllegal("a message has a deliver_at or a delay, not both")
    return Property.TIMER_DELAY_MS, "delay", str(checks.span_ms("delay", message.delay, MessageIllegal))


def _keys(keys: object) -> str:
    """One text, or several, as the property that holds them."""
    if isinstance(keys, str):
        return keys
    if not isinstance(keys, list | tuple) and (
        not isinstance(keys, Iterable) or isinstance(keys, bytes | bytearray | memoryview | Mapping)
    ):
        raise MessageIllegal(f"keys is a list of texts, as in ['42'], not {checks.described(keys)}")
    return " ".join([checks.key(key) for key in keys])


def _give(properties: dict[str, str], name: str, argument: str, value: str) -> None:
    """A property that has an argument of its own; who forwards a message gives the same twice."""
    if properties.get(name, value).split() != value.split():
        raise MessageIllegal(
            f"{argument} says {checks.described(value)}, and properties has another {name},"
            f" {checks.described(properties[name])}: give it once, as {argument}"
        )
    properties[name] = value


def _pairs(properties: object) -> dict[str, str]:
    if not isinstance(properties, dict | Mapping):  # a dict is known for one at once
        raise MessageIllegal(
            f"properties is a dict of texts, as in {{'colour': 'blue'}}, not {checks.described(properties)}"
        )
    for name, value in properties.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise MessageIllegal(
                f"properties are texts, name and value: {checks.described(name)} is given {checks.described(value)}"
            )
    return dict(properties)
