"""From the records of a pull answer to messages.

Takes what the broker stored, byte for byte (`record/layout.py` has the fields): both versions, IPv4 and IPv6 hosts,
packed bodies.  Never guesses: bytes that are not whole records raise `MalformedRecord` with the place.  The body's
checksum is the store's business and is not computed again here.
"""

import struct
from collections.abc import Iterator
from functools import lru_cache

from bolide.model.errors import MalformedRecord
from bolide.model.message import Property, StoredMessage, SysFlag, parse_properties
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.compress import unpack_body
from bolide.record.layout import FIXED_BYTES, MAGIC_V1, MAGIC_V2
from bolide.record.message_id import format_host, format_offset_id

_HEAD = struct.Struct(">IIIiiqqiq")
_HOSTS_V4 = struct.Struct(">8sq8siqI")  # born host, store time, store host, reconsume, prepared, body length
_HOSTS = {
    0: _HOSTS_V4,
    SysFlag.BORN_HOST_V6: struct.Struct(">20sq8siqI"),
    SysFlag.STORE_HOST_V6: struct.Struct(">8sq20siqI"),
    SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6: struct.Struct(">20sq20siqI"),
}
_V6_MASK = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6)
_U16 = struct.Struct(">H")

_host_text = lru_cache(maxsize=1024)(format_host)


def decode_messages(data: bytes | memoryview, broker_name: str) -> list[StoredMessage]:
    """All messages of a pull answer's body."""
    return [_decode(data, at, size, broker_name) for at, size in _walk(data)]


def _walk(data: bytes | memoryview) -> Iterator[tuple[int, int]]:
    """Position and size of each record."""
    at, end = 0, len(data)
    while at < end:
        if end - at < FIXED_BYTES:
            raise MalformedRecord(f"{end - at} bytes at position {at} are too few for a record")
        size = int.from_bytes(data[at : at + 4], "big")
        if not FIXED_BYTES <= size <= end - at:
            raise MalformedRecord(f"the record at position {at} says it has {size} bytes of {end - at}")
        yield at, size
        at += size


def _decode(data: bytes | memoryview, at: int, size: int, broker_name: str) -> StoredMessage:
    _, magic, _, queue_id, flag, queue_offset, log_offset, sys_flag, born_ms = _HEAD.unpack_from(data, at)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise MalformedRecord(f"no record at position {at}: magic {magic:#x}")
    limit = at + size
    hosts = _HOSTS[sys_flag & _V6_MASK]
    cursor = at + _HEAD.size + hosts.size
    if cursor > limit:
        raise _broken(at, queue_offset, "its hosts do not fit")
    born_host, store_ms, store_host, reconsume_times, _, body_length = hosts.unpack_from(
        data, at + _HEAD.size
    )
    body_end = cursor + body_length
    width = 1 if magic == MAGIC_V1 else 2
    if body_end + width > limit:
        raise _broken(at, queue_offset, f"a body of {body_length} bytes does not fit")
    topic_at = body_end + width
    topic_end = topic_at + int.from_bytes(data[body_end:topic_at], "big")
    if topic_end + 2 > limit:
        raise _broken(at, queue_offset, "its topic does not fit")
    if topic_end + 2 + _U16.unpack_from(data, topic_end)[0] != limit:
        raise _broken(at, queue_offset, "its properties do not end where it ends")
    try:
        body = unpack_body(bytes(data[cursor:body_end]), sys_flag)
    except MalformedRecord as error:
        raise _broken(at, queue_offset, str(error)) from error
    # Some clients send text that is not UTF-8.  Java replaces what it cannot read, so one such message holds up nobody.
    topic = str(data[topic_at:topic_end], "utf-8", "replace")
    properties = parse_properties(str(data[topic_end + 2 : limit], "utf-8", "replace"))
    offset_id = format_offset_id(store_host, log_offset)
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


def _broken(at: int, queue_offset: int, why: str) -> MalformedRecord:
    return MalformedRecord(f"the record at position {at}, queue offset {queue_offset}: {why}")
