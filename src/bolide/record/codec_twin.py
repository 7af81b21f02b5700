"""The readable twin of `_codec.pyx`."""

import struct

from bolide.model.errors import MalformedRecord, MessageIllegal
from bolide.model.java_hash import java_hash
from bolide.model.limits import BATCH_MESSAGES_MAX
from bolide.model.message import Property, SysFlag
from bolide.model.pairs import NAME_END
from bolide.record.checksum_twin import holds, masked_crc32, seal_record
from bolide.record.layout import (
    BATCH_ITEM,
    BATCH_ITEM_FIXED_BYTES,
    BLANK_BYTES,
    HEAD,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    LENGTH_MAX,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_CHECKSUM_BYTES,
    TOPIC_V1_BYTES_MAX,
    open_record,
)

_STORE_TIMESTAMP = struct.Struct(">q")
_COUNTS = struct.Struct(">iqI")
_SIZE_AND_MAGIC = struct.Struct(">II")
_U16 = struct.Struct(">H")

TOO_MANY = "the batch has more than {} messages, which are too many to be stored together; send fewer at once"

_TAGS = (Property.TAGS + NAME_END).encode()

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
    if len(topic) > LENGTH_MAX or len(properties) > LENGTH_MAX:
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
    wide = len(topic) > TOPIC_V1_BYTES_MAX
    tail = b"".join(
        (
            born_host,
            _STORE_TIMESTAMP.pack(store_timestamp_ms),
            store_host,
            _COUNTS.pack(reconsume_times, prepared_offset, len(body)),
            body,
            _U16.pack(len(topic)) if wide else bytes((len(topic),)),
            topic,
            _U16.pack(len(properties)),
            properties,
        )
    )
    head = HEAD.pack(
        HEAD.size + len(tail),
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
    if at < 0 or end > len(data) or end - at < BLANK_BYTES:
        return None
    size, magic = _SIZE_AND_MAGIC.unpack_from(data, at)
    if magic == MAGIC_BLANK:
        return int(size) if size >= BLANK_BYTES else None
    try:
        record = open_record(data, at, end)
    except MalformedRecord:
        return None
    head = RecordHead()
    head.size = record.size
    head.topic = bytes(data[record.topic_at : record.topic_end])
    head.queue_id = record.queue_id
    head.queue_offset = record.queue_offset
    head.log_offset = record.log_offset
    head.sys_flag = record.sys_flag
    head.store_timestamp_ms = record.store_timestamp_ms
    head.body_at = record.body_at - at
    head.body_length = record.body_end - record.body_at
    head.properties_at = record.properties_at - at
    head.properties_length = record.end - record.properties_at
    if not holds(memoryview(data)[at : record.end], head.body_at, head.body_length, check):
        return None
    head.tags_code = tags_code_of(bytes(data[record.properties_at : record.end]))
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


def split_batch(body: bytes, count_max: int = BATCH_MESSAGES_MAX) -> list[tuple[int, bytes, bytes]]:
    """(flag, body, properties) of each message in a batch body; `MessageIllegal` when there are too many."""
    items: list[tuple[int, bytes, bytes]] = []
    at = 0
    while at < len(body):
        if len(items) == count_max:
            raise MessageIllegal(TOO_MANY.format(count_max))
        if len(body) - at < BATCH_ITEM_FIXED_BYTES:
            raise MessageIllegal("the batch ends in the middle of a message")
        size, _, _, flag, body_length = BATCH_ITEM.unpack_from(body, at)
        properties_at = at + BATCH_ITEM.size + body_length
        if not BATCH_ITEM_FIXED_BYTES + body_length <= size <= len(body) - at:
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({size} bytes)")
        (properties_length,) = _U16.unpack_from(body, properties_at)
        if size != BATCH_ITEM_FIXED_BYTES + body_length + properties_length:
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({size} bytes)")
        items.append(
            (
                flag,
                body[at + BATCH_ITEM.size : properties_at],
                body[properties_at + 2 : at + size],
            )
        )
        at += size
    return items
