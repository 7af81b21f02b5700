"""Blocks into batches: what a broker may answer, and what a task makes of it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from bolide.model.errors import BadBody, ProtocolError
from bolide.model.message import SysFlag
from bolide.model.offsets import MessageQueue
from bolide.pipeline import task
from bolide.pipeline.errors import BadRecord, DataLost
from bolide.pipeline.options import parse_options
from bolide.pipeline.pulls import Block, Piece
from bolide.pipeline.ranges import QueueRange
from bolide.pipeline.schema import arrow_schema, whole_schema
from tests.unit.arrow.test_columns import record

QUEUE = MessageQueue("orders", "broker-a", 3)
GARBAGE = b"\xff" * 200

Records = Sequence[bytes | None]
"""What a broker has at the offsets from 0 on; None is a message that it passes over without a word."""


def sound(offset: int, **changes: Any) -> bytes:
    return record(queue_offset=offset, **changes)


def spoiled(offset: int) -> bytes:
    return sound(offset, body=b"never packed", sys_flag=int(SysFlag.COMPRESSED))


def answer(there: Records, begin: int, count: int) -> list[Block]:
    """Up to so many messages, as a broker gives them that reads from queue to log."""
    found: list[bytes] = []
    end = begin
    while end < len(there) and len(found) < count:
        found += [] if there[end] is None else [there[end] or b""]
        end += 1
    return [Block(begin, end, b"".join(found))] if found else []


def rows(there: Records, *, count: int = 100, end: int | None = None, **options: str) -> list[dict[str, Any]]:
    """The rows of a range; the broker gives `count` messages at a time."""
    end = len(there) if end is None else end
    parsed = parse_options({"nameserver": "h:1", "subscribe": "orders"} | options)

    def every() -> Iterator[Piece]:
        at = 0
        while at < end:
            piece = again(at, False)
            yield piece
            at = piece.end

    def again(offset: int, alone: bool) -> Piece:
        blocks = answer(there, offset, 1 if alone else count)
        return Piece(offset, min(end, blocks[0].end if blocks else end), blocks, 1, 1)

    reading = task.Reading(parsed, QueueRange(QUEUE, 0, end), arrow_schema(whole_schema(parsed)))
    return [row for batch in reading.batches(task.Pieces(every(), again)) for row in batch.to_pylist()]


def read(there: Records, *, count: int = 100, end: int | None = None, **options: str) -> list[int]:
    return [row["queueOffset"] for row in rows(there, count=count, end=end, **options)]


def verdicts(found: list[dict[str, Any]]) -> list[tuple[int, bool]]:
    """Offsets, and whether each could be read."""
    return [(row["queueOffset"], row["bodyError"] is None) for row in found]


def test_a_body_that_does_not_unpack_holds_back_nobody() -> None:
    assert read([sound(0), spoiled(1), sound(2)], count=2) == [0, 1, 2]


def test_bad_bodies_that_are_left_out_are_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert read([sound(0), spoiled(1), spoiled(2), sound(3)], count=2, badBodies="skip") == [0, 3]
    assert "orders@broker-a:3 [0, 4): messages left out because they cannot be read: 2" in caplog.text


def test_bad_bodies_fail_when_the_user_says_so() -> None:
    """Also where lost data is no error: nothing is lost here."""
    with pytest.raises(BadBody, match=r"orders@broker-a:3: the message at offset 1: .*badBodies=deliver"):
        read([sound(0), spoiled(1)], badBodies="fail", failOnDataLoss="false")


# ---- what is no record -----------------------------------------------------------------------------------------


def test_bytes_that_are_no_record_are_quarantined_and_the_rest_is_pulled_again() -> None:
    found = rows([sound(0), GARBAGE, sound(2), sound(3)])
    assert verdicts(found) == [(0, True), (1, False), (2, True), (3, True)]
    bad = found[1]
    assert (bad["topic"], bad["brokerName"], bad["queueId"]) == ("orders", "broker-a", 3)
    assert "the record cannot be read: the record at position" in bad["bodyError"]


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_a_broken_record_has_the_same_bytes_whatever_it_comes_with(count: int) -> None:
    """Whether it says how long it is or not: a read that is repeated with other limits gives the same row."""
    magic_wrong, length_wrong = bytearray(sound(1)), bytearray(sound(1))
    magic_wrong[4] ^= 0xFF
    length_wrong[length_wrong.index(b"hello") - 1] ^= 0xFF
    for broken in (GARBAGE, bytes(magic_wrong), bytes(length_wrong)):
        found = rows([sound(0), broken, sound(2), sound(3)], count=count)
        assert verdicts(found) == [(0, True), (1, False), (2, True), (3, True)]
        assert found[1]["body"] == broken


def test_any_number_of_broken_records_is_a_row_each() -> None:
    there = [*(GARBAGE for _ in range(1500)), sound(1500)]
    assert verdicts(rows(there)) == [*((at, False) for at in range(1500)), (1500, True)]


@pytest.mark.parametrize("count", [1, 2, 100])
def test_with_a_filter_a_broken_record_is_one_row_at_its_own_offset(count: int) -> None:
    """The broker leaves out what is not wanted, so the first record of an answer may be far behind what was asked."""
    there = [None, None, None, GARBAGE, None, sound(5), None, GARBAGE, None]
    for end in (9, 7, 4, 3):
        expected = [(3, False), (5, True), (7, False)]
        assert verdicts(rows(there, count=count, end=end, tags="paid")) == [
            one for one in expected if one[0] < end
        ]


def test_broken_records_are_left_out_or_an_error_as_the_user_chose(caplog: pytest.LogCaptureFixture) -> None:
    assert read([GARBAGE, sound(1)], badBodies="skip") == [1]
    assert "cannot be read: 1" in caplog.text
    with pytest.raises(BadRecord, match=r"orders@broker-a:3: the message at offset 0: .*badBodies=skip"):
        read([GARBAGE, sound(1)], badBodies="fail")


# ---- what is not there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ([None, sound(1)], "at offset 0,"),
        ([sound(0), None, sound(2)], "at offset 1,"),
        ([sound(0), None, None, sound(3), None, sound(5)], "at offset 1 to 2, 4,"),
        ([None, GARBAGE], "at offset 0,"),
        ([GARBAGE, None, GARBAGE], "at offset 1,"),
        ([sound(0), GARBAGE, None, sound(3)], "at offset 2,"),
    ],
)
def test_messages_that_a_broker_passes_over_are_lost_data(
    there: Records, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(DataLost, match=f"orders@broker-a:3: the broker does not give the message {said}"):
        read(there)
    left = [at for at, one in enumerate(there) if one is not None]
    assert read(there, failOnDataLoss="false") == left
    assert said in caplog.text
    assert read(there, tags="paid") == left, "a filter leaves out what it likes"


def test_keys_are_chosen_by_the_task_so_a_hole_shows_all_the_same() -> None:
    with pytest.raises(DataLost):
        read([sound(0), None, sound(2)], keys="42")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (sound(1, topic=b"bills"), "gives one of 'bills', queue 3, offset 1"),
        (sound(1, queue_id=4), "gives one of 'orders', queue 4, offset 1"),
        (sound(0), "from offset 1 on, gives one of 'orders', queue 3, offset 0"),
    ],
)
def test_messages_that_nobody_asked_for_are_an_error(given: bytes, said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        read([sound(0), given], failOnDataLoss="false")


# ---- other columns, other messages -----------------------------------------------------------------------------


def test_kafka_s_columns_come_of_the_same_records() -> None:
    (row,) = rows([sound(0)], schema="kafka", includeHeaders="true")
    assert (row["key"], row["value"], row["topic"], row["partition"]) == (b"42  43", b"hello", "orders", 3)
    assert (row["offset"], row["timestamp"].timestamp(), row["timestampType"]) == (0, 1_700_000_000.001, 1)
    assert row["headers"] == [
        {"key": "TAGS", "value": b"paid"},
        {"key": "KEYS", "value": b"42  43"},
        {"key": "UNIQ_KEY", "value": b"ABC"},
        {"key": "a", "value": b"b"},
    ]
    (bad,) = rows([GARBAGE], schema="kafka")
    assert (bad["key"], bad["value"], bad["offset"], bad["timestamp"]) == (None, GARBAGE, 0, None)


def test_only_messages_with_a_wanted_key_are_rows() -> None:
    there = [sound(0), sound(1, properties=b"KEYS\x01431 9\x02")]
    assert read(there, keys="43") == [0]
    assert read(there, keys="9, 42") == [0, 1]
    assert read(there, keys="4") == []
