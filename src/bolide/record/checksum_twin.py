"""The readable twin of `_checksum.pyx`: what a record says of its own bytes.

A record's body has a checksum that clients know.  The whole record may have one too, as its last property
(`layout.py` shows it); it covers what the other does not: queue, offsets, hosts, topic, properties.
"""

import re
import zlib

from bolide.record.layout import (
    BODY_CRC_AT,
    CHECK_LENGTHS,
    CHECK_SEALED,
    CRC_MASK,
    FIXED_BYTES,
    RECORD_CHECKSUM_BYTES,
    RECORD_CHECKSUM_DIGITS,
    RECORD_CHECKSUM_NAME,
)

ABSENT = 0
SOUND = 1
DAMAGED = 2

_Bytes = bytes | bytearray | memoryview
_DIGITS = re.compile(rb"[0-9]{%d}\x02" % RECORD_CHECKSUM_DIGITS)

_NAME_BYTES_ALIKE = 6
"""So many of the name's nine bytes tell that a checksum was here, whatever became of the rest."""


def masked_crc32(data: _Bytes) -> int:
    """The CRC-32 of some bytes as records carry it: without the top bit, which Java would take for a sign."""
    return zlib.crc32(data) & CRC_MASK


def seal_record(record: bytearray) -> None:
    """Fill in the last 20 bytes of a record; everything before them must be in place."""
    if len(record) < FIXED_BYTES + RECORD_CHECKSUM_BYTES:
        raise ValueError("no room for a checksum")
    value = masked_crc32(memoryview(record)[:-RECORD_CHECKSUM_BYTES])
    digits = f"{value:0{RECORD_CHECKSUM_DIGITS}d}"[::-1]
    record[-RECORD_CHECKSUM_BYTES:] = RECORD_CHECKSUM_NAME + digits.encode() + b"\x02"


def record_checksum(record: _Bytes) -> int:
    """ABSENT, SOUND or DAMAGED, as the last 20 bytes of a record say.

    Damage may have hit the checksum itself: most of its name, or the right digits under another name, give it away.
    """
    if len(record) < FIXED_BYTES + RECORD_CHECKSUM_BYTES:
        return ABSENT
    tail = bytes(record[-RECORD_CHECKSUM_BYTES:])
    name, digits = tail[: len(RECORD_CHECKSUM_NAME)], tail[len(RECORD_CHECKSUM_NAME) :]
    alike = sum(found == wanted for found, wanted in zip(name, RECORD_CHECKSUM_NAME, strict=True))
    if _DIGITS.fullmatch(digits):
        covered = memoryview(record)[:-RECORD_CHECKSUM_BYTES]
        if int(digits[-2::-1]) == masked_crc32(covered):
            return SOUND if alike == len(name) else DAMAGED
    return DAMAGED if alike >= _NAME_BYTES_ALIKE else ABSENT


def holds(record: _Bytes, body_at: int, body_length: int, check: int) -> bool:
    """Whether the checksums of record and body, as far as `check` asks for them, are right."""
    if check == CHECK_LENGTHS:
        return True
    state = record_checksum(record)
    if state == DAMAGED or (state == ABSENT and check == CHECK_SEALED):
        return False
    if body_length == 0 or state == SOUND:  # what covers the record covers the body
        return True
    stored = int.from_bytes(record[BODY_CRC_AT : BODY_CRC_AT + 4], "big")
    return masked_crc32(memoryview(record)[body_at : body_at + body_length]) == stored
