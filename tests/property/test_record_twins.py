"""Both implementations of the record codec give the same bytes, the same values and the same refusals.

Goal: a record means one thing.  Method: random parts, random records and mutations of them go through both; what was
encoded is also found again.  Mutated records lie at the very end of their memory, so that a read beyond it shows.
"""

import struct
import zlib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model.java_hash import java_hash
from bolide.record.layout import CRC_MASK, FIXED_BYTES, MAGIC_BLANK, MAGIC_V1
from tests.property.twins import CODECS, outcome

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
HOSTS = st.binary(min_size=8, max_size=8) | st.binary(min_size=20, max_size=20)
PAIRS = st.lists(
    st.tuples(
        st.sampled_from([b"TAGS", b"TAG", b"TAGSX", b"KEYS", b""]),
        st.sampled_from([b"\x01", b"\x01", b"\x01", b""]),
        st.binary(max_size=6) | st.text(max_size=6).map(str.encode),
        st.sampled_from([b"\x02", b"\x02", b"\x02", b""]),
    ).map(b"".join),
    max_size=4,
).map(b"".join)
PARTS = st.fixed_dictionaries(
    {
        "topic": st.binary(max_size=40) | st.sampled_from([b"t" * 127, b"t" * 128, b"t" * 255]),
        "body": st.binary(max_size=80),
        "properties": PAIRS,
        "queue_id": INT32,
        "flag": INT32,
        "queue_offset": INT64,
        "log_offset": INT64,
        "sys_flag": INT32,
        "born_timestamp_ms": INT64,
        "born_host": HOSTS,
        "store_timestamp_ms": INT64,
        "store_host": HOSTS,
        "reconsume_times": INT32,
        "prepared_offset": INT64,
    }
)
HEAD_FIELDS = (
    *("size", "topic", "queue_id", "queue_offset", "log_offset", "sys_flag", "store_timestamp_ms"),
    *("tags_code", "body_at", "body_length", "properties_at", "properties_length"),
)


def encoded(parts: dict[str, Any]) -> bytes:
    compiled, twin = (outcome(codec.encode_record, **parts) for codec in CODECS)
    assert compiled == twin
    assert compiled[0] == "gave", compiled
    record: bytes = compiled[1]
    return record


def inspected(data: bytes | bytearray | memoryview, at: int, end: int, check: int) -> Any:
    """What both find: a dictionary for a record, a number for a blank one, or None."""
    found = []
    for codec in CODECS:
        head = codec.inspect_record(data, at, end, check)
        found.append({name: getattr(head, name) for name in HEAD_FIELDS} if hasattr(head, "size") else head)
    assert found[0] == found[1]
    return found[0]


@given(PARTS)
def test_what_one_encodes_the_other_finds(parts: dict[str, Any]) -> None:
    record = encoded(parts)
    head = inspected(b"before" + record, 6, 6 + len(record), True)
    assert head["size"] == len(record)
    for name in ("topic", "queue_id", "queue_offset", "log_offset", "store_timestamp_ms"):
        assert head[name] == parts[name]
    assert record[head["body_at"] :][: head["body_length"]] == parts["body"]
    assert record[head["properties_at"] :][: head["properties_length"]] == parts["properties"]


@given(PARTS, st.data())
@settings(max_examples=200)
def test_mutated_records_are_judged_alike_and_never_read_beyond(
    parts: dict[str, Any], data: st.DataObject
) -> None:
    record = bytearray(encoded(parts))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, min(len(record), 110) - 1) | st.integers(0, len(record) - 1))
        record[at] = data.draw(st.integers(0, 255) | st.sampled_from([0, 0x7F, 0x80, 0xFF]))
    cut = data.draw(st.integers(0, len(record)) | st.just(len(record)))
    room = bytearray(4096 - cut) + record[:cut]  # the record ends where the memory ends
    inspected(room, 4096 - cut, 4096, data.draw(st.booleans()))


@given(st.binary(max_size=300), st.integers(-5, 310), st.integers(-5, 310), st.booleans())
def test_random_bytes_are_judged_alike(noise: bytes, at: int, end: int, check_crc: bool) -> None:
    inspected(noise, at, end, check_crc)


@given(st.integers(0, 2**32 - 1), st.integers(8, 40))
def test_a_blank_record_gives_its_size(size: int, room: int) -> None:
    blank = struct.pack(">II", size, MAGIC_BLANK).ljust(room, b"\0")
    assert inspected(blank, 0, room, True) == (size if size >= 8 else None)


@given(PARTS, st.data())
def test_a_flipped_bit_of_the_body_is_found_by_its_checksum(
    parts: dict[str, Any], data: st.DataObject
) -> None:
    parts["body"] = b"x" + parts["body"]
    record = bytearray(encoded(parts))
    body_at = inspected(record, 0, len(record), True)["body_at"]
    record[body_at + data.draw(st.integers(0, len(parts["body"]) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert inspected(record, 0, len(record), True) is None
    assert inspected(record, 0, len(record), False) is not None


@given(
    PARTS,
    st.sampled_from(["queue_id", "flag", "sys_flag", "reconsume_times"]),
    st.sampled_from([2**31, -(2**31) - 1, 2**40]),
)
def test_both_refuse_numbers_that_do_not_fit(parts: dict[str, Any], name: str, value: int) -> None:
    compiled, twin = (outcome(codec.encode_record, **parts | {name: value}) for codec in CODECS)
    assert compiled == twin
    assert compiled[1][0] is OverflowError


@given(PARTS, st.sampled_from(["topic", "properties", "born_host", "store_host"]))
def test_both_refuse_parts_that_do_not_fit(parts: dict[str, Any], name: str) -> None:
    compiled, twin = (outcome(codec.encode_record, **parts | {name: b"x" * 32768}) for codec in CODECS)
    assert compiled == twin
    assert compiled[1][0] is ValueError


@given(PAIRS | st.binary(max_size=60))
@settings(max_examples=300)
def test_both_hash_tags_alike_whatever_the_bytes_are(properties: bytes) -> None:
    compiled, twin = (codec.tags_code_of(properties) for codec in CODECS)
    assert compiled == twin


@given(st.text(min_size=1, max_size=20).filter(lambda tag: not set(tag) & set("\x01\x02")))
def test_the_code_of_a_tag_is_java_s_hash_of_its_text(tag: str) -> None:
    for codec in CODECS:
        assert codec.tags_code_of(f"KEYS\x01k\x02TAGS\x01{tag}\x02".encode()) == java_hash(tag)


ITEMS = st.lists(st.tuples(INT32, st.binary(max_size=40), st.binary(max_size=40)), max_size=5)


def batch(items: list[tuple[int, bytes, bytes]]) -> bytes:
    return b"".join(
        struct.pack(">IIIiI", 22 + len(body) + len(text), 0, 0, flag, len(body))
        + body
        + struct.pack(">H", len(text))
        + text
        for flag, body, text in items
    )


@given(ITEMS)
def test_a_batch_splits_into_what_was_joined(items: list[tuple[int, bytes, bytes]]) -> None:
    for codec in CODECS:
        assert codec.split_batch(batch(items)) == items


@given(ITEMS, st.data())
@settings(max_examples=200)
def test_broken_batches_are_refused_alike(items: list[tuple[int, bytes, bytes]], data: st.DataObject) -> None:
    body = bytearray(batch(items))
    for _ in range(data.draw(st.integers(0, 3)) if body else 0):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(
            st.sampled_from([0, 1, 22, 0x7F, 0x80, 0xFF])
        )
    del body[data.draw(st.integers(0, len(body))) :]
    compiled, twin = (outcome(codec.split_batch, bytes(body)) for codec in CODECS)
    assert compiled == twin


@given(st.binary(max_size=200))
def test_the_checksum_is_the_masked_crc_at_every_length(body: bytes) -> None:
    record = encoded(
        {
            "topic": b"T",
            "body": body,
            "properties": b"",
            "queue_id": 0,
            "flag": 0,
            "queue_offset": 0,
            "log_offset": 0,
            "sys_flag": 0,
            "born_timestamp_ms": 0,
            "born_host": b"12345678",
            "store_timestamp_ms": 0,
            "store_host": b"12345678",
            "reconsume_times": 0,
            "prepared_offset": 0,
        }
    )
    assert struct.unpack_from(">III", record) == (
        FIXED_BYTES + 1 + len(body),
        MAGIC_V1,
        zlib.crc32(body) & CRC_MASK,
    )
