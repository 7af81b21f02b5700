"""Both implementations make the same records of ends of transactions, and stop at the same one.

Goal: one log, whichever is installed.  Method: half messages and ends of them, any odd in one way, are given to both;
the records, the entries of the queues and what was asked must be equal.
"""

import struct
from array import array
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model import end_rows as column
from bolide.model.names import HALF_TOPIC, OP_HALF_TOPIC
from bolide.record.codec import encode_record
from bolide.record.layout import CHECK_SUMS
from bolide.store.new_message import NewMessage
from tests.property.twins import APPENDS, ENDS

BASE, NUMBER, LOG_OFFSET, NOW_MS = 4096, 30, 1 << 20, 1_700_000_000_000
COMMIT, ROLLBACK = 8, 12
HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
MARK = b"TAGS\x01d\x02"
USUAL = (
    b"PGROUP\x01g\x02UNIQ_KEY\x01K\x02TRAN_MSG\x01true\x02TAGS\x01a\x02REAL_TOPIC\x01T\x02REAL_QID\x011\x02"
)
SEAL = b"__CRC32#\x011234567890\x02"
ODD = st.sampled_from(
    [
        b"DELAY\x012\x02",
        b"TIMER_DELAY_MS\x015\x02",
        b"TIMER_x\x015\x02",
        b"TRAN_PREPARED_QUEUE_OFFSET\x013\x02",
        b"PGROUP\x01h\x02",
        b"PGROUP\x01\x02",
        b"REAL_QID\x01-1\x02",
        b"KEYS\x01a#b\x02",
        b"x\x01" + SEAL,
        b"x" + SEAL,
        SEAL + b"y\x01z\x02",
        b"__CRC32#",
        b"last\x01pair",
    ]
)
PROPERTIES = st.one_of(
    st.just(USUAL),
    st.just(USUAL),
    ODD.map(lambda odd: USUAL + odd),
    ODD.map(lambda odd: odd + USUAL),
    st.sampled_from(
        [(b"REAL_QID\x011", b"REAL_QID\x01" + queue) for queue in (b"0", b"2", b"9", b"x", b"9" * 10)]
    ).map(lambda change: USUAL.replace(*change)),
    st.sampled_from([b"PGROUP\x01g\x02", b"UNIQ_KEY\x01K\x02", b"REAL_TOPIC\x01T\x02"]).map(
        lambda gone: USUAL.replace(gone, b"")
    ),
    st.just(USUAL.replace(b"REAL_TOPIC\x01T", b"REAL_TOPIC\x01unknown")),
)
HALF = st.fixed_dictionaries(
    {
        "properties": PROPERTIES,
        "sealed": st.booleans(),
        "born_host": st.sampled_from([HOST, bytes(20)]),
        "sys_flag": st.sampled_from([0, 1, 4]),
        "state": st.sampled_from(["sound"] * 12 + ["topic", "queue", "number", "body", "entry"]),
        "verdict": st.sampled_from([COMMIT, COMMIT, COMMIT, ROLLBACK, 0, 4]),
        "names": st.sampled_from(
            [("g", "", ""), ("g", "K", ""), ("g", "L", "K"), ("g", "L", "M"), ("h", "", "")]
        ),
        "moved": st.sampled_from([0] * 9 + [1, -40, 9]),
    }
)


def stored(halves: list[dict[str, Any]]) -> tuple[bytes, bytes, "array[int]", bytearray]:
    """The log, the entries of the queue of half messages, an end for each and its texts."""
    log, entries, texts = b"", b"", bytearray()
    rows: list[int] = []
    for number, half in enumerate(halves, NUMBER):
        place, state = BASE + len(log), half["state"]
        record = encode_record(
            topic=b"T" if state == "topic" else HALF_TOPIC.encode(),
            body=b"body",
            properties=half["properties"],
            queue_id=int(state == "queue"),
            flag=-3,
            queue_offset=number + (state == "number"),
            log_offset=place,
            sys_flag=half["sys_flag"],
            born_timestamp_ms=5,
            born_host=half["born_host"],
            store_timestamp_ms=6,
            store_host=HOST,
            reconsume_times=2,
            prepared_offset=0,
            sealed=half["sealed"],
        )
        log += record.replace(b"body", b"bodx") if state == "body" else record
        entries += struct.pack(">qiq", place + (state == "entry"), len(record), 0)
        row = [0] * column.COLUMNS
        row[column.HALF_AT], row[column.HALF_NUMBER] = place, number + half["moved"]
        row[column.VERDICT] = half["verdict"]
        for at, text in zip(range(column.GROUP_AT, column.COLUMNS, 2), half["names"], strict=True):
            row[at], row[at + 1] = len(texts), len(text)
            texts += text.encode()
        rows += row
    return log, entries, array("q", rows), texts


def encoded(number: int, halves: list[dict[str, Any]], *, sealed: bool, room: int, size_max: int) -> Any:
    """Everything that it leaves behind."""
    log, entries, ends, texts = stored(halves)
    tails = [APPENDS[number].QueueTail(("T", 0), 0, None), APPENDS[number].QueueTail(("T", 1), 5, None), None]
    mark = APPENDS[number].QueueTail((OP_HALF_TOPIC, 0), 9, None)
    asked: list[bytes] = []

    def find(topic: bytes) -> Any:
        asked.append(topic)
        return tails if topic == b"T" else None

    scratch, touched = bytearray(1 << 16), list[Any]()
    where = (entries, NUMBER, memoryview(log), BASE, BASE, BASE + len(log), CHECK_SUMS, size_max)
    what = (find, mark, MARK, 77, HOST, sealed, scratch, room, LOG_OFFSET, NOW_MS, touched)
    answer = ENDS[number].encode_ends(ends, texts, 0, len(halves), *where, *what)
    queues = [tail.entries(tail.start, tail.next_offset) for tail in (*tails[:2], mark)]
    return answer, bytes(scratch), queues, [tail.key for tail in touched], asked


@given(
    st.lists(HALF, max_size=6),
    st.booleans(),
    st.sampled_from([1 << 20, 1 << 20, 700]),
    st.sampled_from([9999, 230]),
)
@settings(max_examples=500)
def test_both_encode_the_same(halves: list[dict[str, Any]], sealed: bool, room: int, size_max: int) -> None:
    compiled, twin = (encoded(n, halves, sealed=sealed, room=room, size_max=size_max) for n in (0, 1))
    assert compiled == twin


def test_a_commit_stores_the_message_in_its_own_queue_with_a_mark_behind_it_and_a_rollback_the_mark() -> None:
    """So that both do not agree on encoding nothing."""
    usual = {
        "properties": USUAL,
        "sealed": True,
        "born_host": HOST,
        "sys_flag": 1,
        "state": "sound",
        "moved": 0,
    }
    halves = [{**usual, "verdict": verdict, "names": ("g", "K", "")} for verdict in (COMMIT, ROLLBACK)]
    for number in (0, 1):
        (row, used, records, last), data, *_ = encoded(
            number, halves, sealed=True, room=1 << 20, size_max=9999
        )
        assert (row, records) == (2, 3)
        found, at = [], 0
        while at < used:
            size = int.from_bytes(data[at : at + 4])
            last_at, at = at, at + size
            found.append(NewMessage.of_record(data[last_at:at]))
        assert last == LOG_OFFSET + last_at
        committed = NewMessage("T", 1, b"body", USUAL, -3, 1 | COMMIT, 5, HOST, 2, BASE)
        marks = [NewMessage(OP_HALF_TOPIC, 0, b"%d" % n, MARK, 0, 0, 77, HOST) for n in (NUMBER, NUMBER + 1)]
        assert found == [committed, *marks]
