"""The timer's index when power loss has taken what its newest pages speak of."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from bolide.model.steps import at_once
from bolide.store.timer import index as index_module
from bolide.store.timer import wheel as wheel_module
from bolide.store.timer.index import TimerIndex
from bolide.store.timer.layout import DUE, NOWHERE, SLOT_BYTES
from bolide.store.timer.point import TimerPoint
from bolide.store.timer.units import Unit
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
