"""Both implementations of the key index do exactly the same.

Goal: one file format, whichever is installed.  Method: the same log is indexed by both into files that are full at
any key; file bytes, positions and reasons must be equal, and so must what both find, and what both repair.
"""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model.limits import INDEXED_WORDS_MAX
from bolide.record.codec_twin import encode_record
from tests.property.twins import INDEXES, outcome

SLOTS = 7
BASE = 5000
HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
START_MS = 1_700_000_000_000

WORDS = ("Aa", "BB", "k1", "k2", "", "ü", "😀x", "long-enough-to-be-hashed-four-at-a-time")
VALUES = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join).map(str.encode) | st.sampled_from(
    (b"\xff\xfe", b"a\x01b", b" ", b"\xe2 x", b"\t")
)
PAIR = st.tuples(
    st.sampled_from([b"UNIQ_KEY", b"KEYS", b"TAGS", b"KEY", b"TAGS2", b"U", b""]),
    st.sampled_from([b"\x01", b"\x01", b"\x01", b""]),
    VALUES,
    st.sampled_from([b"\x02", b"\x02", b"\x02", b""]),
).map(b"".join)
RECORD = st.fixed_dictionaries(
    {
        "topic": st.sampled_from([b"T", b"orders", "tö".encode(), b"x" * 200, b"\xff", b""]),
        "body": st.binary(max_size=5),
        "properties": st.lists(PAIR, max_size=5).map(b"".join),
        "sys_flag": st.sampled_from([0, 0, 0, 1, 4, 8, 12, 0x100]),
        "store_timestamp_ms": st.sampled_from([0, 999, 1000, 86_400_000, -5000, -START_MS, 2**45]).map(
            START_MS.__add__
        ),
        "born_host": st.sampled_from([HOST, bytes(20)]),
    }
)


def log_of(records: list[dict[str, Any]]) -> bytes:
    log = b""
    for parts in records:
        log += encode_record(
            queue_id=0,
            flag=0,
            queue_offset=0,
            log_offset=BASE + len(log),
            born_timestamp_ms=1,
            store_host=HOST,
            reconsume_times=0,
            prepared_offset=0,
            **parts,
        )
    return log


def new_file(entries: int) -> memoryview:
    return memoryview(bytearray(40 + 4 * SLOTS + 20 * entries))


def indexed(module: Any, log: bytes, rooms: list[int], stop: int | None = None) -> Any:
    """Everything that indexing leaves behind, going on in a new file whenever one is full."""
    files, history = [new_file(rooms[0])], []
    at = keys_done = 0
    stop = len(log) if stop is None else min(stop, len(log))
    for room in rooms:
        at, keys_done, why = module.index_records(
            log, at, stop, len(log), BASE, files[-1], SLOTS, room, keys_done
        )  # fmt: skip
        history.append((at, keys_done, why))
        if why != module.NO_ROOM:
            break
        files.append(new_file(max(rooms)))
    return [bytes(file) for file in files], history


@given(
    st.lists(RECORD, max_size=8), st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(0, 2000)
)
@settings(max_examples=300)
def test_both_write_the_same_files_and_stop_at_the_same_keys(
    records: list[dict[str, Any]], rooms: list[int], stop: int
) -> None:
    log = log_of(records)
    compiled, twin = (indexed(module, log, rooms, stop) for module in INDEXES)
    assert compiled == twin


@pytest.mark.parametrize("count", [INDEXED_WORDS_MAX - 1, INDEXED_WORDS_MAX, INDEXED_WORDS_MAX + 1, 4000])
@pytest.mark.parametrize("rooms", [[5000], [50, 50, 50, 50]])
def test_both_index_as_many_words_of_a_record(count: int, rooms: list[int]) -> None:
    words = b"  ".join(b"w%d" % number for number in range(count))
    parts = {"topic": b"T", "body": b"", "sys_flag": 0, "store_timestamp_ms": START_MS, "born_host": HOST}
    log = log_of([{**parts, "properties": b"TAGS\x01A\x02UNIQ_KEY\x01U\x02KEYS\x01" + words}] * 2)
    compiled, twin = (indexed(module, log, rooms) for module in INDEXES)
    assert compiled == twin
    if rooms == [5000]:
        assert struct.unpack_from(">i", twin[0][0], 36)[0] == 1 + 2 * (2 + min(count, INDEXED_WORDS_MAX))


@given(st.lists(RECORD, min_size=1, max_size=4), st.data())
@settings(max_examples=300)
def test_both_stop_alike_at_bytes_that_are_no_record(
    records: list[dict[str, Any]], data: st.DataObject
) -> None:
    log = bytearray(log_of(records))
    for _ in range(data.draw(st.integers(1, 4))):
        log[data.draw(st.integers(0, len(log) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        log += struct.pack(">II", 64, 0xCBD43194)
    compiled, twin = (indexed(module, bytes(log), [50]) for module in INDEXES)
    assert compiled == twin


@given(st.lists(RECORD, max_size=12), st.data())
@settings(max_examples=200)
def test_both_find_the_same_in_sound_and_in_broken_files(
    records: list[dict[str, Any]], data: st.DataObject
) -> None:
    (file, *_), _ = indexed(INDEXES[0], log_of(records), [40])
    broken = bytearray(file)
    for _ in range(data.draw(st.integers(0, 3))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    hashes = {entry[0] for entry in struct.iter_unpack(">iqii", broken[40 + 4 * SLOTS :]) if entry[0] >= 0}
    count_max = data.draw(st.integers(0, 5))
    window = sorted(data.draw(st.tuples(*[st.integers(START_MS - 2000, START_MS + 2000)] * 2)))
    start = data.draw(st.integers(-1, 45))
    for begin_ms, end_ms in (window, (0, 2**62)):
        for wanted in sorted(hashes):
            given = (memoryview(broken), SLOTS, wanted, count_max, begin_ms, end_ms, 9, start)
            compiled, twin = (outcome(module.find_offsets, *given) for module in INDEXES)
            assert compiled == twin


@given(st.lists(RECORD, max_size=12), st.data())
@settings(max_examples=200)
def test_both_repair_slots_from_entries_alike(records: list[dict[str, Any]], data: st.DataObject) -> None:
    log = log_of(records)
    (file, *_), _ = indexed(INDEXES[0], log, [40])
    slots_end = 40 + 4 * SLOTS
    lost = bytearray(file[:40]) + data.draw(st.binary(min_size=28, max_size=28)) + file[slots_end:]
    count = max(1, struct.unpack_from(">i", lost, 36)[0])
    log_end = BASE + data.draw(st.sampled_from([0, len(log) // 2, len(log)]))
    compiled, twin = (
        (
            module.rebuild_slots(repaired := memoryview(bytearray(lost)), SLOTS, count, log_end),
            bytes(repaired),
        )
        for module in INDEXES
    )
    assert compiled == twin
    if log_end == BASE + len(log):
        (sound, used), repaired_bytes = compiled
        assert (sound, used) == (count, struct.unpack_from(">i", file, 32)[0])
        assert repaired_bytes == file


@given(RECORD)
def test_both_know_the_hashes_of_a_record(parts: dict[str, Any]) -> None:
    record = log_of([parts])
    compiled, twin = (module.record_hashes(record) for module in INDEXES)
    assert compiled == twin
    (file, *_), _ = indexed(INDEXES[0], record, [40])
    entries = struct.iter_unpack(">iqii", file[40 + 4 * SLOTS + 20 :])
    assert [entry[0] for entry, _ in zip(entries, compiled, strict=False)] == compiled
