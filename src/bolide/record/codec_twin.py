"""The readable twin of `_codec.pyx`."""

import struct

from bolide.model.errors import MessageIllegal
from bolide.model.java_hash import java_hash
from bolide.model.message import SysFlag
from bolide.record.checksum_twin import holds, masked_crc32, seal_record
from bolide.record.layout import (
    BATCH_ITEM_FIXED_BYTES,
    FIXED_BYTES,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_CHECKSUM_BYTES,
)

_HEAD = struct.Struct(">IIIiiqqiq")
_STORE_TIMESTAMP = struct.Struct(">q")
_RECONSUME = struct.Struct(">iqI")
_U32 = struct.Struct(">I")
_U16 = struct.Struct(">H")
_BATCH_ITEM = struct.Struct(">IIIiI")

_TAGS = b"TAGS\x01"
_TOPIC_V1_BYTES_MAX = 127
_LENGTH_MAX = 0x7FFF

# Plain numbers: arithmetic with flags would drop the bits that no flag names.
_BORN_HOST_V6 = int(SysFlag.BORN_HOST_V6)
_STORE_HOST_V6 = int(SysFlag.STORE_HOST_V6)


def encode_record(
    *,
    topic: bytes,
    body: bytes,
    properties: bytes,
    queue_id: int,
    flag: int,
    queue_offset: int,
    log_offset: int,
    sys_flag: int,
    born_timestamp_ms: int,
    born_host: bytes,
    store_timestamp_ms: int,
    store_host: bytes,
    reconsume_times: int,
    prepared_offset: int,
    sealed: bool = False,
) -> bytes:
    """One record.  The length of a host decides its sysFlag bit, the length of the topic the version.

    A sealed one has a checksum of the whole behind its properties.
    """
    if sealed:
        end = b"\x02" if properties and not properties.endswith(b"\x02") else b""
        properties += end + bytes(RECORD_CHECKSUM_BYTES)
    if len(topic) > _LENGTH_MAX or len(properties) > _LENGTH_MAX:
        raise ValueError("the topic or the properties are too long for a record")
    if not {len(born_host), len(store_host)} <= {HOST_V4_BYTES, HOST_V6_BYTES}:
        raise ValueError("a host has 8 or 20 bytes")
    for value in (queue_id, flag, sys_flag, reconsume_times):
        if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
            raise OverflowError(f"{value} is not a 32-bit number")
    sys_flag &= ~(_BORN_HOST_V6 | _STORE_HOST_V6)
    if len(born_host) == HOST_V6_BYTES:
        sys_flag |= _BORN_HOST_V6
    if len(store_host) == HOST_V6_BYTES:
        sys_flag |= _STORE_HOST_V6
    wide = len(topic) > _TOPIC_V1_BYTES_MAX
    tail = b"".join(
        (
            born_host,
            _STORE_TIMESTAMP.pack(store_timestamp_ms),
            store_host,
            _RECONSUME.pack(reconsume_times, prepared_offset, len(body)),
            body,
            _U16.pack(len(topic)) if wide else bytes((len(topic),)),
            topic,
            _U16.pack(len(properties)),
            properties,
        )
    )
    head = _HEAD.pack(
        _HEAD.size + len(tail),
        MAGIC_V2 if wide else MAGIC_V1,
        masked_crc32(body),
        queue_id,
        flag,
        queue_offset,
        log_offset,
        sys_flag,
        born_timestamp_ms,
    )
    if not sealed:
        return head + tail
    record = bytearray(head + tail)
    seal_record(record)
    return bytes(record)


class RecordHead:
    """What dispatch and recovery need to know of a record."""

    __slots__ = (
        "body_at",
        "body_length",
        "log_offset",
        "properties_at",
        "properties_length",
        "queue_id",
        "queue_offset",
        "size",
        "store_timestamp_ms",
        "sys_flag",
        "tags_code",
        "topic",
    )

    def __init__(self) -> None:
        self.size = 0
        self.topic = b""
        self.queue_id = 0
        self.queue_offset = 0
        self.log_offset = 0
        self.sys_flag = 0
        self.store_timestamp_ms = 0
        self.tags_code = 0
        self.body_at = 0
        self.body_length = 0
        self.properties_at = 0
        self.properties_length = 0


def inspect_record(
    data: bytes | bytearray | memoryview, at: int, end: int, check: int
) -> RecordHead | int | None:
    """The record at `at`; for a blank record its size; None when there is no sound record.

    Lengths must agree with each other and with the total; `check` says which checksums must (see `layout.py`).
    """
    if at < 0 or end > len(data) or end - at < 8:
        return None
    size, magic = struct.unpack_from(">II", data, at)
    if magic == MAGIC_BLANK:
        return size if size >= 8 else None
    if magic not in (MAGIC_V1, MAGIC_V2) or not FIXED_BYTES <= size <= end - at:
        return None
    head = RecordHead()
    head.size = size
    _, _, _, head.queue_id, _, head.queue_offset, head.log_offset, head.sys_flag, _ = _HEAD.unpack_from(
        data, at
    )
    limit = at + size
    cursor = at + _HEAD.size
    cursor += HOST_V6_BYTES if head.sys_flag & _BORN_HOST_V6 else HOST_V4_BYTES
    store_time_at = cursor
    cursor += 8 + (HOST_V6_BYTES if head.sys_flag & _STORE_HOST_V6 else HOST_V4_BYTES) + 12
    if cursor + 4 > limit:
        return None
    (head.store_timestamp_ms,) = _STORE_TIMESTAMP.unpack_from(data, store_time_at)
    (head.body_length,) = _U32.unpack_from(data, cursor)
    head.body_at = cursor + 4 - at
    cursor += 4 + head.body_length
    width = 1 if magic == MAGIC_V1 else 2
    if cursor + width > limit:
        return None
    topic_length = data[cursor] if width == 1 else _U16.unpack_from(data, cursor)[0]
    cursor += width
    if cursor + topic_length + 2 > limit:
        return None
    head.topic = bytes(data[cursor : cursor + topic_length])
    cursor += topic_length
    (head.properties_length,) = _U16.unpack_from(data, cursor)
    head.properties_at = cursor + 2 - at
    if cursor + 2 + head.properties_length != limit:
        return None
    if not holds(memoryview(data)[at:limit], head.body_at, head.body_length, check):
        return None
    head.tags_code = tags_code_of(bytes(data[cursor + 2 : limit]))
    return head


def tags_code_of(properties: bytes) -> int:
    """Java's hash of the TAGS property; 0 without one.

    As everywhere, the last of several pairs of one name counts, and one without a value is none.
    """
    tags = b""
    for pair in properties.split(b"\x02"):
        if pair.startswith(_TAGS):
            tags = pair[len(_TAGS) :] or tags
    return java_hash(tags.decode("utf-8", "replace"))


def split_batch(body: bytes) -> list[tuple[int, bytes, bytes]]:
    """(flag, body, properties) of each message in a batch body."""
    items: list[tuple[int, bytes, bytes]] = []
    at = 0
    while at < len(body):
        if len(body) - at < BATCH_ITEM_FIXED_BYTES:
            raise MessageIllegal("the batch ends in the middle of a message")
        size, _, _, flag, body_length = _BATCH_ITEM.unpack_from(body, at)
        properties_at = at + _BATCH_ITEM.size + body_length
        if not BATCH_ITEM_FIXED_BYTES + body_length <= size <= len(body) - at:
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({size} bytes)")
        (properties_length,) = _U16.unpack_from(body, properties_at)
        if size != BATCH_ITEM_FIXED_BYTES + body_length + properties_length:
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({size} bytes)")
        items.append(
            (
                flag,
                body[at + _BATCH_ITEM.size : properties_at],
                body[properties_at + 2 : at + size],
            )
        )
        at += size
    return items
