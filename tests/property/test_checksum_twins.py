"""Both implementations of a record's checksums give the same values and the same judgements.

Goal: a record that one writes the other believes, and damage that one finds the other finds.  Method: random bytes and
records, sealed by both, then changed; what is judged lies at the very end of its memory, so that a read beyond it
shows.
"""

import zlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.record.layout import CRC_MASK
from tests.property.test_record_twins import PARTS, inspected
from tests.property.twins import CHECKSUMS, CODECS, outcome

NAME = b"__CRC32#\x01"


def judged(record: bytes | bytearray) -> int:
    room = memoryview(bytearray(4096) + record)[4096:]
    compiled, twin = (checksum.record_checksum(room) for checksum in CHECKSUMS)
    assert compiled == twin
    return int(compiled)


def sealed(parts: dict[str, Any]) -> bytes:
    compiled, twin = (outcome(codec.encode_record, **parts, sealed=True) for codec in CODECS)
    assert compiled == twin
    assert compiled[0] == "gave", compiled
    return bytes(compiled[1])


def test_both_give_java_s_checksum_at_every_length_and_place() -> None:
    data = bytes((7 * number * number + number // 3) & 0xFF for number in range(1200))
    for start in (0, 1, 7):
        for length in (*range(300), 511, 512, 513, 1023, 1024, 1100):
            piece = data[start : start + length]
            for checksum in CHECKSUMS:
                assert checksum.masked_crc32(piece) == zlib.crc32(piece) & CRC_MASK


@given(st.binary(max_size=5000))
def test_both_give_java_s_checksum_of_any_bytes(data: bytes) -> None:
    for checksum in CHECKSUMS:
        assert checksum.masked_crc32(data) == zlib.crc32(data) & CRC_MASK


@given(PARTS)
def test_what_one_seals_the_other_believes(parts: dict[str, Any]) -> None:
    record = sealed(parts)
    assert judged(record) == 1
    head = inspected(record, 0, len(record), 2)
    assert record[head["properties_at"] :].startswith(parts["properties"])


@given(PARTS, st.data())
@settings(max_examples=300)
def test_no_change_of_a_few_bytes_passes(parts: dict[str, Any], data: st.DataObject) -> None:
    """A CRC finds every change within 32 bits in a row, and so does the shape of the checksum itself."""
    record = bytearray(sealed(parts))
    at = data.draw(st.integers(0, len(record) - 1) | st.integers(len(record) - 21, len(record) - 1))
    mask = data.draw(st.binary(min_size=1, max_size=3).filter(any))
    for number, bits in enumerate(mask[: len(record) - at]):
        record[at + number] ^= bits
    if any(mask[: len(record) - at]):
        assert judged(record) == 2
        assert not isinstance(inspected(record, 0, len(record), 1), dict)


@given(st.binary(min_size=91, max_size=140), st.binary(max_size=20), st.binary(max_size=20))
@settings(max_examples=200)
def test_any_end_is_judged_alike(front: bytes, name: bytes, digits: bytes) -> None:
    judged(front + name + digits)
    judged(front + NAME[: len(name)] + name[len(NAME) :] + digits)
    judged(front + NAME + digits)


@given(st.binary(max_size=150))
def test_both_seal_the_same_bytes_or_refuse(record: bytes) -> None:
    results = []
    for checksum in CHECKSUMS:
        room = bytearray(record)
        results.append((outcome(checksum.seal_record, room), bytes(room)))
    assert results[0] == results[1]
