"""The timer's index when power loss has taken what its newest pages speak of."""

import zlib
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.model.steps import at_once
from bolide.store.file_names import name_of
from bolide.store.timer import index as index_module
from bolide.store.timer import wheel as wheel_module
from bolide.store.timer.index import TimerIndex
from bolide.store.timer.layout import (
    DUE,
    NOWHERE,
    OLDER,
    OLDER_OWN,
    OWN_AT,
    POINT,
    SLOT_BYTES,
    SUM,
    UNIT_BYTES,
)
from bolide.store.timer.point import TimerPoint, decode_point, encode_point
from bolide.store.timer.units import Unit
from bolide.store.timer.wheel import Slot, Wheel
from tests.crash.disk import SimDisk

STEP_MS = 1000
SLOTS = 600
START_MS = 1_700_000_000_000
FILE_BYTES = 4096


@pytest.fixture(autouse=True)
def small_wheel() -> Iterator[None]:
    with (
        patch.object(index_module, "SLOTS", SLOTS),
        patch.object(wheel_module, "SLOTS", SLOTS),
        patch.object(wheel_module, "WHEEL_BYTES", SLOTS * SLOT_BYTES),
    ):
        yield


def opened(disk: SimDisk, records: set[int]) -> TimerIndex:
    """An index whose log has records at these places."""
    index = TimerIndex(disk, "/data", STEP_MS, FILE_BYTES)
    at_once(index.opening(lambda log_offset, size: log_offset if log_offset in records else None))
    return index


def add(index: TimerIndex, log_offset: int, due_ms: int) -> None:
    index.add(Unit(NOWHERE, DUE, START_MS, due_ms, log_offset, 100, 0))
    index.units.write()


def write(index: TimerIndex, point: TimerPoint) -> None:
    index.write(at_once(index.writing(point)), START_MS)
    index.written()


def waiting(index: TimerIndex, due_ms: int) -> list[int]:
    slot = index.wheel.slot(START_MS + due_ms)
    return [unit.log_offset for _, unit in index.chain(slot.last)]


def point_of(index: TimerIndex, queue_offset: int) -> TimerPoint:
    return TimerPoint(START_MS, index.units.end, queue_offset, 0, STEP_MS)


def prepared() -> SimDisk:
    """The wheel is newer than the point: a message came into a slot that had one."""
    disk = SimDisk()
    disk.make_dirs("/data/config")
    index = opened(disk, set())
    add(index, 0, 5_000)
    add(index, 1, 9_000)
    point = point_of(index, 2)
    add(index, 2, 5_500)
    write(index, point)
    return disk.left_by_a_kill()


def test_messages_that_share_a_slot_with_a_lost_one_still_wait() -> None:
    index = opened(prepared(), {0, 1})
    assert waiting(index, 5_000) == [0]
    assert waiting(index, 9_000) == [1]
    assert (index.pending, index.slots_ahead) == (2, 2)


def test_a_unit_in_the_place_of_a_lost_one_is_not_taken_for_it() -> None:
    """The next process files another message there, and dies before it writes its wheel."""
    disk = prepared()
    index = opened(disk, {0, 1})
    add(index, 2, 9_500)
    index = opened(disk.left_by_a_kill(), {0, 1, 2})
    assert waiting(index, 5_000) == [0]
    assert waiting(index, 9_000) == [2, 1]
    assert index.pending == 3


def test_units_that_a_killed_process_has_not_synced_are_synced_before_a_point_covers_them() -> None:
    disk = prepared()
    index = opened(disk, {0, 1})
    add(index, 2, 5_700)
    disk = disk.left_by_a_kill()
    index = opened(disk, {0, 1, 2})
    synced: list[str] = []
    disk.on_step = lambda kind, path: synced.append(path) if kind == "sync" else None
    write(index, point_of(index, 3))
    assert any("timerlog" in path for path in synced)


@pytest.mark.parametrize("at", [0, 3, 20, 64, 70, 80, 90, 98])
def test_a_point_of_ours_with_a_flipped_bit_is_no_point(at: int) -> None:
    """A time of delivery that is too late would make waiting messages delivered ones."""
    page = bytearray(encode_point(TimerPoint(5_000, 104, 3, 17, 1_000, 4), 1, 2))
    assert decode_point(bytes(page)) == TimerPoint(5_000, 104, 3, 17, 1_000, 4)
    page[at] ^= 0x10
    assert decode_point(bytes(page)) is None


def test_a_point_of_ours_from_before_slots_were_counted_is_read() -> None:
    told = POINT.pack(5_000, 104, 3, 3, 0, 1, 2)
    own = OLDER_OWN.pack(OLDER, 17, 1_000)
    page = told.ljust(OWN_AT, b"\0") + own + SUM.pack(zlib.crc32(told + own))
    assert decode_point(page.ljust(4096, b"\0")) == TimerPoint(5_000, 104, 3, 17, 1_000, slots_ahead=-1)


def test_a_point_of_the_original_has_no_mark() -> None:
    page = POINT.pack(5_000, 104, 3, 3, 0, 1, 2)
    for data in (page, page.ljust(4096, b"\0")):
        assert decode_point(data) == TimerPoint(5_000, 104, 3)


@pytest.mark.parametrize("ahead", [1, 250, SLOTS - 1, SLOTS, 7 * SLOTS + 3, None])
def test_the_next_slot_that_holds_something_is_found_however_far_it_is(ahead: int | None) -> None:
    """Round the ring, and more than once round it, over slots that are over or were emptied."""
    wheel = Wheel(SimDisk(), "/data", STEP_MS)
    wheel.put(START_MS - STEP_MS, Slot(0, 0, 1))
    wheel.put(START_MS + 10 * STEP_MS, Slot(NOWHERE, NOWHERE, 0))
    end_ms = START_MS + 9 * SLOTS * STEP_MS
    if ahead is not None:
        wheel.put(START_MS + ahead * STEP_MS, Slot(0, 0, 1))
    with patch.object(wheel_module, "SLOTS_PER_LOOK", 100):
        found = at_once(wheel.next_used(START_MS, end_ms))
    assert found == (end_ms if ahead is None else START_MS + ahead * STEP_MS)


def test_a_point_file_of_zeros_says_nothing() -> None:
    """A file that was made and never written, or lost what was; all slots would wait to be delivered again."""
    assert decode_point(bytes(4096)) is None
    assert decode_point(bytes(56)) is None


def test_what_was_delivered_is_over_also_where_the_log_is_as_far_ahead_as_a_unit_can_say() -> None:
    """The clock was set back by 24.8 days, and the message came too late for its own slot."""
    disk = SimDisk()
    disk.make_dirs("/data/config")
    index = opened(disk, set())
    for _ in range(2):
        index.add(Unit(NOWHERE, DUE, START_MS - INT32_MIN, INT32_MIN, 0, 100, 0))
    index.units.write()
    index.keep_only(START_MS, {UNIT_BYTES})
    delivered, waits = index.units.read(0), index.units.read(UNIT_BYTES)
    assert delivered is not None
    assert waits is not None
    assert (delivered.time_ms, waits.time_ms) == (START_MS - 1, START_MS)
    assert [at for at, _ in index.slot_units(START_MS)] == [UNIT_BYTES]


@pytest.mark.parametrize(
    ("messages", "recalls", "is_kept"),
    [(-1, 1, True), (INT32_MIN, 0, False), (INT32_MAX, 0, False), (1, INT32_MAX, False)],
)
def test_an_index_is_made_again_where_a_slot_counts_what_cannot_be(
    messages: int, recalls: int, is_kept: bool
) -> None:
    """Nothing could be filed there without leaving 32 bits.  A recall of nothing leaves less than no message."""
    disk = SimDisk()
    disk.make_dirs("/data/config")
    index = opened(disk, set())
    add(index, 0, 5_000)
    index.wheel.put(START_MS + 5_000, Slot(0, 0, messages, recalls))
    write(index, point_of(index, 1))
    index = opened(disk, {0})
    assert waiting(index, 5_000) == ([0] if is_kept else [])
    assert index.pending == (messages if is_kept else 0)


@pytest.mark.parametrize("place", [10, UNIT_BYTES])
def test_an_index_is_made_again_where_its_units_are_in_a_file_of_another_place(place: int) -> None:
    """A place that is no multiple of the files' length: units would be read from between two files."""
    disk = SimDisk()
    disk.make_dirs("/data/config")
    index = opened(disk, set())
    count = FILE_BYTES // UNIT_BYTES
    for number in range(count):
        add(index, number, 5_000)
    write(index, point_of(index, count))
    index.close()
    disk.rename(f"/data/timerlog/{name_of(0)}", f"/data/timerlog/{name_of(place)}")
    index = opened(disk, set(range(count)))
    assert (index.units.end, index.pending, waiting(index, 5_000)) == (0, 0, [])
