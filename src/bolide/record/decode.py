"""From the records of a pull answer to messages.

Takes what the broker stored, byte for byte (`record/layout.py` has the fields): both versions, IPv4 and IPv6 hosts,
packed bodies.  Never guesses: bytes that are not whole records raise `MalformedRecord` with the place, and a body that
does not unpack comes as it is stored, with the reason.  The body's checksum is the store's business and is not
computed again here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from bolide.model.errors import MalformedRecord
from bolide.model.limits import BODY_UNPACKED_BYTES_MAX, PULL_COST_BYTES_MAX
from bolide.model.message import Property, StoredMessage, SysFlag, parse_properties
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.compress import unpack_body
from bolide.record.layout import OpenRecord, open_record
from bolide.record.message_id import format_host, format_offset_id

_COMPRESSED = int(SysFlag.COMPRESSED)

_host_text = lru_cache(maxsize=1024)(format_host)


def decode_messages(data: bytes | memoryview, broker_name: str) -> list[StoredMessage]:
    """All messages; together they unpack to no more than one alone may, and the bodies behind that stay packed."""
    messages: list[StoredMessage] = []
    left = int(BODY_UNPACKED_BYTES_MAX)
    for record in _records(data):
        message = _decode(data, record, broker_name, left)
        if message.sys_flag & _COMPRESSED and message.body_error is None:
            left -= len(message.body)
        messages.append(message)
    return messages


def each_message(data: bytes | memoryview, broker_name: str) -> Iterator[StoredMessage]:
    """The same one after the other, so that one at a time is in memory, and each may unpack to as much as it may."""
    for record in _records(data):
        yield _decode(data, record, broker_name)


@dataclass(frozen=True, slots=True)
class Decoded:
    """The first messages of an answer, and what kept the others from being among them."""

    messages: list[StoredMessage]
    next_offset: int | None = None
    """Of the first message that is left out; None when there is none, or it cannot be told."""
    broken: MalformedRecord | None = None
    """Why it cannot be read."""


def decode_some(
    data: bytes | memoryview, broker_name: str, cost_bytes_max: int = PULL_COST_BYTES_MAX
) -> Decoded:
    """As many messages as may be in memory at once, but one at least, and none behind bytes that are no record."""
    messages: list[StoredMessage] = []
    cost_bytes = 0
    try:
        for message in each_message(data, broker_name):
            cost_bytes += message.cost_bytes
            if messages and cost_bytes > cost_bytes_max:
                return Decoded(messages, message.queue_offset)
            messages.append(message)
    except MalformedRecord as error:
        return Decoded(messages, messages[-1].queue_offset + 1 if messages else None, error)
    return Decoded(messages)


def _records(data: bytes | memoryview) -> Iterator[OpenRecord]:
    at, end = 0, len(data)
    while at < end:
        record = open_record(data, at, end)
        yield record
        at = record.end


def _decode(
    data: bytes | memoryview,
    record: OpenRecord,
    broker_name: str,
    unpacked_bytes_max: int = BODY_UNPACKED_BYTES_MAX,
) -> StoredMessage:
    # All at once, because asking a tuple for eighteen names would be a good part of what a message costs.
    (
        _,
        queue_id,
        flag,
        queue_offset,
        log_offset,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        _,
        body_at,
        body_end,
        topic_at,
        topic_end,
        properties_at,
        end,
    ) = record
    body, body_error = bytes(data[body_at:body_end]), None
    if sys_flag & _COMPRESSED:
        try:
            body = unpack_body(body, sys_flag, unpacked_bytes_max)
        except MalformedRecord as error:
            body_error = str(error)
    # Some clients send text that is not UTF-8.  Java replaces what it cannot read, so one such message holds up nobody.
    topic = str(data[topic_at:topic_end], "utf-8", "replace")
    properties = parse_properties(str(data[properties_at:end], "utf-8", "replace"))
    offset_id = format_offset_id(store_host, LogOffset(log_offset))
    return StoredMessage(
        topic=topic,
        body=body,
        properties=properties,
        queue_id=queue_id,
        queue_offset=QueueOffset(queue_offset),
        log_offset=LogOffset(log_offset),
        broker_name=broker_name,
        sys_flag=sys_flag,
        flag=flag,
        born_timestamp_ms=born_ms,
        born_host=_host_text(born_host),
        store_timestamp_ms=store_ms,
        store_host=_host_text(store_host),
        reconsume_times=reconsume_times,
        message_id=properties.get(Property.UNIQUE_KEY, offset_id),
        offset_message_id=offset_id,
        body_error=body_error,
    )
