"""Blocks into batches: what a broker may answer, and what a task makes of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from bolide.model.message import SysFlag
from bolide.model.offsets import MessageQueue
from bolide.pipeline import task
from bolide.pipeline.errors import BadBody, BadRecord
from bolide.pipeline.options import parse_options
from bolide.pipeline.pulls import Piece
from bolide.pipeline.ranges import QueueRange
from bolide.pipeline.schema import arrow_schema, whole_schema
from tests.unit.pipeline.test_columns import record

QUEUE = MessageQueue("orders", "broker-a", 0)


def spoiled(offset: int) -> bytes:
    return record(queue_offset=offset, body=b"never packed", sys_flag=int(SysFlag.COMPRESSED))


def rows(*blocks: bytes, later: Mapping[int, bytes] | None = None, **options: str) -> list[dict[str, Any]]:
    """The rows that come of these blocks; `later` is what the broker gives when it is asked again from an offset on."""
    parsed = parse_options({"nameserver": "h:1", "subscribe": "orders"} | options)
    wanted = QueueRange(QUEUE, 0, 10)

    def again(offset: int) -> Piece:
        return Piece(offset, 10, [later[offset]] if later and offset in later else [], 1, 1)

    pieces = task.Pieces(iter([Piece(0, 10, list(blocks), 1, 10)]), again)
    batches = task.Reading(parsed, wanted, arrow_schema(whole_schema(parsed))).batches(pieces)
    return [row for batch in batches for row in batch.to_pylist()]


def read(*blocks: bytes, **options: str) -> list[int]:
    return [row["queueOffset"] for row in rows(*blocks, later=None, **options)]


def test_a_body_that_does_not_unpack_holds_back_nobody() -> None:
    assert read(record(queue_offset=1) + spoiled(2), record(queue_offset=3)) == [1, 2, 3]


def test_bad_bodies_that_are_left_out_are_counted_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    blocks = (record(queue_offset=1) + spoiled(2), spoiled(3) + record(queue_offset=4))
    assert read(*blocks, badBodies="skip") == [1, 4]
    assert "orders@broker-a:0 [0, 10): messages left out because they cannot be read: 2" in caplog.text


def test_bad_bodies_fail_when_the_user_says_so() -> None:
    """Also where lost data is no error: nothing is lost here."""
    with pytest.raises(BadBody, match=r"orders@broker-a:0: the message at offset 2: .*badBodies=deliver"):
        read(spoiled(2), badBodies="fail", failOnDataLoss="false")


GARBAGE = b"\xff" * 200


def test_bytes_that_are_no_record_are_quarantined_and_the_rest_is_pulled_again() -> None:
    found = rows(record(queue_offset=1) + GARBAGE, later={3: record(queue_offset=3) + record(queue_offset=4)})
    assert [(row["queueOffset"], row["bodyError"] is None) for row in found] == [
        (1, True),
        (2, False),
        (3, True),
        (4, True),
    ]
    bad = found[1]
    assert (bad["topic"], bad["brokerName"], bad["queueId"], bad["body"]) == (
        "orders",
        "broker-a",
        0,
        GARBAGE,
    )
    assert "the record cannot be read: the record at position" in bad["bodyError"]


def test_only_the_bytes_of_the_broken_record_are_quarantined_where_it_says_how_many() -> None:
    """Its magic is wrong and its length is right."""
    broken = bytearray(record(queue_offset=2))
    broken[4] ^= 0xFF
    found = rows(
        record(queue_offset=1) + bytes(broken) + record(queue_offset=3), later={3: record(queue_offset=3)}
    )
    assert [row["queueOffset"] for row in found] == [1, 2, 3]
    assert found[1]["body"] == bytes(broken)


def test_broken_records_one_behind_the_other_are_a_row_each() -> None:
    found = rows(GARBAGE, later={1: GARBAGE, 2: record(queue_offset=2)})
    assert [(row["queueOffset"], row["bodyError"] is None) for row in found] == [
        (0, False),
        (1, False),
        (2, True),
    ]


def test_broken_records_are_left_out_or_an_error_as_the_user_chose(caplog: pytest.LogCaptureFixture) -> None:
    later = {1: record(queue_offset=1)}
    assert [row["queueOffset"] for row in rows(GARBAGE, later=later, badBodies="skip")] == [1]
    assert "cannot be read: 1" in caplog.text
    with pytest.raises(BadRecord, match=r"orders@broker-a:0: the message at offset 0: .*badBodies=skip"):
        rows(GARBAGE, later=later, badBodies="fail")


def test_kafka_s_columns_come_of_the_same_records() -> None:
    (row,) = rows(record(queue_offset=7), schema="kafka", includeHeaders="true")
    assert (row["key"], row["value"], row["topic"], row["partition"]) == (b"42  43", b"hello", "orders", 3)
    assert (row["offset"], row["timestamp"].timestamp(), row["timestampType"]) == (7, 1_700_000_000.001, 1)
    assert row["headers"] == [
        {"key": "TAGS", "value": b"paid"},
        {"key": "KEYS", "value": b"42  43"},
        {"key": "UNIQ_KEY", "value": b"ABC"},
        {"key": "a", "value": b"b"},
    ]
    (bad,) = rows(GARBAGE, schema="kafka")
    assert (bad["key"], bad["value"], bad["offset"], bad["timestamp"]) == (None, GARBAGE, 0, None)


def test_only_messages_with_a_wanted_key_are_rows() -> None:
    blocks = (record(queue_offset=1) + record(queue_offset=2, properties=b"KEYS\x01431 9\x02"),)
    assert read(*blocks, keys="43") == [1]
    assert read(*blocks, keys="9, 42") == [1, 2]
    assert read(*blocks, keys="4") == []
