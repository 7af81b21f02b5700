"""The checksum of a whole record: where it is, what it covers, and that no damage passes it."""

import zlib
from pathlib import Path
from typing import Any

import pytest

from bolide.record.checksum import ABSENT, DAMAGED, SOUND, record_checksum, seal_record
from bolide.record.codec import RecordHead, encode_record, inspect_record
from bolide.record.decode import decode_messages
from bolide.record.layout import CHECK_LENGTHS, CHECK_SEALED, CHECK_SUMS, RECORD_CHECKSUM_BYTES

LOG = (Path(__file__).parents[2] / "golden" / "sealed-5.5.0" / "commitlog").read_bytes()
HOST = bytes((10, 1, 2, 3, 0, 0, 42, 159))
TAGGED = b"KEYS\x01k\x02TAGS\x01TagA\x02"


def record(**changes: Any) -> bytes:
    parts: dict[str, Any] = {
        "topic": b"TopicTest",
        "body": b"hello",
        "properties": TAGGED,
        "queue_id": 3,
        "flag": -7,
        "queue_offset": 12,
        "log_offset": 3456,
        "sys_flag": 0,
        "born_timestamp_ms": 1_700_000_000_001,
        "born_host": HOST,
        "store_timestamp_ms": 1_700_000_000_002,
        "store_host": HOST,
        "reconsume_times": 2,
        "prepared_offset": 99,
        "sealed": True,
    }
    return encode_record(**parts | changes)


def originals() -> list[tuple[RecordHead, bytes]]:
    """The original's records, with what was found out about each."""
    found, at = [], 0
    while at < len(LOG):
        head = inspect_record(LOG, at, len(LOG), CHECK_SEALED)
        assert isinstance(head, RecordHead)
        found.append((head, LOG[at : at + head.size]))
        at += head.size
    return found


def test_the_original_s_records_hold() -> None:
    records = originals()
    assert len(records) == 13
    assert all(record_checksum(one) == SOUND for _, one in records)


def test_we_write_the_original_s_bytes() -> None:
    """All but one: the original sets no separator before the checksum when the client left the last one out."""
    unlike = []
    for head, one in originals():
        text = one[head.properties_at : -RECORD_CHECKSUM_BYTES]
        ours = record(
            topic=head.topic,
            body=one[head.body_at :][: head.body_length],
            properties=text,
            queue_id=head.queue_id,
            flag=int.from_bytes(one[16:20], "big", signed=True),
            queue_offset=head.queue_offset,
            log_offset=head.log_offset,
            sys_flag=head.sys_flag,
            born_timestamp_ms=int.from_bytes(one[40:48], "big"),
            born_host=one[48:56],
            store_timestamp_ms=head.store_timestamp_ms,
            store_host=one[64:72],
            reconsume_times=int.from_bytes(one[72:76], "big"),
            prepared_offset=int.from_bytes(one[76:84], "big"),
        )
        if ours != one:
            unlike.append(text)
    assert [text[-7:] for text in unlike] == [b"\x02TAGS\x01b"]


def test_it_is_the_last_pair_with_its_digits_reversed() -> None:
    data = record()
    plain = record(sealed=False)
    assert len(data) == len(plain) + 20
    covered, tail = data[:-20], data[-20:]
    digits = f"{zlib.crc32(covered) & 0x7FFFFFFF:010d}"[::-1]
    assert tail == f"__CRC32#\x01{digits}\x02".encode()
    (message,) = decode_messages(data, "broker-a")
    assert message.properties["__CRC32#"] == digits
    assert message.tags == "TagA"


@pytest.mark.parametrize(("properties", "stored"), [(b"", b""), (b"K\x01v", b"K\x01v\x02"), (TAGGED, TAGGED)])
def test_it_never_runs_into_the_pair_before_it(properties: bytes, stored: bytes) -> None:
    data = record(properties=properties)
    head = inspect_record(data, 0, len(data), CHECK_SEALED)
    assert isinstance(head, RecordHead)
    assert data[head.properties_at : -20] == stored


def test_it_counts_for_the_limit_of_the_properties() -> None:
    longest = b"K\x01" + b"v" * (32767 - 20 - 3) + b"\x02"
    assert record_checksum(record(properties=longest)) == SOUND
    with pytest.raises(ValueError, match="too long"):
        record(properties=b"k" + longest)


def test_every_flipped_bit_of_a_record_is_found() -> None:
    data = record()
    for at in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            assert not isinstance(inspect_record(damaged, 0, len(damaged), CHECK_SUMS), RecordHead), (at, bit)


def test_damage_is_found_only_when_asked_for() -> None:
    damaged = bytearray(record())
    damaged[19] ^= 1  # the flag: covered by nothing else
    assert isinstance(inspect_record(damaged, 0, len(damaged), CHECK_LENGTHS), RecordHead)
    assert inspect_record(damaged, 0, len(damaged), CHECK_SUMS) is None


def test_a_record_without_one_holds_unless_all_must_have_it() -> None:
    plain = record(sealed=False)
    assert record_checksum(plain) == ABSENT
    assert isinstance(inspect_record(plain, 0, len(plain), CHECK_SUMS), RecordHead)
    assert inspect_record(plain, 0, len(plain), CHECK_SEALED) is None


@pytest.mark.parametrize("count", range(1, 10))
def test_the_name_may_be_lost_as_long_as_the_digits_are_right(count: int) -> None:
    data = record()
    damaged = data[:-20] + bytes(count) + data[-20 + count :]
    assert record_checksum(damaged) == DAMAGED


def test_the_digits_may_be_lost_as_long_as_the_name_is_there() -> None:
    data = record()
    assert record_checksum(data[:-11] + bytes(11)) == DAMAGED
    assert record_checksum(data[:-10] + b"x" * 10) == DAMAGED


@pytest.mark.parametrize(
    "properties",
    [
        b"TIME\x011700000000001\x02",
        b"__CRC\x011234567890\x02",
        b"KEYS\x01__CRC32#\x02",
        b"__CRC32#\x01123\x02",
        b"__CRC32#\x011234567890\x02TAGS\x01a\x02",
    ],
)
def test_properties_that_only_remind_of_it_are_none(properties: bytes) -> None:
    assert record_checksum(record(properties=properties, sealed=False)) == ABSENT


def test_what_is_too_small_has_none() -> None:
    assert record_checksum(b"") == ABSENT
    assert record_checksum(b"__CRC32#\x010000000000\x02") == ABSENT
    with pytest.raises(ValueError, match="no room"):
        seal_record(bytearray(110))


def test_name_and_digits_may_both_be_hit() -> None:
    data = record()
    for at, length in ((-13, 4), (-12, 3), (-12, 12), (-14, 14)):
        damaged = bytearray(data)
        for number in range(at, at + length):
            damaged[number] ^= 0xFF
        assert record_checksum(damaged) == DAMAGED
