"""A log's bytes into columns: what is wanted is taken, what is no record is told, and both builders agree."""

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.arrow import _columns, columns_twin
from bolide.arrow.columns_twin import BLANK, CUT_OFF, DONE, UNSOUND
from bolide.model.message import SysFlag, format_properties
from bolide.record.layout import MAGIC_BLANK
from tests.unit.arrow.test_columns import NAMES, record

NEVER = 2**63 - 1
PAIRS: Sequence[tuple[Any, Any]] = (
    (_columns.ColumnBuilder, _columns.LogFilter),
    (columns_twin.ColumnBuilder, columns_twin.LogFilter),
)
both = pytest.mark.parametrize(("builder", "log_filter"), PAIRS, ids=["compiled", "readable"])


def log_of(*changes: dict[str, Any], base: int = 0) -> bytes:
    """Records behind each other, each with the place that it has."""
    data = b""
    for number, change in enumerate(changes):
        data += record(**({"queue_offset": number, "log_offset": base + len(data)} | change))
    return data


def all_of(topic: bytes, queue_id: int) -> int:
    return 0


@both
def test_records_are_taken_by_queue_place_and_time(builder: Any, log_filter: Any) -> None:
    data = log_of(
        {"topic": b"a", "queue_id": 0},
        {"topic": b"b", "queue_id": 0},
        {"topic": b"a", "queue_id": 1},
        {"topic": b"a", "queue_id": 0, "store_timestamp_ms": 1_700_000_000_500},
        {"topic": b"a", "queue_id": 0},
        base=1000,
    )
    asked = []

    def opens_at(topic: bytes, queue_id: int) -> int:
        asked.append((topic, queue_id))
        return {(b"a", 0): 1001, (b"a", 1): 0}.get((topic, queue_id), NEVER)

    made = builder("b", ["queueOffset"])
    wanted = log_filter(opens_at, since_ms=1_700_000_000_001, until_ms=1_700_000_000_500)
    assert made.append_log(data, 0, len(data), 1000, wanted) == (len(data), DONE)
    assert list(made.take()["queueOffset"][1].cast("q")) == [2, 4]
    assert asked == [(b"a", 0), (b"b", 0), (b"a", 1)]  # each queue once


@both
def test_halves_of_transactions_are_of_no_queue(builder: Any, log_filter: Any) -> None:
    data = log_of(
        {"sys_flag": SysFlag.PREPARED}, {"sys_flag": SysFlag.ROLLBACK}, {"sys_flag": SysFlag.COMMIT}
    )
    made = builder("b", ["queueOffset"])
    made.append_log(data, 0, len(data), 0, log_filter(all_of))
    assert list(made.take()["queueOffset"][1].cast("q")) == [2]


@both
def test_it_stops_at_what_is_no_record_of_this_place_and_says_why(builder: Any, log_filter: Any) -> None:
    data = log_of({}, {})
    size = len(data) // 2
    wrong_body = bytearray(data)
    wrong_body[size + 88] ^= 1

    def stop(data: bytes, end: int | None = None, base: int = 0, opens_at: Any = all_of) -> tuple[int, int]:
        found: tuple[int, int] = builder("b", ["queueOffset"]).append_log(
            data, 0, len(data) if end is None else end, base, log_filter(opens_at)
        )
        return found

    assert stop(data) == (2 * size, DONE)
    assert stop(data, end=size) == (size, DONE)
    assert stop(data[:-1]) == (size, CUT_OFF)
    assert stop(data[: size + 7]) == (size, CUT_OFF)
    assert stop(data[: size + 50]) == (size, CUT_OFF)
    assert stop(data[:size] + struct.pack(">II", 100, MAGIC_BLANK) + bytes(92)) == (size, BLANK)
    assert stop(data[:size] + bytes(100)) == (size, UNSOUND)
    assert stop(data, base=8) == (0, UNSOUND)
    assert stop(bytes(wrong_body)) == (size, UNSOUND)
    assert stop(bytes(wrong_body), opens_at=lambda topic, number: NEVER) == (
        2 * size,
        DONE,
    )  # nobody asks for it


@both
def test_only_messages_with_a_wanted_key_are_kept(builder: Any, log_filter: Any) -> None:
    keys = ["k1", "k1 k2", "", "k22", "k3  k2", "k"]
    data = log_of(*({"properties": format_properties({"KEYS": key, "a": "b"}).encode()} for key in keys))
    made = builder("b", ["queueOffset"], keys=["k2"])
    made.append_log(data, 0, len(data), 0, log_filter(all_of))
    assert list(made.take()["queueOffset"][1].cast("q")) == [1, 4]


@both
def test_a_full_batch_stops_between_two_records(builder: Any, log_filter: Any) -> None:
    data = log_of({}, {}, {})
    made = builder("b", NAMES, rows_max=2)
    position, why = made.append_log(data, 0, len(data), 0, log_filter(all_of))
    assert (position, why, made.rows, made.full) == (2 * len(data) // 3, DONE, 2, True)


@both
def test_a_part_that_is_not_there_is_refused(builder: Any, log_filter: Any) -> None:
    for at, end in ((-1, 1), (2, 1), (0, 4)):
        with pytest.raises(ValueError, match="there is no part"):
            builder("b", NAMES).append_log(b"abc", at, end, 0, log_filter(all_of))


@settings(max_examples=300)
@given(st.data())
def test_both_stop_at_the_same_place_of_broken_bytes_with_the_same_rows(choose: st.DataObject) -> None:
    """Goal: no bytes crash the compiled one.  Method: change some, cut some, compare with the twin."""
    topics = st.sampled_from([b"a", b"b", b"orders", b"\xff"])
    changes = choose.draw(
        st.lists(
            st.fixed_dictionaries({"topic": topics, "queue_id": st.integers(-1, 2)}), min_size=1, max_size=5
        )
    )
    broken = bytearray(log_of(*changes))
    for _ in range(choose.draw(st.integers(0, 3))):
        broken[choose.draw(st.integers(0, len(broken) - 1))] = choose.draw(st.integers(0, 255))
    data = bytes(broken[: choose.draw(st.integers(0, len(broken)))])
    found = []
    for builder, log_filter in PAIRS:
        made = builder("b", NAMES)
        stop = made.append_log(
            data, 0, len(data), 0, log_filter(lambda topic, number: 0 if topic != b"b" else 200)
        )
        taken = {
            name: [None if one is None else bytes(one) for one in buffers]
            for name, buffers in made.take().items()
        }
        found.append((stop, taken))
    assert found[0] == found[1]
