"""The fields of a record, in order.  Open this beside a hexdump of a commit-log segment.

This is the one place that knows them; `layout.pxd` says the same to compiled code, and tests compare the two.

All numbers are big-endian.  Positions hold for IPv4 hosts; an IPv6 host is 12 bytes longer and shifts what follows.

    bytes  position  field
        4         0  total size of the record
        4         4  magic: MAGIC_V1, or MAGIC_V2 when the topic length has two bytes
        4         8  CRC-32 of the stored body, top bit cleared
        4        12  queue id
        4        16  flag: the application's, never interpreted
        8        20  queue offset: number of the message in its queue
        8        28  log offset: position of the record in the whole log
        4        36  sysFlag: `model.message.SysFlag`
        8        40  born timestamp: the producer's clock
     8/20        48  born host: address, then port in 4 bytes
        8        56  store timestamp: the broker's clock
     8/20        64  store host
        4        72  reconsume times
        8        76  log offset of the prepared message, for a committed transaction
        4        84  body length
        n        88  body
      1/2            topic length
        n            topic
        2            length of the properties
        n            properties: name 0x01 value 0x02 …

The properties may end with a checksum of the whole record (RocketMQ: enabledAppendPropCRC), always as its last pair:

    bytes  field
        8  __CRC32#
        1  0x01
       10  CRC-32 of all bytes of the record before these 20, top bit cleared: decimal, least significant digit first
        1  0x02

The body of a batch is a row of messages that have not become records yet:

    bytes  position  field of an element
        4         0  size of the element
        4         4  magic, not looked at
        4         8  CRC-32, not looked at
        4        12  flag
        4        16  body length
        n        20  body
        2            length of the properties
        n            properties

The end of a segment is filled by a blank record: its size (4) and MAGIC_BLANK (4); the bytes behind stay as they are.
"""

import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bolide.model.errors import MalformedRecord
from bolide.model.message import PROPERTIES_BYTES_MAX, Property, SysFlag
from bolide.model.pairs import NAME_END, PAIR_END

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB
MAGIC_BLANK = 0xCBD43194

# ---- before the hosts
SIZE_AT = 0
MAGIC_AT = 4
BODY_CRC_AT = 8
QUEUE_ID_AT = 12
FLAG_AT = 16
QUEUE_OFFSET_AT = 20
LOG_OFFSET_AT = 28
SYS_FLAG_AT = 36
BORN_TIMESTAMP_AT = 40
BORN_HOST_AT = 48
HEAD = struct.Struct(">IIIiiqqiq")
"""All of it, in order."""

# ---- the hosts and what lies between and behind them
HOST_V4_BYTES = 8
HOST_V6_BYTES = 20
STORE_TIMESTAMP_BYTES = 8
RECONSUME_TIMES_AFTER = 0  # from the end of the store host
PREPARED_OFFSET_AFTER = 4
BODY_LENGTH_AFTER = 12
BODY_AFTER = 16

# ---- behind the body
TOPIC_V1_BYTES_MAX = 127
"""A longer topic makes it a record of version 2."""
PROPERTIES_LENGTH_BYTES = 2
LENGTH_MAX = PROPERTIES_BYTES_MAX
"""Of topic and properties: Java reads their lengths with a sign."""

FIXED_BYTES = 91
"""Size of a record with IPv4 hosts, version 1, without body, topic and properties."""

BLANK_BYTES = 8
"""A record needs this much room behind it, so that a blank record always fits."""

# ---- an element of a batch
ITEM_SIZE_AT = 0
ITEM_FLAG_AT = 12
ITEM_BODY_LENGTH_AT = 16
ITEM_BODY_AT = 20
BATCH_ITEM_FIXED_BYTES = 22
BATCH_ITEM = struct.Struct(">IIIiI")
"""What is before its body."""

# ---- checksums
CRC_MASK = 0x7FFFFFFF

RECORD_CHECKSUM_NAME = (Property.RECORD_CHECKSUM + NAME_END).encode()
RECORD_CHECKSUM_NAME_BYTES = 9
RECORD_CHECKSUM_DIGITS = 10
RECORD_CHECKSUM_BYTES = 20
"""What the checksum of a whole record takes of its properties."""

CHECK_LENGTHS = 0
"""A record is believed when its lengths agree with each other and with the total."""
CHECK_SUMS = 1
"""... and its body and, where it has a checksum of its own, the whole of it are what was written."""
CHECK_SEALED = 2
"""... which every record must have (RocketMQ: forceVerifyPropCRC)."""

_BORN_HOST_V6 = int(SysFlag.BORN_HOST_V6)
_STORE_HOST_V6 = int(SysFlag.STORE_HOST_V6)
_V6_MASK = _BORN_HOST_V6 | _STORE_HOST_V6
_HOSTS = {  # born host, store time, store host, reconsume times, prepared offset, body length
    0: struct.Struct(">8sq8siqI"),
    _BORN_HOST_V6: struct.Struct(">20sq8siqI"),
    _STORE_HOST_V6: struct.Struct(">8sq20siqI"),
    _V6_MASK: struct.Struct(">20sq20siqI"),
}
_U16 = struct.Struct(">H")
_PAIR_END = PAIR_END.encode()


def record_size(
    topic_length: int,
    body_length: int,
    properties: bytes,
    born_host: bytes,
    store_host: bytes,
    *,
    sealed: bool,
) -> int:
    """How many bytes a record has."""
    size = FIXED_BYTES - 2 * HOST_V4_BYTES + len(born_host) + len(store_host)
    size += topic_length + (topic_length > TOPIC_V1_BYTES_MAX) + body_length + len(properties)
    if sealed:
        needs_separator = bool(properties) and not properties.endswith(_PAIR_END)
        size += needs_separator + RECORD_CHECKSUM_BYTES
    return size


class OpenRecord(NamedTuple):
    """A record's fields; topic, body and properties as places in the data that it was found in."""

    size: int
    queue_id: int
    flag: int
    queue_offset: int
    log_offset: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    store_timestamp_ms: int
    store_host: bytes
    reconsume_times: int
    prepared_offset: int
    body_at: int
    body_end: int
    topic_at: int
    topic_end: int
    properties_at: int
    end: int


_fill: Callable[[tuple[int | bytes, ...]], OpenRecord] = partial(tuple.__new__, OpenRecord)
"""In the order of the fields; every message that a client gets passes here, and the named way takes twice as long."""


def open_record(data: bytes | bytearray | memoryview, at: int, end: int) -> OpenRecord:
    """The record at `at` of data that goes to `end`; `MalformedRecord` when its lengths do not agree with that.

    Checksums are not looked at.
    """
    if end - at < FIXED_BYTES:
        raise MalformedRecord(f"{end - at} bytes at position {at} are too few for a record")
    size, magic, _, queue_id, flag, queue_offset, log_offset, sys_flag, born_ms = HEAD.unpack_from(data, at)
    if not FIXED_BYTES <= size <= end - at:
        raise MalformedRecord(f"the record at position {at} says it has {size} bytes of {end - at}")
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise MalformedRecord(f"no record at position {at}: magic {magic:#x}")
    limit = at + size
    hosts = _HOSTS[sys_flag & _V6_MASK]
    body_at = at + BORN_HOST_AT + hosts.size
    if body_at > limit:
        raise broken_record(at, queue_offset, "its hosts do not fit")
    born_host, store_ms, store_host, reconsume_times, prepared_offset, body_length = hosts.unpack_from(
        data, at + BORN_HOST_AT
    )
    body_end = body_at + body_length
    topic_at = body_end + (1 if magic == MAGIC_V1 else 2)
    if topic_at > limit:
        raise broken_record(at, queue_offset, f"a body of {body_length} bytes does not fit")
    topic_end = topic_at + int.from_bytes(data[body_end:topic_at], "big")
    properties_at = topic_end + PROPERTIES_LENGTH_BYTES
    if properties_at > limit:
        raise broken_record(at, queue_offset, "its topic does not fit")
    if properties_at + _U16.unpack_from(data, topic_end)[0] != limit:
        raise broken_record(at, queue_offset, "its properties do not end where it ends")
    return _fill(
        (
            size,
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
            prepared_offset,
            body_at,
            body_end,
            topic_at,
            topic_end,
            properties_at,
            limit,
        )
    )


def broken_record(at: int, queue_offset: int, why: str) -> MalformedRecord:
    return MalformedRecord(f"the record at position {at}, queue offset {queue_offset}: {why}")
