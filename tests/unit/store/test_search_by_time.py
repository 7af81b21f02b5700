"""Where in a queue the messages of a time begin, when some of its records or entries are damaged or not there."""

from collections.abc import Collection
from pathlib import Path

import pytest

from bolide.record.codec import RecordHead
from bolide.record.layout import MAGIC_AT
from bolide.store import reading
from bolide.store.store import MessageStore
from tests.unit.store.stage import QUEUE_FILE_BYTES, HeldClock, message, opened, put
from tests.unit.store.test_sealed import flip

COUNT = 100
PER_FILE = QUEUE_FILE_BYTES // 20


def filled(root: Path, damaged: Collection[int] = ()) -> MessageStore:
    """A store with a message for each millisecond from 1 on; of some the heads are damaged."""
    clock = HeldClock(0)
    store = opened(root, clock=clock)
    for number in range(COUNT):
        clock.ms = number + 1
        (place,) = put(store, message())
        if number in damaged:
            flip(root, place.log_offset + MAGIC_AT)
    return store


def wrong(store: MessageStore, damaged: Collection[int], moment: int) -> tuple[list[int], list[int]]:
    """Sound messages that a read from the moment on leaves out, and those that it has too much."""
    found = store.reader.search_offset("T", 0, moment)
    sound = [(number, number + 1) for number in range(COUNT) if number not in damaged]
    left_out = [number for number, stored in sound if number < found and stored >= moment]
    return left_out, [number for number, stored in sound if number >= found and stored < moment]


@pytest.mark.parametrize(
    "damaged",
    [{50}, {49, 50, 51}, {25, 50, 75}, {0}, {99}, set(range(30, 70)), set(range(100)), {*range(100)} - {42}],
    ids=["middle", "around it", "three", "first", "last", "many", "all", "all but one"],
)
def test_damaged_messages_neither_hide_nor_add_others(tmp_path: Path, damaged: set[int]) -> None:
    store = filled(tmp_path, damaged)
    assert [wrong(store, damaged, moment) for moment in range(COUNT + 2)] == [([], [])] * (COUNT + 2)
    for moment in range(COUNT + 2):
        last = store.reader.search_offset("T", 0, moment, upper=True)
        assert all(number in damaged for number in range(last + 1, min(moment, COUNT)))
        assert last == 0 or all(number in damaged or number < moment for number in range(last + 1))
    store.close()


def test_a_queue_file_that_is_missing_neither_hides_nor_adds_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is passed over at once, however much it had."""
    filled(tmp_path).close()
    (tmp_path / "consumequeue" / "T" / "0" / f"{5 * QUEUE_FILE_BYTES:020d}").unlink()
    store = opened(tmp_path)
    monkeypatch.setattr(reading, "LOOKS_MAX", 12)
    missing = range(5 * PER_FILE, 6 * PER_FILE)
    assert [wrong(store, missing, moment) for moment in range(COUNT + 2)] == [([], [])] * (COUNT + 2)
    store.close()


def test_a_long_row_of_damage_is_not_walked_and_what_is_before_it_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = range(20, 90)
    store = filled(tmp_path, damaged)
    monkeypatch.setattr(reading, "LOOKS_MAX", 16)
    looks = 0
    head_at = store.reader.head_at

    def counted(log_offset: int) -> RecordHead | None:
        nonlocal looks
        looks += 1
        return head_at(log_offset)

    monkeypatch.setattr(store.reader, "head_at", counted)
    assert [wrong(store, damaged, moment)[0] for moment in range(COUNT + 2)] == [[]] * (COUNT + 2)
    assert looks <= (COUNT + 2) * 16
    store.close()
