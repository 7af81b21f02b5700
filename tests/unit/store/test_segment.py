"""The next segment is made ahead: when, by whom, and what is left of it after a stop of any kind."""

import errno
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bolide.model.errors import StoreUnavailable
from bolide.offline.survey import survey
from bolide.store.cleaning import StoreCleaning
from bolide.store.disk import File
from bolide.store.disk_os import OsDisk
from bolide.store.segment import SegmentToMake
from bolide.store.store import MessageStore
from tests.unit.offline.damaged import examine
from tests.unit.store.stage import (
    SEGMENT_BYTES,
    WatchedDisk,
    bodies,
    killed,
    make_durable,
    message,
    opened,
    put,
)


class ShortDisk(WatchedDisk):
    """The process has no descriptor left for a folder, as long as a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.error = 0
        self.created: list[str] = []

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        self.created.append(path)
        return super().create(path, size, reserve=reserve)

    def sync_dir(self, path: str) -> None:
        if self.error and "commitlog" in path:
            raise OSError(self.error, os.strerror(self.error), path)
        super().sync_dir(path)


def names_in(root: Path) -> list[int]:
    return sorted(int(path.name) for path in (root / "commitlog").iterdir())


def due(store: MessageStore) -> SegmentToMake:
    """The next segment of a store that has used most of its first one."""
    put(store, message(body=b"x" * 3200))
    segment = store.log.next_segment()
    assert segment is not None
    return segment


def roll(store: MessageStore) -> None:
    put(store, message(body=b"y" * 3000))


def test_the_next_segment_is_due_when_three_quarters_are_used_and_not_once_it_is_made(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, message(body=b"x" * 2800))
    assert store.log.next_segment() is None
    put(store, message(body=b"x" * 100))
    segment = store.log.next_segment()
    assert segment is not None
    assert store.log.next_segment() is segment
    segment.make()
    assert store.log.next_segment() is None
    assert names_in(tmp_path) == [0, SEGMENT_BYTES]


def test_a_roll_takes_the_segment_that_is_ready_and_does_nothing_else_to_the_disk(tmp_path: Path) -> None:
    disk = ShortDisk()
    store = opened(tmp_path, disk=disk)
    due(store).make()
    disk.synced.clear()
    disk.created.clear()
    store.append([message(body=b"y" * 3000)])
    assert (disk.synced, disk.created) == ([], [])
    assert (store.log.rolls, store.log.rolls_in_place) == (1, 0)
    assert bodies(store) == [b"x" * 3200, b"y" * 3000]


def test_a_roll_without_a_ready_segment_makes_it_and_is_counted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    due(store)
    roll(store)
    assert (store.log.rolls, store.log.rolls_in_place) == (1, 1)
    assert bodies(store) == [b"x" * 3200, b"y" * 3000]


def test_a_roll_during_the_making_waits_for_it_and_takes_the_same_file(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    segment = due(store)
    begun, may_go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert may_go_on.wait(60)

    disk.before_sync = hold
    with ThreadPoolExecutor(2) as threads:
        making = threads.submit(segment.make)
        assert begun.wait(60)
        disk.before_sync = lambda: None
        rolling = threads.submit(store.log.roll)
        assert not rolling.done()
        may_go_on.set()
        rolling.result(60)
        assert making.result(60) is store.log.current
    assert store.log.rolls_in_place == 1


def test_no_room_ahead_of_time_is_no_error_and_only_the_roll_refuses(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    segment = due(store)
    disk.full = True
    with pytest.raises(StoreUnavailable, match="No space left"):
        segment.make()
    store.append([message(body=b"z" * 100)])
    with pytest.raises(StoreUnavailable, match="No space left"):
        store.append([message(body=b"y" * 3000)])
    disk.full = False
    assert store.log.next_segment() is segment
    segment.make()
    roll(store)
    assert bodies(store) == [b"x" * 3200, b"z" * 100, b"y" * 3000]


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_process_short_of_descriptors_is_refused_for_the_moment_and_the_disk_is_not_blamed(
    tmp_path: Path, error: int
) -> None:
    disk = ShortDisk()
    store = opened(tmp_path, disk=disk)
    put(store, message(body=b"x" * 3200))
    disk.error = error
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="cannot make the next commit-log segment"):
            store.append([message(body=b"y" * 3000)])
    assert store.durability.failure is None
    disk.error = 0
    roll(store)
    assert bodies(store) == [b"x" * 3200, b"y" * 3000]
    store.close()
    assert not (tmp_path / "sync-failed").exists()


def test_a_failed_sync_of_the_next_segment_is_final_and_not_tried_again(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    segment = due(store)

    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk.before_sync = fail
    with pytest.raises(OSError, match="Input/output"):
        segment.make()
    disk.before_sync = lambda: None
    with pytest.raises(StoreUnavailable, match="Input/output"):
        store.append([message(body=b"y" * 3000)])
    assert store.durability.failure is not None


def test_a_clean_stop_leaves_no_segment_that_holds_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    due(store).make()
    store.close()
    assert names_in(tmp_path) == [0]
    assert bodies(opened(tmp_path)) == [b"x" * 3200]


@pytest.mark.parametrize("length", [SEGMENT_BYTES, 1024, 0])
def test_a_segment_that_a_kill_or_power_loss_left_unused_is_deleted_without_a_word(
    tmp_path: Path, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whole after a kill; shorter, or without a length, when power was lost while it was made."""
    store = opened(tmp_path)
    due(store).make()
    killed(store)
    os.truncate(tmp_path / "commitlog" / f"{SEGMENT_BYTES:020d}", length)
    with caplog.at_level(logging.WARNING):
        store = opened(tmp_path)
    assert not any("deleted" in line or "cut" in line for line in caplog.messages)
    assert names_in(tmp_path) == [0]
    roll(store)
    assert bodies(store) == [b"x" * 3200, b"y" * 3000]


@pytest.mark.parametrize("length", [SEGMENT_BYTES, 1024, 0])
def test_an_examination_does_not_call_an_unused_segment_damage(tmp_path: Path, length: int) -> None:
    store = opened(tmp_path)
    due(store).make()
    make_durable(store)
    killed(store)
    os.truncate(tmp_path / "commitlog" / f"{SEGMENT_BYTES:020d}", length)
    assert examine(tmp_path).findings.damages == []
    assert survey(OsDisk(), str(tmp_path)).log_end == store.durability.durable


def test_retention_keeps_the_segment_in_which_the_log_ends_however_many_are_made_ahead(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    roll(store)
    due(store).make()
    make_durable(store)
    assert names_in(tmp_path) == [0, SEGMENT_BYTES, 2 * SEGMENT_BYTES]
    deletable = StoreCleaning(OsDisk(), str(tmp_path), store).deletable()
    assert [segment.base for segment in deletable] == [0]


def test_the_store_tells_how_far_it_is_and_what_it_has_done(tmp_path: Path) -> None:
    store = opened(tmp_path)
    roll(store)
    roll(store)
    figures = store.figures()
    assert (figures.log_start, figures.log_end, figures.messages_appended) == (0, store.log.end, 2)
    assert figures.undurable_bytes == store.log.end
    assert (figures.rolls, figures.rolls_in_place) == (1, 1)
    make_durable(store)
    assert store.figures().undurable_bytes == 0
