"""Records byte by byte, at the positions of the format's description."""

import struct
import zlib
from typing import Any

import pytest

from bolide.model.errors import MessageIllegal
from bolide.record.codec import RecordHead, encode_record, inspect_record, split_batch, tags_code_of
from bolide.record.layout import BLANK_BYTES, FIXED_BYTES, MAGIC_BLANK, MAGIC_V1, MAGIC_V2

V4 = bytes((10, 1, 2, 3)) + struct.pack(">i", 10911)
V6 = bytes(range(16)) + struct.pack(">i", 10911)


def record(**changes: Any) -> bytes:
    parts: dict[str, Any] = {
        "topic": b"TopicTest",
        "body": b"hello",
        "properties": b"TAGS\x01TagA\x02",
        "queue_id": 3,
        "flag": -7,
        "queue_offset": 0x1122334455667788,
        "log_offset": 0x0102030405060708,
        "sys_flag": 0x1,
        "born_timestamp_ms": 1_700_000_000_001,
        "born_host": V4,
        "store_timestamp_ms": 1_700_000_000_002,
        "store_host": V4,
        "reconsume_times": 2,
        "prepared_offset": 99,
    }
    return encode_record(**parts | changes)


def head_of(data: bytes) -> RecordHead:
    head = inspect_record(data, 0, len(data), True)
    assert isinstance(head, RecordHead)
    return head


def test_every_field_is_at_its_place() -> None:
    data = record()
    assert struct.unpack_from(">IIIiiqqiq", data) == (
        len(data),
        0xDAA320A7,
        907060870,  # the checksum of "hello"
        3,
        -7,
        0x1122334455667788,
        0x0102030405060708,
        0x1,
        1_700_000_000_001,
    )
    assert data[48:56] == V4
    assert data[56:64] == struct.pack(">q", 1_700_000_000_002)
    assert data[64:72] == V4
    assert struct.unpack_from(">iqI", data, 72) == (2, 99, 5)
    assert data[88:93] == b"hello"
    assert data[93:103] == b"\x09TopicTest"
    assert data[103:] == b"\x00\x0aTAGS\x01TagA\x02"


def test_the_smallest_record_has_91_bytes() -> None:
    assert len(record(topic=b"", body=b"", properties=b"")) == FIXED_BYTES == 91
    assert len(record()) == 91 + 5 + 9 + 10


def test_an_empty_body_has_checksum_zero() -> None:
    assert record(body=b"")[8:12] == bytes(4)


def test_the_top_bit_of_the_checksum_is_cleared() -> None:
    body = next(b"%d" % n for n in range(100) if zlib.crc32(b"%d" % n) & 0x80000000)
    assert record(body=body)[8:12] == struct.pack(">I", zlib.crc32(body) & 0x7FFFFFFF)


@pytest.mark.parametrize("born", [V4, V6])
@pytest.mark.parametrize("store", [V4, V6])
def test_the_length_of_a_host_sets_its_bit_and_shifts_what_follows(born: bytes, store: bytes) -> None:
    data = record(born_host=born, store_host=store, sys_flag=0x31)
    (sys_flag,) = struct.unpack_from(">i", data, 36)
    assert bool(sys_flag & 0x10) == (born is V6)
    assert bool(sys_flag & 0x20) == (store is V6)
    assert len(data) == len(record()) + (len(born) - 8) + (len(store) - 8)
    head = head_of(data)
    assert head.store_timestamp_ms == 1_700_000_000_002
    assert data[head.body_at :][: head.body_length] == b"hello"
    assert head.topic == b"TopicTest"


@pytest.mark.parametrize(
    ("length", "magic", "width"),
    [(0, MAGIC_V1, 1), (127, MAGIC_V1, 1), (128, MAGIC_V2, 2), (255, MAGIC_V2, 2)],
)
def test_a_topic_of_more_than_127_bytes_makes_a_record_of_version_2(
    length: int, magic: int, width: int
) -> None:
    data = record(topic=b"t" * length)
    assert struct.unpack_from(">I", data, 4) == (magic,)
    assert data[93 : 93 + width] == length.to_bytes(width, "big")
    assert head_of(data).topic == b"t" * length
    assert len(data) == 90 + width + 5 + length + 10


@pytest.mark.parametrize(
    ("tag", "code"), [("TagA", 2598919), ("TagB", 2598920), ("*", 42), ("\U0001f600", 1772899), ("Aa", 2112)]
)
def test_the_codes_of_tags_are_java_s(tag: str, code: int) -> None:
    properties = f"TAGS\x01{tag}\x02".encode()
    assert tags_code_of(properties) == code
    assert head_of(record(properties=properties)).tags_code == code


def test_a_tag_may_have_a_negative_code() -> None:
    assert tags_code_of(b"TAGS\x01polygenelubricants\x02") == -(2**31)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        (b"", 0),
        (b"KEYS\x01a\x02", 0),
        (b"TAGS\x01\x02", 0),
        (b"TAGS", 0),
        (b"XTAGS\x01a\x02", 0),
        (b"TAGS\x01a", 97),
        (b"KEYS\x01TAGS\x02TAGS\x01a\x02", 97),
        (b"TAGS\x01a\x02TAGS\x01b\x02", 98),
        (b"TAGS\x01a\x02TAGS\x01\x02", 97),
        (b"TAGS\x01\xff\x02", 0xFFFD),
    ],
)
def test_the_last_tag_with_a_value_counts_as_in_a_java_map(properties: bytes, code: int) -> None:
    assert tags_code_of(properties) == code


def test_a_blank_record_says_how_much_it_skips() -> None:
    blank = struct.pack(">II", 3864, MAGIC_BLANK)
    assert inspect_record(blank, 0, 8, True) == 3864
    assert len(blank) == BLANK_BYTES


@pytest.mark.parametrize("magic", [0, 0xDAA320A8, 0xFFFFFFFF, MAGIC_V1 ^ 1])
def test_another_magic_is_no_record(magic: int) -> None:
    data = bytearray(record())
    struct.pack_into(">I", data, 4, magic)
    assert inspect_record(data, 0, len(data), False) is None


@pytest.mark.parametrize("change", [-1, 1, 100, 2**31, -200])
def test_a_size_that_disagrees_with_the_parts_is_no_record(change: int) -> None:
    data = bytearray(record() + bytes(200))
    struct.pack_into(">I", data, 0, (len(record()) + change) & 0xFFFFFFFF)
    assert inspect_record(data, 0, len(data), False) is None


def test_every_cut_of_a_record_is_no_record() -> None:
    data = record()
    for end in range(len(data)):
        assert inspect_record(data, 0, end, False) is None


def test_zeros_are_no_record() -> None:
    assert inspect_record(bytes(4096), 0, 4096, False) is None


def test_a_damaged_body_is_found_only_when_asked_for() -> None:
    data = bytearray(record())
    data[88] ^= 1
    assert inspect_record(data, 0, len(data), True) is None
    assert isinstance(inspect_record(data, 0, len(data), False), RecordHead)


def item(body: bytes, properties: bytes = b"", flag: int = 0) -> bytes:
    size = 22 + len(body) + len(properties)
    return (
        struct.pack(">IIIiI", size, 0, 0, flag, len(body))
        + body
        + struct.pack(">H", len(properties))
        + properties
    )


def test_a_batch_gives_flag_body_and_properties_of_each_message() -> None:
    body = item(b"one", b"K\x01a\x02", 5) + item(b"", b"") + item(b"three", b"", -1)
    assert split_batch(body) == [(5, b"one", b"K\x01a\x02"), (0, b"", b""), (-1, b"three", b"")]


@pytest.mark.parametrize(
    "body",
    [
        item(b"one")[:-1],
        item(b"one") + b"\x00",
        item(b"one") + bytes(22),
        struct.pack(">I", 21) + item(b"one")[4:],
        struct.pack(">I", 2**32 - 1) + item(b"one")[4:],
        item(b"one")[:16] + struct.pack(">I", 2**32 - 1) + item(b"one")[20:],
    ],
)
def test_a_malformed_batch_is_refused_with_words(body: bytes) -> None:
    with pytest.raises(MessageIllegal, match="batch"):
        split_batch(body)
