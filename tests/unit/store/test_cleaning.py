"""Deleting segments and what pointed into them, on a real store (check-list RT-03)."""

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bolide.model.filter import EVERYTHING
from bolide.store import cleaning as cleaning_module
from bolide.store.cleaning import SLICE_QUEUES, StoreCleaning
from bolide.store.disk_os import OsDisk
from bolide.store.reading import PullStatus
from bolide.store.store import MessageStore
from tests.unit.store.stage import (
    LIMITS,
    SEGMENT_BYTES,
    HeldClock,
    bodies,
    killed,
    make_durable,
    message,
    opened,
    put,
    put_many,
)


def cleaning_of(store: MessageStore, root: Path, disk: OsDisk | None = None) -> StoreCleaning:
    return StoreCleaning(disk or OsDisk(), str(root), store)


def delete_oldest(cleaning: StoreCleaning, store: MessageStore, count: int = 1) -> None:
    """What the broker does, without its turns and threads."""
    make_durable(store)
    for _ in range(count):
        oldest = cleaning.deletable()[0]
        for _ in cleaning.expire_queues(oldest.base + oldest.size):
            pass
        cleaning.delete_file(oldest)
        cleaning.forget(oldest)
        cleaning.let_go(oldest)


def held(cleaning: StoreCleaning) -> dict[str, bool]:
    """The topics that have queues, and whether messages of them are left."""
    return {topic: cleaning.has_messages(topic) for topic in cleaning.topics()}


def trim(cleaning: StoreCleaning) -> list[str]:
    return [folder for folder in cleaning.trim_queues() if folder is not None]


def segments_in(root: Path) -> list[int]:
    return sorted(int(path.name) for path in (root / "commitlog").iterdir())


def queue_files(root: Path, topic: str = "T", queue_id: int = 0) -> list[int]:
    return sorted(int(path.name) for path in (root / "consumequeue" / topic / str(queue_id)).iterdir())


def first_of(store: MessageStore, log_start: int) -> int:
    """The first queue offset whose record lies in the log, found the slow way."""
    queue = store.queues.get("T", 0)
    entries = ((offset, queue.entry(offset)) for offset in range(queue.end))
    return next(offset for offset, entry in entries if entry is not None and entry[0] >= log_start)


def test_the_queue_begins_where_the_log_begins_and_everything_behind_is_still_there(tmp_path: Path) -> None:
    """RT-03."""
    store = opened(tmp_path)
    put_many(store, 200)
    expected = first_of(store, 2 * SEGMENT_BYTES)
    assert 0 < expected < 200
    delete_oldest(cleaning_of(store, tmp_path), store, 2)
    assert store.log.start == 2 * SEGMENT_BYTES
    assert segments_in(tmp_path)[0] == 2 * SEGMENT_BYTES
    assert store.reader.queue_range("T", 0) == (expected, 200)
    assert bodies(store) == [b"%05d" % number for number in range(expected, 200)]


def test_a_pull_below_the_first_offset_is_sent_to_it(tmp_path: Path) -> None:
    """RT-03."""
    store = opened(tmp_path)
    put_many(store, 200)
    delete_oldest(cleaning_of(store, tmp_path), store)
    start, end = store.reader.queue_range("T", 0)
    result = store.reader.pull("T", 0, 0, limits=LIMITS)
    assert (result.status, result.next_offset) == (PullStatus.OFFSET_TOO_SMALL, start)
    assert (result.offset_min, result.offset_max) == (start, end)


def test_the_earliest_times_are_those_of_what_is_left(tmp_path: Path) -> None:
    clock = HeldClock()
    store = opened(tmp_path, clock=clock)
    cleaning = cleaning_of(store, tmp_path)
    for number in range(200):
        clock.ms += 1000
        put(store, message(body=b"%05d" % number))
    began = clock.ms - 199_000
    assert cleaning.earliest_stored_ms() == store.reader.earliest_store_time("T", 0) == began
    delete_oldest(cleaning, store, 3)
    start, _ = store.reader.queue_range("T", 0)
    assert cleaning.earliest_stored_ms() == began + start * 1000
    assert store.reader.earliest_store_time("T", 0) == began + start * 1000
    assert store.reader.search_offset("T", 0, 0) == start
    assert store.reader.search_offset("T", 0, began + 150_000) == 150


def test_a_queue_of_which_nothing_is_left_keeps_its_number(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 15, topic="Old")
    put_many(store, 200)
    cleaning = cleaning_of(store, tmp_path)
    delete_oldest(cleaning, store, 3)
    trim(cleaning)
    assert store.reader.queue_range("Old", 0) == (15, 15)
    assert queue_files(tmp_path, "Old") == [200]
    result = store.reader.pull("Old", 0, 3, limits=LIMITS)
    assert (result.status, result.next_offset) == (PullStatus.OFFSET_TOO_SMALL, 15)
    (appended,) = put(store, message("Old", b"again"))
    assert appended.queue_offset == 15
    store.close()
    assert opened(tmp_path).reader.queue_range("Old", 0) == (15, 16)


@pytest.mark.parametrize("leave", [MessageStore.close, killed])
def test_a_start_after_deletion_finds_the_same(tmp_path: Path, leave: Callable[[MessageStore], None]) -> None:
    store = opened(tmp_path)
    put_many(store, 200)
    put_many(store, 15, topic="Other")
    cleaning = cleaning_of(store, tmp_path)
    delete_oldest(cleaning, store, 2)
    trim(cleaning)
    ranges = {topic: store.reader.queue_range(topic, 0) for topic in ("T", "Other")}
    messages = bodies(store)
    leave(store)
    store = opened(tmp_path)
    assert {topic: store.reader.queue_range(topic, 0) for topic in ("T", "Other")} == ranges
    assert bodies(store) == messages
    assert [int(one.queue_offset) for one in put_many(store, 1)] == [200]


@pytest.mark.parametrize("step", ["expired", "deleted", "forgotten", "trimmed once"])
def test_a_kill_between_any_two_steps_costs_nothing(tmp_path: Path, step: str) -> None:
    """Goal: any order of what reached the disk is a store that opens.  Method: stop after each step, and start."""
    store = opened(tmp_path)
    put_many(store, 200)
    make_durable(store)
    cleaning = cleaning_of(store, tmp_path)
    oldest = cleaning.deletable()[0]
    for _ in cleaning.expire_queues(oldest.base + oldest.size):
        pass
    if step != "expired":
        cleaning.delete_file(oldest)
    if step in ("forgotten", "trimmed once"):
        cleaning.forget(oldest)
        cleaning.let_go(oldest)
    if step == "trimmed once":
        assert next(cleaning.trim_queues())
    killed(store)
    store = opened(tmp_path)
    start, end = store.reader.queue_range("T", 0)
    assert (start == 0) == (step == "expired")
    assert end == 200
    assert bodies(store) == [b"%05d" % number for number in range(start, 200)]


def test_queue_files_of_expired_entries_go_and_the_others_stay(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 200)
    cleaning = cleaning_of(store, tmp_path)
    delete_oldest(cleaning, store, 2)
    start, _ = store.reader.queue_range("T", 0)
    folders = trim(cleaning)
    assert queue_files(tmp_path)[0] == start * 20 // 200 * 200
    assert len(folders) == start // 10
    assert bodies(store) == [b"%05d" % number for number in range(start, 200)]
    assert trim(cleaning) == []


def test_the_last_queue_file_stays_even_when_it_is_full_and_expired(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 20, topic="Old")  # exactly two files
    put_many(store, 200)
    cleaning = cleaning_of(store, tmp_path)
    delete_oldest(cleaning, store, 3)
    trim(cleaning)
    assert queue_files(tmp_path, "Old") == [200]
    killed(store)
    assert opened(tmp_path).reader.queue_range("Old", 0) == (20, 20)


def test_deleting_a_queue_file_closes_it(tmp_path: Path) -> None:
    """An open descriptor would keep its space for as long as the broker runs."""
    store = opened(tmp_path)
    put_many(store, 200)
    bodies(store)  # every file has been read
    cleaning = cleaning_of(store, tmp_path)
    delete_oldest(cleaning, store, 3)
    trim(cleaning)
    assert [path for path in open_files() if path.endswith("(deleted)") and str(tmp_path) in path] == []


def test_a_deleted_segment_gives_back_its_descriptor_and_memory(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 200)
    cursor = store.reader.cursor("T", 0)  # a consumer that has read the oldest segment and then nothing more
    assert store.reader.pull_at(cursor, 0, LIMITS, EVERYTHING).status is PullStatus.FOUND
    delete_oldest(cleaning_of(store, tmp_path), store, 2)
    name = str(tmp_path / "commitlog" / f"{0:020d}")
    assert not [path for path in open_files() if path.startswith(name)]
    assert name not in Path("/proc/self/maps").read_text()
    assert store.reader.pull_at(cursor, 0, LIMITS, EVERYTHING).status is PullStatus.OFFSET_TOO_SMALL


def test_a_view_that_somebody_still_reads_stays_valid(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 200)
    view = store.log.segments[0].view[:91]
    before = bytes(view)
    delete_oldest(cleaning_of(store, tmp_path), store)
    assert bytes(view) == before
    (size,) = struct.unpack_from(">I", view)
    assert size > 91


def open_files() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return found


def test_the_newest_segment_and_what_is_not_durable_cannot_be_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    cleaning = cleaning_of(store, tmp_path)
    put_many(store, 200)
    assert cleaning.deletable() == []  # the sync thread may be busy with any of them
    make_durable(store)
    assert [part.base for part in cleaning.deletable()] == segments_in(tmp_path)[:-1]


def test_one_folder_sync_stands_between_two_deleted_segments(tmp_path: Path) -> None:
    """Two at once could come back in the wrong order, and a log with a hole does not open."""

    class Watching(OsDisk):
        def __init__(self) -> None:
            self.steps: list[str] = []

        def delete(self, path: str) -> None:
            self.steps.append("delete")
            super().delete(path)

        def sync_dir(self, path: str) -> None:
            self.steps.append("sync")
            super().sync_dir(path)

    disk = Watching()
    store = opened(tmp_path)
    put_many(store, 200)
    delete_oldest(cleaning_of(store, tmp_path, disk), store, 3)
    assert disk.steps == ["delete", "sync"] * 3


def test_only_queues_that_point_before_the_new_start_are_looked_at(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, *(message("T", b"x" * 100, queue_id=number) for number in range(200)))
    put_many(store, 200, queue_id=500)
    cleaning = cleaning_of(store, tmp_path)
    make_durable(store)
    first, second, third = (part.base + part.size for part in cleaning.deletable()[:3])
    turns = len(list(cleaning.expire_queues(first)))
    assert turns == 201 // SLICE_QUEUES  # at first nothing is known
    expired = [key for key, start in starts(store).items() if start > 0]
    assert 0 < len(expired) < 100
    assert list(cleaning.expire_queues(first)) == []
    assert len(list(cleaning.expire_queues(second))) < turns
    assert len(list(cleaning.expire_queues(third))) < turns


def test_queues_that_need_nothing_are_passed_in_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand of them take as long as a slow request."""
    monkeypatch.setattr(cleaning_module, "SLICE_PASSED", 50)
    store = opened(tmp_path)
    put(store, *(message("T", b"x", queue_id=number) for number in range(201)))
    cleaning = cleaning_of(store, tmp_path)
    for _ in cleaning.expire_queues(store.log.start):
        pass
    assert len(list(cleaning.expire_queues(store.log.start))) == 4
    assert list(cleaning.trim_queues()) == [None] * 4


def starts(store: MessageStore) -> dict[tuple[str, int], int]:
    return {queue.tail.key: int(queue.start) for queue in store.queues}


def test_a_segment_is_as_old_as_the_message_behind_it_and_as_its_file(tmp_path: Path) -> None:
    clock = HeldClock()
    store = opened(tmp_path, clock=clock)
    behind: list[int] = []
    for _ in range(100):
        clock.ms += 1000
        before = len(store.log.segments)
        put(store, message(body=b"x" * 200))
        if len(store.log.segments) > before:
            behind.append(clock.ms)
    make_durable(store)
    cleaning = cleaning_of(store, tmp_path)
    os.utime(store.log.segments[0].file.path, (5, 5))
    assert [times.stored_ms for times in cleaning.times()] == behind
    assert next(cleaning.times()).modified_ms == 5000


def test_topics_are_told_with_whether_messages_are_left(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 5, topic="Old")
    put_many(store, 200)
    cleaning = cleaning_of(store, tmp_path)
    assert held(cleaning) == {"Old": True, "T": True}
    delete_oldest(cleaning, store, 2)
    assert held(cleaning) == {"Old": False, "T": True}


def test_a_stop_leaves_no_queue_file_of_which_everything_is_expired(tmp_path: Path) -> None:
    """The original looks for a queue's first entry in its first file only; else it would say 0."""
    store = opened(tmp_path)
    put_many(store, 200)
    put_many(store, 20, topic="Other")
    delete_oldest(cleaning_of(store, tmp_path), store, 3)
    start, _ = store.reader.queue_range("T", 0)
    assert queue_files(tmp_path)[0] == 0
    store.close()
    assert queue_files(tmp_path)[0] == start * 20 // 200 * 200
    assert queue_files(tmp_path, "Other") == [0, 200]
    assert opened(tmp_path).reader.queue_range("T", 0) == (start, 200)
