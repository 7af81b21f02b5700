"""From the records of a pull answer to messages.

Takes what the broker stored, byte for byte (`record/layout.py` has the fields): both versions, IPv4 and IPv6 hosts,
packed bodies.  Never guesses: bytes that are not whole records raise `MalformedRecord` with the place.  The body's
checksum is the store's business and is not computed again here.
"""

from functools import lru_cache

from bolide.model.errors import MalformedRecord
from bolide.model.message import Property, StoredMessage, parse_properties
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.compress import unpack_body
from bolide.record.layout import OpenRecord, broken_record, open_record
from bolide.record.message_id import format_host, format_offset_id

_host_text = lru_cache(maxsize=1024)(format_host)


def decode_messages(data: bytes | memoryview, broker_name: str) -> list[StoredMessage]:
    """All messages of a pull answer's body."""
    messages: list[StoredMessage] = []
    at, end = 0, len(data)
    while at < end:
        record = open_record(data, at, end)
        messages.append(_decode(data, at, record, broker_name))
        at = record.end
    return messages


def _decode(data: bytes | memoryview, at: int, record: OpenRecord, broker_name: str) -> StoredMessage:
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
    try:
        body = unpack_body(bytes(data[body_at:body_end]), sys_flag)
    except MalformedRecord as error:
        raise broken_record(at, queue_offset, str(error)) from error
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
    )
