"""The bytes of an index file.  Open this beside a hexdump of a file in `index/`.

All numbers are big-endian.  A file has a header, slots and entries; by default 5,000,000 slots and 20,000,000
entries, 420,000,040 bytes, most of them never written.  `index_layout.pxd` says the same to compiled code.

    bytes  position  field of the header
        8         0  store time of the first message in the file
        8         8  store time of the last one
        8        16  log offset of the first message
        8        24  log offset of the last one
        4        32  slots in use
        4        36  number of the next entry; the first one has number 1

    slot s, 4 bytes at 40 + 4 s: number of the newest entry whose key hash is s modulo the number of slots; 0: none

    bytes  position  field of entry n, at 40 + 4 * slots + 20 n
        4         0  hash of the key, not negative
        8         4  log offset of the message
        4        12  seconds from the file's first store time to the message's
        4        16  number of the next older entry of the same slot; 0: none

A key is `topic#word`: the message's unique key, then each word of its KEYS (RocketMQ: all of them; here the first
INDEXED_WORDS_MAX), then `topic#T#tag`.  Its hash is the absolute value of Java's String.hashCode, and 0 where that has
none.  In a file that follows another one the seconds of the first entry count from the last message of the other (so
does RocketMQ's IndexFile.putKey).

Nobody reads entry 0.  While a file is written to, its 20 bytes say how much of the file is durable; in a file that was
closed they are zeros, as RocketMQ leaves them:

    bytes  position  field of the durable mark
        4         0  MARK_MAGIC; MARK_WHOLE_MAGIC when the whole file is durable, its slots too
        4         4  number of the entry behind the last durable one
        8         8  log offset of the first message that is not in the durable entries
        4        16  CRC-32 of the 16 bytes before
"""

import struct
import zlib
from typing import NamedTuple

from bolide.model.java_hash import java_hash

HEADER = struct.Struct(">qqqqii")
BEGIN_MS_AT = 0
END_MS_AT = 8
BEGIN_OFFSET_AT = 16
END_OFFSET_AT = 24
SLOTS_USED_AT = 32
NEXT_ENTRY_AT = 36
HEADER_BYTES = 40
SLOT_BYTES = 4
ENTRY = struct.Struct(">iqii")
HASH_AT = 0
LOG_OFFSET_AT = 4
SECONDS_AT = 12
OLDER_AT = 16
ENTRY_BYTES = 20

KEY_SEPARATOR = "#"
TAG_KIND = "T"

MARK_MAGIC = 0xB011DE01
MARK_WHOLE_MAGIC = 0xB011DE02
_MARK = struct.Struct(">IIq")
_CRC = struct.Struct(">I")

_INT_MAX = 0x7FFF_FFFF


class IndexHeader(NamedTuple):
    begin_ms: int
    end_ms: int
    begin_offset: int
    end_offset: int
    slots_used: int
    next_entry: int

    @classmethod
    def read(cls, file: memoryview) -> "IndexHeader":
        return cls(*HEADER.unpack_from(file))

    def write(self, file: memoryview) -> None:
        HEADER.pack_into(file, 0, *self)


class DurableMark(NamedTuple):
    """How much of an open file was durable when this was written."""

    next_entry: int
    next_offset: int
    whole: bool = False

    def encode(self) -> bytes:
        magic = MARK_WHOLE_MAGIC if self.whole else MARK_MAGIC
        head = _MARK.pack(magic, self.next_entry, self.next_offset)
        return head + _CRC.pack(zlib.crc32(head))

    @classmethod
    def decode(cls, data: bytes) -> "DurableMark | None":
        """None where there is no mark, or not a whole one."""
        magic, next_entry, next_offset = _MARK.unpack_from(data)
        crc = zlib.crc32(data[: _MARK.size])
        if magic not in (MARK_MAGIC, MARK_WHOLE_MAGIC) or _CRC.unpack_from(data, _MARK.size) != (crc,):
            return None
        return cls(next_entry, next_offset, magic == MARK_WHOLE_MAGIC)


def file_bytes(slots: int, entries: int) -> int:
    return HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * entries


def slot_at(number: int) -> int:
    return HEADER_BYTES + SLOT_BYTES * number


def entry_at(slots: int, number: int) -> int:
    return slot_at(slots) + ENTRY_BYTES * number


def index_key(topic: str, word: str) -> str:
    """The text under which a message is found by its unique key or one of its keys."""
    return topic + KEY_SEPARATOR + word


def tag_key(topic: str, tag: str) -> str:
    """The text under which a message is found by its tag."""
    return KEY_SEPARATOR.join((topic, TAG_KIND, tag))


def key_hash(key: str) -> int:
    """What entries hold of a key.

    >>> key_hash("observed#Aa") == key_hash("observed#BB")
    True
    """
    value = abs(java_hash(key))
    return value if value <= _INT_MAX else 0
