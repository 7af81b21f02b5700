"""Both implementations of the walk over the log do exactly the same.

Goal: one recovery, whichever is installed.  Method: segments of sound records with damage of every kind are walked by
both, in steps of any size; where they stop and why, what they count, what they ask and what every queue gets must be
equal.
"""

import struct
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.record.codec_twin import encode_record
from tests.property.twins import APPENDS, WALKS

V4 = bytes((127, 0, 0, 1, 0, 0, 42, 159))
V6 = bytes(range(16)) + bytes((0, 0, 42, 159))
SEGMENT_BYTES = 8192
NOW_MS = 1_700_000_000_000

TOPICS = (
    b"T",
    b"orders",
    b"orders-longer-than-eight",
    b"x" * 130,
    "ü".encode(),
    b"\xff",
    b"",
    b"SCHEDULE_TOPIC_XXXX",
)
RECORD = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(TOPICS[:3]) | st.sampled_from(TOPICS),
        "queue_id": st.sampled_from([0, 0, 1, 7]),
        "body": st.binary(max_size=40),
        "properties": st.sampled_from(
            [
                b"",
                b"TAGS\x01TagA\x02",
                b"UNIQ_KEY\x01" + b"K" * 700 + b"\x02",
                b"a\x01\0",
                b"a\x01" + bytes(600) + b"b",
            ]
        ),
        "sys_flag": st.sampled_from([0, 0, 0, 1, 4, 8, 12]),
        "born_host": st.sampled_from([V4, V6]),
        "step": st.sampled_from([0, 0, 0, 0, 1, -1, 50]),
        "store_timestamp_ms": st.sampled_from([NOW_MS, NOW_MS, NOW_MS, 0, 1 << 32, (1 << 32) - 1]),
    }
)
DAMAGE = st.tuples(st.floats(0, 1), st.integers(1, 20), st.sampled_from([0, 1, 0xFF]))


def segment_of(records: list[dict[str, Any]], base: int, blank: int | None) -> tuple[bytearray, int]:
    """Records one behind the other, then a blank one, whose size is wrong by `blank`; and where they end."""
    data = bytearray()
    offsets: dict[tuple[bytes, int], int] = {}
    for one in records:
        given_parts = {name: value for name, value in one.items() if name != "step"}
        key = (one["topic"], one["queue_id"])
        offset = max(0, offsets.get(key, 0) + one["step"])
        record = encode_record(
            **given_parts,
            flag=0,
            queue_offset=offset,
            log_offset=base + len(data),
            born_timestamp_ms=1,
            store_host=V4,
            reconsume_times=0,
            prepared_offset=0,
        )
        if len(data) + len(record) + 8 > SEGMENT_BYTES:
            break
        if one["sys_flag"] & 12 not in (4, 12):
            offsets[key] = offset + 1
        data += record
    end = len(data)
    if blank is not None:
        data += struct.pack(">II", max(8, SEGMENT_BYTES - end + blank), 0xCBD43194)
    return data + bytes(SEGMENT_BYTES - len(data)), end


def walked(
    which: int, data: bytes, base: int, first: int, steps: list[int], *, check_crc: bool
) -> tuple[Any, ...]:
    """Everything that can be seen of one walk."""
    tail_class = APPENDS[which].QueueTail
    tails: dict[tuple[bytes, int], Any] = {}
    asked: list[Any] = []

    def find(topic: bytes, queue_id: int) -> Any:
        if not topic or b"\xff" in topic:
            return None
        return tails.setdefault((topic, queue_id), tail_class((topic, queue_id), 0, None))

    def mend(tail: Any, offset: int, log_offset: int) -> bool:
        asked.append((tail.key, tail.next_offset, offset, log_offset))
        if offset > 100:
            return False
        tail.reset(offset)
        return True

    def deliver(tail: Any, properties: bytes, stored_ms: int, log_offset: int, size: int) -> int:
        asked.append((tail.key, properties, stored_ms, log_offset, size))
        return min(stored_ms + 1000, 2**63 - 1)

    walk = WALKS[which].LogWalk(find, mend, deliver)
    stops: list[tuple[int, int]] = []
    position = first
    for step in steps:
        position, why = walk.go(memoryview(data), base, position, min(len(data), position + step), check_crc)
        stops.append((position, why))
        if why:
            break
    entries = {
        key: (tail.start, tail.next_offset, tail.entries(tail.start, tail.next_offset))
        for key, tail in tails.items()
    }
    return stops, asked, entries, walk.records, walk.entries, walk.last_record, walk.store_timestamp_ms


@given(
    st.lists(RECORD, max_size=12),
    st.sampled_from([0, SEGMENT_BYTES, 5 * 2**40]),
    st.sampled_from([None, 0, 0, 1, -1]),
    st.lists(DAMAGE, max_size=2),
    st.lists(st.integers(1, 3000), max_size=6),
    st.booleans(),
)
@settings(max_examples=300)
def test_both_walk_the_same_way(
    records: list[dict[str, Any]],
    base: int,
    blank: int | None,
    damage: list[tuple[float, int, int]],
    steps: list[int],
    check_crc: bool,
) -> None:
    data, end = segment_of(records, base, blank)
    for where, count, value in damage:
        at = int(where * end)
        data[at : at + count] = bytes((value,)) * len(data[at : at + count])
    seen = [
        walked(which, bytes(data), base, 0, [*steps, SEGMENT_BYTES], check_crc=check_crc) for which in (0, 1)
    ]
    assert seen[0] == seen[1]


@given(st.binary(max_size=200), st.integers(0, 250))
def test_both_stop_at_bytes_that_are_no_record(data: bytes, first: int) -> None:
    seen = [
        walked(which, data, 0, min(first, len(data)), [len(data) + 1], check_crc=True) for which in (0, 1)
    ]
    assert seen[0] == seen[1]


def test_a_walk_goes_over_sound_records_to_the_blank_one() -> None:
    """What the comparison would not notice if both were wrong."""
    one = {
        "topic": b"T",
        "queue_id": 0,
        "body": b"body",
        "properties": b"TAGS\x01TagA\x02",
        "sys_flag": 0,
        "born_host": V4,
        "step": 0,
        "store_timestamp_ms": NOW_MS,
    }
    data, end = segment_of([one] * 5, 4096, 0)
    for which in (0, 1):
        stops, asked, entries, records, count, last_record, stored_ms = walked(
            which, bytes(data), 4096, 0, [SEGMENT_BYTES], check_crc=True
        )
        assert (stops, asked) == ([(end, WALKS[which].BLANK)], [])
        assert (records, count, last_record, stored_ms) == (5, 5, 4096 + end // 5 * 4, NOW_MS)
        start, following, data_of_queue = entries[b"T", 0]
        assert (start, following) == (0, 5)
        assert struct.unpack(">qiq", data_of_queue[-20:]) == (last_record, end // 5, 2598919)
