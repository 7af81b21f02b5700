"""From a message to what a send request carries: checked, with its id, its body packed.

Never sends.  The limits are the original client's: they are checked here so that the error names the message and not
an answer of a distant broker.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
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
    is_true,
)
from bolide.model.names import RETRY_PREFIX
from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.model.properties import NOT_IN_A_BATCH
from bolide.record.compress import pack_body
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

REPLY = "reply"
"""The type of a message that answers a request (RocketMQ: REPLY_MESSAGE_FLAG)."""

_U16 = struct.Struct(">H")
NO_PAIRS: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True)
class Reply(Message):
    """A message that answers a request: `client/requests.py` makes it."""

    broker_name: str = ""
    """Where the request was, so that who has sent it is connected there."""


class Outgoing(NamedTuple):
    """One message as a send request carries it, or a batch of them."""

    topic: str
    message_ids: tuple[str, ...]
    body: bytes
    properties: str
    flag: int
    sys_flag: int
    batch: bool = False
    sharding_key: str | None = None
    """What chooses its queue, if nothing else does."""
    is_reply: bool = False
    near: str | None = None
    """The broker that had better get it first: who asked is connected there."""


def prepare(message: Message, message_id: str, own: Mapping[str, str] = NO_PAIRS) -> Outgoing:
    """One message, not packed yet; with properties of the client's own."""
    body = _body(message)
    properties = _properties(message, message_id, own)
    is_reply = Property.REPLY_TO_CLIENT in properties and properties.get(Property.MESSAGE_TYPE) == REPLY
    return Outgoing(
        message.topic,
        (message_id,),
        body,
        _text_of(properties, message.topic),
        message.flag,
        0,
        sharding_key=properties.get(Property.SHARDING_KEY) or None,
        is_reply=is_reply,
        near=message.broker_name if isinstance(message, Reply) else None,
    )


def packed(outgoing: Outgoing, kind: SysFlag) -> Outgoing:
    """The same with its body packed in one of the three ways, if that makes it smaller."""
    body = pack_body(outgoing.body, kind)
    if len(body) >= len(outgoing.body):
        return outgoing
    return outgoing._replace(body=body, sys_flag=outgoing.sys_flag | SysFlag.COMPRESSED | kind)


def prepare_batch(messages: Sequence[Message], message_ids: Sequence[str]) -> list[Outgoing]:
    """Several messages of one topic as one request, or as several where they do not fit into one.

    Bodies in a batch are not packed.
    """
    if not messages:
        raise MessageIllegal("a batch needs at least one message")
    prepared = [prepare(*pair) for pair in zip(messages, message_ids, strict=True)]
    topic, key = prepared[0].topic, prepared[0].sharding_key
    for message, one in zip(messages, prepared, strict=True):
        if one.topic != topic:
            raise MessageIllegal(f"a batch goes to one topic, not to {topic!r} and {one.topic!r}")
        if one.sharding_key != key:
            raise MessageIllegal(
                "a batch goes to one queue, and messages with different sharding keys to different ones:"
                " send them with send_many"
            )
        if reason := alone_because(message, one):
            raise MessageIllegal(f"{reason} cannot be part of a batch: send it alone")
    return _parts(prepared)


def _parts(prepared: Sequence[Outgoing]) -> list[Outgoing]:
    """Batches as large as a request may be; what is too large for one with its frame goes as it is."""
    parts: list[Outgoing] = []
    batch: list[Outgoing] = []
    items: list[bytes] = []
    size = 0
    for one in prepared:
        item = batch_item(one)
        if items and size + len(item) > BODY_BYTES_MAX:
            parts.append(batch_of(batch, items))
            batch, items, size = [], [], 0
        if len(item) > BODY_BYTES_MAX:
            parts.append(one)
        else:
            batch.append(one)
            items.append(item)
            size += len(item)
    if items:
        parts.append(batch_of(batch, items))
    return parts


def batch_of(messages: Sequence[Outgoing], items: Sequence[bytes]) -> Outgoing:
    """One request of several messages of one topic, each given as itself and as an item of the batch."""
    ids = tuple(one.message_ids[0] for one in messages)
    first = messages[0]
    return Outgoing(first.topic, ids, b"".join(items), "", 0, 0, batch=True, sharding_key=first.sharding_key)


def alone_because(message: Message, outgoing: Outgoing) -> str | None:
    """What keeps a message out of batches, as the beginning of a sentence; None for most."""
    if message.topic.startswith(RETRY_PREFIX):
        return "a message to a retry topic"
    if message.delay_level:
        return "a message with a delay_level"
    if message.deliver_at is not None or message.delay is not None:
        return "a message with a time of its own"
    if outgoing.is_reply:
        return "a reply"
    for name in NOT_IN_A_BATCH:
        if name in message.properties and not (
            name == Property.TRANSACTION_PREPARED and _was_stored(message)
        ):
            return f"a message with the property {name}"
    return None


def _was_stored(message: Message) -> bool:
    """Whether it has the properties of one that was consumed, and is sent on."""
    return Property.UNIQUE_KEY in message.properties


def batch_item(one: Outgoing) -> bytes:
    """A message as an item of a batch."""
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


def _properties(message: Message, message_id: str, own: Mapping[str, str]) -> dict[str, str]:
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
    if message.sharding_key is not None:
        _give(properties, Property.SHARDING_KEY, "sharding_key", checks.sharding_key(message.sharding_key))
    if Property.TRANSACTION_PREPARED in properties and Property.TRANSACTION_PREPARED not in own:
        _end_transaction(properties)
    properties.update(own)
    properties[Property.UNIQUE_KEY] = message_id
    return properties


def _end_transaction(properties: dict[str, str]) -> None:
    """A message that is sent in none has no mark of one: nobody would ever end it, and no consumer get it.

    Brokers leave the mark in what was committed.  So who forwards a message gives it without meaning it, and with the
    unique key of what was stored.
    """
    if Property.UNIQUE_KEY in properties:
        del properties[Property.TRANSACTION_PREPARED]
    elif is_true(properties[Property.TRANSACTION_PREPARED]):
        raise MessageIllegal(
            f"the property {Property.TRANSACTION_PREPARED} makes a message wait for the end of a transaction, and this"
            " one has none: send it with send_in_transaction of a TransactionProducer"
        )


def _text_of(properties: Mapping[str, str], topic: str) -> str:
    """As a request carries them; not more than it may carry."""
    text = format_properties(properties)
    if text.isascii() and len(text) <= PROPERTIES_BYTES_MAX:
        return text
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise MessageIllegal(
            f"the tags, keys or properties of the message to {topic!r} are no text: {error}"
        ) from None
    if size > PROPERTIES_BYTES_MAX:
        raise MessageIllegal(
            f"the properties of the message to {topic!r} take {size} bytes;"
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
        if not name.strip():
            raise MessageIllegal(f"a property has a name, and {checks.described(value)} is given none")
    return dict(properties)
