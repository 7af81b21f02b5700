"""Both implementations file the same timed messages, and stop at the same one.

Goal: one index, whichever is installed.  Method: records of the timer's queue, any of them odd in one way, are filed by
both; the units, the slots and the pages that they call changed must be equal.
"""

import struct
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model.names import TIMER_TOPIC
from bolide.record.codec import encode_record
from bolide.record.layout import CHECK_SUMS
from bolide.store.timer.layout import SLOT, SLOT_BYTES, UNIT, UNIT_BYTES
from tests.property.twins import FILINGS

STEP_MS = 1000
READ_MS = 1_700_000_000_000
WINDOW_MS = 400_000
SLOTS = 600
BASE, QUEUE_OFFSET, UNITS_AT = 4096, 70, 520

NUMBERS = st.sampled_from(["0", "5", "60", "5000", "007", "+5", "-5", "1e3", "", "9" * 15, "9" * 16, "x"])
TIMES = st.integers(-2, SLOTS + 2).map(lambda steps: str(READ_MS + steps * STEP_MS)) | NUMBERS
MILLISECONDS = st.integers(READ_MS - 2000, READ_MS + (SLOTS + 2) * STEP_MS).map(str) | NUMBERS
PAIR = st.one_of(
    st.tuples(st.just("TIMER_OUT_MS"), TIMES),
    st.tuples(st.just("TIMER_DELIVER_MS"), MILLISECONDS),
    st.tuples(st.sampled_from(["TIMER_DELAY_MS", "TIMER_DELAY_SEC"]), NUMBERS),
    st.tuples(st.sampled_from(["REAL_TOPIC", "TIMER_DEL_UNIQKEY", "KEYS"]), st.sampled_from(["T", "ü", ""])),
)
USUAL = st.tuples(
    TIMES, st.sampled_from(["TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC"]), MILLISECONDS | NUMBERS
).map(lambda due: [("TIMER_OUT_MS", due[0]), ("REAL_TOPIC", "orders"), due[1:]])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {
            "pairs": USUAL | USUAL | st.lists(PAIR, max_size=5),
            "stored_ms": st.sampled_from([READ_MS, READ_MS + 999, READ_MS - 300_000, 0, -1, 2**62]),
            "state": st.sampled_from(["sound"] * 12 + ["topic", "number", "body", "place", "gap", "nowhere"]),
        }
    ),
    max_size=8,
)


def record_of(pairs: list[tuple[str, str]], stored_ms: int, number: int, place: int, topic: str) -> bytes:
    return encode_record(
        topic=topic.encode(),
        body=b"body",
        properties="".join(f"{name}\x01{value}\x02" for name, value in pairs).encode(),
        queue_id=0,
        flag=0,
        queue_offset=number,
        log_offset=place,
        sys_flag=0,
        born_timestamp_ms=1,
        born_host=bytes(8),
        store_timestamp_ms=stored_ms,
        store_host=bytes(8),
        reconsume_times=0,
        prepared_offset=0,
    )


def stored(records: list[dict[str, Any]]) -> tuple[bytes, bytes]:
    """The log and the entries of the timer's queue."""
    log, entries = b"", b""
    for number, one in enumerate(records):
        place, state = BASE + len(log), one["state"]
        topic = "T" if state == "topic" else TIMER_TOPIC
        record = record_of(
            one["pairs"],
            one["stored_ms"],
            QUEUE_OFFSET + number + (state == "number"),
            place + (state == "place"),
            topic,
        )
        log += record.replace(b"body", b"bodx") if state == "body" else record
        entry = {"gap": (place, 0x7FFFFFFF), "nowhere": (10**9, 100)}.get(state, (place, len(record)))
        entries += struct.pack(">qiq", *entry, 0)
    return log, entries


@given(
    RECORDS,
    st.integers(0, 2),
    st.sampled_from([0, 1, 100]),
    st.sampled_from([0, 0, 300]),
    st.sampled_from([0, 50]),
)
@settings(max_examples=500)
def test_both_file_the_same(
    records: list[dict[str, Any]], first: int, units_max: int, unreadable: int, used: int
) -> None:
    log, entries = stored(records)
    found = []
    for module in FILINGS:
        slots, dirty = memoryview(bytearray(SLOTS * SLOT_BYTES)), set[int]()
        for step in range(READ_MS // STEP_MS, READ_MS // STEP_MS + used):  # slots that hold something
            SLOT.pack_into(slots, step % SLOTS * SLOT_BYTES, step, 52, 104, 2, 0)
        where = (memoryview(log), BASE, BASE + len(log) - unreadable, CHECK_SUMS)
        units = (slots, dirty, UNITS_AT, units_max)
        numbers = (first, QUEUE_OFFSET + first)
        answer = module.file_plain(entries, *numbers, *where, *units, READ_MS, STEP_MS, WINDOW_MS)
        found.append((answer, bytes(slots), dirty))
    assert found[0] == found[1]


def test_plain_ones_are_filed_in_the_order_of_their_queue_and_chained_in_their_slots() -> None:
    """So that both do not agree on filing nothing."""
    due_ms = [READ_MS + 5500, READ_MS + 7001, READ_MS + 5500]
    pairs = [
        [("TIMER_OUT_MS", str((ms - 1) // 1000 * 1000)), ("TIMER_DELIVER_MS", str(ms)), ("REAL_TOPIC", "T")]
        for ms in due_ms
    ]
    log, entries = stored([{"pairs": one, "stored_ms": READ_MS, "state": "sound"} for one in pairs])
    for module in FILINGS:
        slots, dirty = memoryview(bytearray(SLOTS * SLOT_BYTES)), set[int]()
        where = (memoryview(log), BASE, BASE + len(log), CHECK_SUMS)
        units, begun = module.file_plain(
            entries, 0, QUEUE_OFFSET, *where, slots, dirty, UNITS_AT, 9, READ_MS, STEP_MS, WINDOW_MS
        )
        _, previous, kinds, written, delays, _, _, hashes, _ = zip(*UNIT.iter_unpack(units), strict=True)
        assert (previous, begun) == ((-1, -1, UNITS_AT), 2)
        assert (kinds, written, hashes) == ((1,) * 3, (READ_MS,) * 3, (ord("T"),) * 3)
        assert [READ_MS + delay + 1 for delay in delays] == due_ms
        step = due_ms[0] // STEP_MS
        slot = SLOT.unpack_from(slots, step % SLOTS * SLOT_BYTES)
        assert slot == (step, UNITS_AT, UNITS_AT + 2 * UNIT_BYTES, 2, 0)
        assert dirty
