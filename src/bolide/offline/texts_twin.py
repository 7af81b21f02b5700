"""The readable twin of `_texts.pyx`: records looked over for what their frame and their body do not tell.

Properties should be pairs of name and value.  A record without a checksum of the whole, between records that have
one, has lost it: whoever writes them does so for every record.
"""

from bolide.record.checksum_twin import ABSENT, record_checksum
from bolide.record.codec_twin import RecordHead, inspect_record
from bolide.record.layout import CHECK_LENGTHS

FINE = 0
ODD_PROPERTIES = 1
LOST_CHECKSUM = 2
LAST_UNSEALED = 3
"""The same, but nothing follows that would tell whether checksums were just switched off."""


def check_texts(segment: memoryview, position: int, limit: int, sealed: bool) -> tuple[int, int, bool]:
    """Go over the records from `position` to `limit` that have a frame; `sealed`: the one before has a checksum.

    Returns where it stopped, why, and whether the last record has a checksum.  FINE at the limit and where no frame is.
    """
    if position < 0:
        raise ValueError("a position is not negative")
    while position < min(limit, len(segment)):
        head = inspect_record(segment, position, len(segment), CHECK_LENGTHS)
        if not isinstance(head, RecordHead):
            break
        behind = position + head.size
        has_checksum = _has_checksum(segment, position, behind)
        if sealed and not has_checksum:
            following = inspect_record(segment, behind, len(segment), CHECK_LENGTHS)
            if not isinstance(following, RecordHead):
                return position, LAST_UNSEALED, True
            if _has_checksum(segment, behind, behind + following.size):
                return position, LOST_CHECKSUM, True
        sealed = has_checksum
        first = position + head.properties_at
        if not are_pairs(bytes(segment[first:behind])):
            return position, ODD_PROPERTIES, sealed
        position = behind
    return position, FINE, sealed


def are_pairs(text: bytes) -> bool:
    return all(not pair or pair.find(1) > 0 for pair in text.split(b"\x02"))


def _has_checksum(segment: memoryview, start: int, end: int) -> bool:
    return record_checksum(bytes(segment[start:end])) != ABSENT
