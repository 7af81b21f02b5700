"""Rows into messages: both twins give the same bytes, keys that come from what a row says, and clear refusals."""

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bolide.model.java_hash import java_hash
from bolide.model.message import parse_properties
from bolide.pipeline import _rows, rows_twin
from bolide.pipeline import rows as chosen
from bolide.pipeline.errors import BadRow
from bolide.pipeline.frames import Frame
from bolide.pipeline.row_columns import cut
from bolide.record.codec import split_batch

PREFIX = "0123456789ABCDEF"
WORDS = ["", "a", "kunde-ö", "k" * 40, "日本", "0"]


def batch(count: int, seed: int) -> pa.RecordBatch:
    chance = random.Random(seed)

    def some(value: Any) -> Any:
        return value if chance.random() < 0.8 else None

    return pa.record_batch(
        {
            "body": pa.array([chance.randbytes(chance.randrange(1, 60)) for _ in range(count)], pa.binary()),
            "tags": pa.array([some(chance.choice(["", "paid", "ö"])) for _ in range(count)], pa.string()),
            "keys": pa.array(
                [some(chance.choices([*WORDS, None], k=chance.randrange(3))) for _ in range(count)],
                pa.list_(pa.string()),
            ),
            "properties": pa.array(
                [
                    some(
                        [(f"n{at}", some(chance.choice(WORDS))) for at in range(chance.randrange(3))]
                        + [("TAGS", "x")]
                    )
                    for _ in range(count)
                ],
                pa.map_(pa.string(), pa.string()),
            ),
            "sharding_key": pa.array([some(chance.choice(WORDS)) for _ in range(count)], pa.string()),
            "queue_id": pa.array([chance.choice([None, None, 0, 3]) for _ in range(count)], pa.int32()),
        }
    )


def frames(module: Any, given: pa.RecordBatch, **settings: Any) -> list[tuple[int, bytes, int]]:
    encoder = module.RowEncoder(PREFIX, queues=5, queue_ids=4, **settings)
    found = []
    for part in cut(given, "t"):
        at = encoder.append(part.columns, 0, part.count)
        while encoder.full >= 0:
            lane = encoder.full
            found.append((lane, *encoder.take(lane)))
            at = encoder.append(part.columns, at, part.count)
        assert at == part.count
    return found + [(lane, *encoder.take(lane)) for lane in encoder.waiting()]


def ids(found: list[tuple[int, bytes, int]]) -> Iterator[str]:
    for _, data, _ in found:
        for _, _, properties in split_batch(data):
            yield parse_properties(bytes(properties).decode())["UNIQ_KEY"]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("settings", [{}, {"seed": 77}, {"seed": 5, "rows_max": 3}, {"size_bytes_max": 200}])
def test_compiled_and_readable_agree(seed: int, settings: dict[str, int]) -> None:
    for given in (batch(200, seed), batch(200, seed).slice(37, 90)):
        assert frames(_rows, given, **settings) == frames(rows_twin, given, **settings)


def test_keys_come_from_what_rows_say_and_not_from_their_order() -> None:
    given = pa.record_batch({"body": pa.array([b"a", b"b", b"a", b"c", b"a"], pa.binary())})
    other = given.take(pa.array([4, 3, 2, 1, 0]))
    one, two = (sorted(ids(frames(chosen, some, seed=9))) for some in (given, other))
    assert one == two
    assert len(set(one)) == 5
    assert all(key.startswith(PREFIX) for key in one)
    assert not set(one) & set(ids(frames(chosen, given, seed=1 << 40)))


def test_stored_rows_are_passed_over() -> None:
    given = pa.record_batch({"body": pa.array([b"a", b"b", b"a"], pa.binary())})
    known = chosen.IdSet()
    keys = sorted(ids(frames(chosen, given, seed=9)))
    column = pa.array(keys[:2], pa.string()).buffers()
    text = chosen.Text(None, memoryview(column[1]), memoryview(column[2]), 0)
    assert known.add_keys(text, 2, PREFIX) == 2
    assert known.add_keys(text, 2, "F" * 16) == 0
    assert list(ids(frames(chosen, given, seed=9, stored=known))) == keys[2:]
    ((lane, data, rows),) = frames(chosen, given, seed=9)
    left = Frame("t", lane, data, rows, delayed=False).without(known)
    assert list(ids([(lane, left.data, left.rows)])) == keys[2:]


def test_lanes_are_any_queue_the_hash_and_the_number() -> None:
    given = pa.record_batch(
        {
            "body": pa.array([b"x"] * 3, pa.binary()),
            "sharding_key": pa.array([None, "kunde-ö", "a"], pa.string()),
            "queue_id": pa.array([None, None, 2], pa.int64()),
        }
    )
    assert [lane for lane, _, _ in frames(chosen, given)] == [0, 1 + abs(java_hash("kunde-ö")) % 5, 1 + 5 + 2]


@pytest.mark.parametrize("module", [chosen, rows_twin])
@pytest.mark.parametrize(
    ("column", "kind", "value", "said"),
    [
        ("body", pa.binary(), None, "row 1: the column body is null"),
        ("body", pa.binary(), b"", "row 1: the column body has 0 bytes"),
        ("tags", pa.string(), "*", "row 1: the column tags is one word"),
        ("tags", pa.string(), "a||b", "row 1: the column tags is one word"),
        ("keys", pa.list_(pa.string()), ["a b"], "row 1: the column keys has a blank"),
        (
            "properties",
            pa.map_(pa.string(), pa.string()),
            [("a", "\x01")],
            "row 1: the column properties contains",
        ),
        (
            "properties",
            pa.map_(pa.string(), pa.string()),
            [("a", "x" * 40_000)],
            "row 1: the column properties takes",
        ),
        ("queue_id", pa.int32(), 4, "row 1: the column queue_id is 4; the topic has the queues 0 to 3"),
        ("queue_id", pa.int32(), -1, "row 1: the column queue_id is -1"),
    ],
)
def test_a_row_that_is_no_message_is_named(
    module: Any, column: str, kind: pa.DataType, value: Any, said: str
) -> None:
    good = {"body": b"x", "tags": "t", "keys": ["k"], "properties": [("a", "b")], "queue_id": 0}
    columns = {"body": pa.array([b"x", b"y"], pa.binary()), column: pa.array([good[column], value], kind)}
    with pytest.raises(BadRow) as caught:
        frames(module, pa.record_batch(columns))
    assert said in str(caught.value)
