"""Rows into messages: both twins give the same bytes, keys that come from what a row says, and clear refusals."""

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bolide.arrow import _rows, rows_twin
from bolide.arrow import rows as chosen
from bolide.arrow.frames import Frame
from bolide.arrow.row_columns import cut
from bolide.model.errors import BadRow
from bolide.model.java_hash import java_hash
from bolide.model.pairs import parse_properties
from bolide.record.codec import split_batch
from bolide.record.layout import BATCH_ITEM_FIXED_BYTES

PREFIX = "0123456789ABCDEF"
KEY_PAIR_BYTES = len("UNIQ_KEY") + 34
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


@pytest.mark.parametrize("module", [chosen, rows_twin])
def test_rows_that_are_the_same_but_for_their_queue_are_not_the_same_row(module: Any) -> None:
    """A marker for each queue, in whatever order: what is stored of one queue is not taken for that of another."""
    given = pa.record_batch(
        {
            "body": pa.array([b"end of day"] * 4, pa.binary()),
            "queue_id": pa.array([0, 1, 3, None], pa.int32()),
        }
    )
    in_order, reversed_order = (
        {lane: list(ids([(lane, data, count)])) for lane, data, count in frames(module, some, seed=9)}
        for some in (given, given.take(pa.array([3, 2, 1, 0])))
    )
    assert in_order == reversed_order
    assert len({key for keys in in_order.values() for key in keys}) == 4


def test_each_of_a_million_equal_rows_has_a_key_of_its_own() -> None:
    """Found without a look at those of all the rows before it: that would be the better part of an hour."""
    count = 1_000_000 if chosen.RowEncoder is _rows.RowEncoder else 20_000
    given = pa.record_batch({"body": pa.array([b"heartbeat"] * count, pa.binary())})
    encoder = chosen.RowEncoder(PREFIX, seed=9, rows_max=count, size_bytes_max=1 << 30)
    (part,) = cut(given, "t")
    assert encoder.append(part.columns, 0, count) == count
    data, _ = encoder.take(0)
    end = BATCH_ITEM_FIXED_BYTES + len("heartbeat") + KEY_PAIR_BYTES
    assert len({data[at - 17 : at - 1] for at in range(end, len(data) + 1, end)}) == count


@pytest.mark.parametrize("module", [chosen, rows_twin])
def test_keys_that_others_made_up_are_not_ours(module: Any) -> None:
    ours = f"{PREFIX}00000000000000AB"
    forged = [
        "Z" * 16,
        "00000000000000ab",
        "0_0000000000000A",
        "+00000000000000A",
        " 0000000000000A ",
        "0" * 16,
    ]
    keys = [ours, *(PREFIX + own for own in forged), PREFIX, PREFIX + "A" * 17]
    column = pa.array(keys, pa.string()).buffers()
    known = module.IdSet()
    assert (
        known.add_keys(module.Text(None, memoryview(column[1]), memoryview(column[2]), 0), len(keys), PREFIX)
        == 1
    )
    assert len(known) == 1
    assert 0xAB in known


@pytest.mark.parametrize("module", [chosen, rows_twin])
def test_what_brokers_write_of_timers_is_left_out(module: Any) -> None:
    """With it a message that is written again would be no timed message, or a recall."""
    properties = [
        ("TIMER_OUT_MS", "1"),
        ("TIMER_DEL_UNIQKEY", "x"),
        ("INNER_NUM", "2"),
        ("TIMERS", "mine"),
        ("a", "b"),
    ]
    given = pa.record_batch(
        {
            "body": pa.array([b"x"], pa.binary()),
            "properties": pa.array([properties], pa.map_(pa.string(), pa.string())),
            "deliver_at": pa.array([2_000_000_000_000], pa.int64()),
        }
    )
    ((_, data, _),) = frames(module, given)
    ((_, _, kept),) = split_batch(data)
    names = set(parse_properties(bytes(kept).decode()))
    assert names == {"TIMERS", "a", "TIMER_DELIVER_MS", "UNIQ_KEY"}


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("module", [chosen, rows_twin])
def test_no_difference_of_bodies_goes_away_again_whatever_the_seed(module: Any, seed: int) -> None:
    """The highest bit of one word, and the two that it reaches in the next: a product alone does not spread them."""
    one = bytes(16)
    other = bytes(7) + b"\x80" + (1 << 63 | 1 << 31).to_bytes(8, "little")
    given = pa.record_batch({"body": pa.array([one, other], pa.binary())})
    keys = list(ids(frames(module, given, seed=seed)))
    swapped = list(ids(frames(module, given.take(pa.array([1, 0])), seed=seed)))
    assert keys == swapped[::-1], "each has a number of its own, so that neither is the second of the other"


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
    left = Frame("t", lane, data, rows).without(known)
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
