"""How far a recovery need not look: what a checkpoint says, and what a start does with it (check-list RC-02)."""

import errno
import os
import struct
from pathlib import Path

import pytest

from bolide.model.steps import at_once
from bolide.store.checkpoint import FILE_BYTES, Checkpoint, Mark
from bolide.store.disk import File
from bolide.store.disk_os import OsDisk
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import STEP_QUEUES, MessageStore
from tests.unit.store.stage import (
    SEGMENT_BYTES,
    HeldClock,
    WatchedDisk,
    bodies,
    killed,
    make_durable,
    message,
    opened,
    options,
    put,
    put_many,
    queue_bytes,
)

NOW_MS = 1_700_000_000_000


def checkpoint_of(root: Path) -> Checkpoint:
    return Checkpoint.decode((root / "checkpoint").read_bytes())


def reopened(root: Path) -> tuple[MessageStore, int]:
    """The store again, and where its recovery began."""
    store = MessageStore(OsDisk(), options(root), HeldClock())
    return store, store.open().start


def sync_log(store: MessageStore) -> None:
    point = store.durability.next_point()
    assert point is not None
    point.run()
    store.durability.reached(point)


# ---- what it says --------------------------------------------------------------------------------------------


def test_a_clean_stop_writes_where_everything_ends(tmp_path: Path) -> None:
    """RC-02."""
    store = opened(tmp_path)
    appended = put_many(store, 20)
    store.close()
    assert (tmp_path / "checkpoint").stat().st_size == FILE_BYTES
    read = checkpoint_of(tmp_path)
    assert (read.log_ms, read.queues_ms, read.index_ms) == (NOW_MS, NOW_MS, 0)
    assert read.mark == Mark(appended[-1].end, appended[-1].log_offset)


def test_a_checkpoint_speaks_only_of_what_is_synced(tmp_path: Path) -> None:
    """The log is synced up to the tenth message; then the queues are synced, which have all twenty."""
    store = opened(tmp_path)
    first = put_many(store, 10)
    make_durable(store)
    put_many(store, 10)
    checkpoint = store.next_checkpoint()
    assert checkpoint is not None
    assert checkpoint.says.mark == Mark(first[-1].end, first[-1].log_offset)


def test_what_becomes_durable_while_a_checkpoint_is_prepared_is_left_to_the_next_one(tmp_path: Path) -> None:
    """Its queue entries may still be in memory, and a recovery that began behind it would never make them again."""
    store = opened(tmp_path)
    for queue_id in range(2 * STEP_QUEUES):
        store.append([message(body=b"before", queue_id=queue_id)])
    sync_log(store)
    end = store.log.end
    steps = store.checkpointing()
    next(steps)
    store.append([message("U", b"meanwhile")])
    sync_log(store)
    checkpoint = at_once(steps)
    assert checkpoint is not None
    assert checkpoint.says.mark is not None
    assert checkpoint.says.mark.end == end
    checkpoint.sync()
    checkpoint.write()
    killed(store)
    again, start = reopened(tmp_path)
    assert start == end
    assert bodies(again, "U") == [b"meanwhile"]
    assert all(again.queues.end_of("T", queue_id) == 1 for queue_id in range(2 * STEP_QUEUES))


def test_a_checkpoint_looks_at_queues_with_entries_in_memory_and_at_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    for queue_id in range(100):
        store.append([message(queue_id=queue_id)])
    store.write_behind(store.take_touched())
    store.append([message(queue_id=7)])
    store.take_touched()  # somebody will write it, and has not done so yet
    store.append([message(queue_id=8)])
    looked: list[int] = []
    write_behind = ConsumeQueue.write_behind

    def noted(queue: ConsumeQueue) -> None:
        looked.append(queue.tail.key[1])
        write_behind(queue)

    monkeypatch.setattr(ConsumeQueue, "write_behind", noted)
    make_durable(store)
    assert looked == [7, 8]
    assert len(queue_bytes(tmp_path, "T", 7).rstrip(b"\0")) > 20
    store.close()


def test_every_file_and_folder_is_synced_before_the_checkpoint_is_written(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 25)
    put_many(store, 3, "Other", 1)
    disk.synced.clear()
    checkpoint = store.next_checkpoint()
    assert checkpoint is not None
    checkpoint.sync()
    files = {os.path.relpath(path, tmp_path / "consumequeue") for path in disk.synced}
    assert files == {f"T/0/{at:020d}" for at in (0, 200, 400)} | {f"Other/1/{0:020d}"}
    checkpoint.write()
    store.checkpoint_reached(checkpoint)
    assert store.next_checkpoint() is None  # nothing has changed


def test_what_was_taken_for_a_checkpoint_that_failed_is_in_the_next_one(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 5)
    assert store.next_checkpoint() is not None  # its file could not be written
    put_many(store, 1, "Other")
    disk.synced.clear()
    checkpoint = store.next_checkpoint()
    assert checkpoint is not None
    checkpoint.sync()
    assert len(disk.synced) == 2


@pytest.mark.parametrize("full", [errno.ENOSPC, errno.EDQUOT])
def test_on_a_full_disk_the_checkpoint_is_written_over_the_old_one(tmp_path: Path, full: int) -> None:
    """Or nothing could ever be deleted from that disk."""

    class Full(OsDisk):
        def create(self, path: str, size: int, *, reserve: bool) -> File:
            raise OSError(full, os.strerror(full))

    store = opened(tmp_path)
    put_many(store, 5)
    make_durable(store)
    appended = put_many(store, 2)
    point = store.durability.next_point()
    assert point is not None
    point.run()
    store.durability.reached(point)
    checkpoint = store.next_checkpoint()
    assert checkpoint is not None
    checkpoint.sync()
    checkpoint._disk = Full()
    checkpoint.write()
    assert checkpoint_of(tmp_path).mark == Mark(appended[-1].end, appended[-1].log_offset)


# ---- where a recovery begins ---------------------------------------------------------------------------------


def test_a_recovery_begins_at_the_mark(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 50)
    make_durable(store)
    end = store.log.end
    put_many(store, 20)
    expected = bodies(store)
    killed(store)
    store, start = reopened(tmp_path)
    assert start == end
    assert bodies(store) == expected


def test_a_recovery_with_nothing_behind_the_mark_reads_only_the_record_before_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 50)
    make_durable(store)
    end = store.log.end
    killed(store)
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(SEGMENT_BYTES))  # nobody looks there
    store, start = reopened(tmp_path)
    assert start == end == store.log.end
    assert store.reader.queue_range("T", 0) == (0, 50)


def test_a_mark_of_another_log_does_not_count(tmp_path: Path) -> None:
    """The log was put back from an older copy; the checkpoint was not."""
    store = opened(tmp_path)
    put_many(store, 10)
    make_durable(store)
    older = (tmp_path / "commitlog" / f"{0:020d}").read_bytes()
    put_many(store, 10)
    make_durable(store)
    killed(store)
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(older)
    store, start = reopened(tmp_path)
    assert start == 0
    assert bodies(store) == [b"%05d" % number for number in range(10)]


def test_without_a_mark_a_recovery_begins_with_a_segment_of_the_right_time(tmp_path: Path) -> None:
    """As the original chooses it: the newest one that begins with a record from before the checkpoint."""
    clock = HeldClock(NOW_MS)
    store = opened(tmp_path, clock=clock)
    for number in range(120):
        clock.ms = NOW_MS + number * 1000
        put(store, message(body=b"%05d" % number))
    appended_ms = clock.ms
    make_durable(store)
    expected = bodies(store)
    killed(store)
    path = tmp_path / "checkpoint"
    data = bytearray(path.read_bytes())
    struct.pack_into(">q", data, 32, 1)  # the original has been here
    path.write_bytes(data)
    store, start = reopened(tmp_path)
    assert start > 0
    assert start % SEGMENT_BYTES == 0
    head = store.log.head_at(start)
    assert head is not None
    assert head.store_timestamp_ms <= appended_ms - 3000
    following = store.log.head_at(start + SEGMENT_BYTES)
    assert following is None or following.store_timestamp_ms > appended_ms - 3000
    assert bodies(store) == expected


def test_without_any_checkpoint_the_whole_log_is_walked(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 120)
    make_durable(store)
    expected = bodies(store)
    killed(store)
    (tmp_path / "checkpoint").unlink()
    store, start = reopened(tmp_path)
    assert start == 0
    assert bodies(store) == expected


def test_queue_pages_lost_behind_the_mark_are_made_again(tmp_path: Path) -> None:
    """Any page of a queue file may be lost, also one in the middle: later entries prove nothing about earlier ones."""
    store = opened(tmp_path, queue_file_bytes=20_000)
    put_many(store, 300)
    make_durable(store)
    put_many(store, 400)
    expected, entries = bodies(store), queue_bytes(tmp_path)
    killed(store)
    path = tmp_path / "consumequeue" / "T" / "0" / f"{0:020d}"
    for first, last in ((301, 350), (420, 421), (600, 700), (301, 700)):
        with path.open("r+b") as file:
            file.seek(first * 20)
            file.write(bytes((last - first) * 20))
        store = opened(tmp_path, queue_file_bytes=20_000)
        assert bodies(store) == expected
        killed(store)
        assert queue_bytes(tmp_path) == entries


def test_wrong_entries_behind_the_mark_are_put_right(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 30)
    make_durable(store)
    put_many(store, 30)
    expected, entries = bodies(store), queue_bytes(tmp_path)
    killed(store)
    for path in sorted((tmp_path / "consumequeue" / "T" / "0").iterdir())[3:]:
        path.write_bytes(struct.pack(">qiq", 5, 6, 7) * 10)
    store = opened(tmp_path)
    assert bodies(store) == expected
    assert queue_bytes(tmp_path)[: len(entries)] == entries


def test_a_queue_whose_files_are_gone_is_made_again_from_the_whole_log(tmp_path: Path) -> None:
    """The mark says that its entries were durable.  A record behind the mark tells that they are not there."""
    store = opened(tmp_path)
    put_many(store, 30)
    put_many(store, 30, "Other")
    make_durable(store)
    put_many(store, 1)
    expected = bodies(store)
    killed(store)
    for path in (tmp_path / "consumequeue" / "T" / "0").iterdir():
        path.unlink()
    store, start = reopened(tmp_path)
    assert start == 0
    assert bodies(store) == expected
    assert len(bodies(store, "Other")) == 30


def test_a_topic_that_was_deleted_and_made_again_has_its_new_messages_after_a_kill(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 12)
    make_durable(store)
    put_many(store, 30)
    put_many(store, 5, "Other")
    store.delete_topic("T")
    put(store, message(body=b"new 0"), message(body=b"new 1"))
    killed(store)
    for _ in range(2):
        store = opened(tmp_path)
        assert bodies(store) == [b"new 0", b"new 1"]
        assert store.reader.queue_range("T", 0) == (0, 2)
        assert len(bodies(store, "Other")) == 5
        killed(store)


def test_a_damaged_queue_offset_does_not_take_the_queue_with_it(tmp_path: Path) -> None:
    """A zero would say that the topic was made anew; the record behind it says that it was not."""
    store = opened(tmp_path)
    appended = put_many(store, 30)
    killed(store)
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(int(appended[20].log_offset) + 20)
        file.write(bytes(8))
    store = opened(tmp_path)
    assert bodies(store) == [b"%05d" % number for number in range(20)]


# ---- the disk misbehaves -------------------------------------------------------------------------------------


def test_a_store_that_cannot_write_its_abort_file_on_a_full_disk_opens_and_still_knows_that_it_ran(
    tmp_path: Path,
) -> None:
    class Full(OsDisk):
        def create(self, path: str, size: int, *, reserve: bool) -> File:
            if size:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().create(path, size, reserve=reserve)

    store = opened(tmp_path)
    put_many(store, 5)
    store.close()
    store = opened(tmp_path, disk=Full())
    assert len(bodies(store)) == 5
    assert (tmp_path / "abort").exists()


def test_recovered_entries_that_find_no_room_are_served_from_memory_and_written_later(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 35)
    expected = bodies(store)
    killed(store)
    for path in (tmp_path / "consumequeue" / "T" / "0").iterdir():
        path.unlink()

    class Full(WatchedDisk):
        def create(self, path: str, size: int, *, reserve: bool) -> File:
            if self.full and "consumequeue" in path:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().create(path, size, reserve=reserve)

    disk = Full()
    disk.full = True
    store = opened(tmp_path, disk=disk)
    assert bodies(store) == expected
    disk.full = False
    store.write_behind(store.take_touched())
    assert bodies(store) == expected
    assert len(list((tmp_path / "consumequeue" / "T" / "0").iterdir())) == 4


def test_a_record_whose_number_did_not_reach_the_disk_ends_the_log_and_leaves_its_queue_alone(
    tmp_path: Path,
) -> None:
    """A sector ends behind its queue offset, and its last bytes were lost: that says 0, as a new topic would."""
    store = opened(tmp_path)
    (first,) = put(store, message(body=b"kept"))
    (filler,) = put(store, message("Other"))
    put(store, message("Other", body=b"x" * (1024 - 28 - int(filler.end) - int(filler.end - first.end) + 4)))
    (torn,) = put(store, message(body=b"lost"))
    put_many(store, 5, "Other")
    killed(store)
    assert int(torn.log_offset) + 28 == 1024
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(1024 - 1)
        file.write(b"\0")
    store = opened(tmp_path)
    assert store.log.end == torn.log_offset
    assert bodies(store) == [b"kept"]
    assert len(bodies(store, "Other")) == 2


@pytest.mark.parametrize("same_segment", [True, False])
def test_numbers_that_a_log_has_lost_leave_places_that_readers_pass_over(
    tmp_path: Path, same_segment: bool
) -> None:
    """RocketMQ must pass over them too: a gap names a segment's beginning, or the next record stands in."""
    store = opened(tmp_path)
    put_many(store, 5)
    if not same_segment:
        put(store, message("Other", body=b"x" * 3800), message("Other", body=b"x" * 3800))
    late = put_many(store, 2)
    killed(store)
    for number, one in enumerate(late):
        at = int(one.log_offset)
        path = tmp_path / "commitlog" / f"{at - at % SEGMENT_BYTES:020d}"
        data = bytearray(path.read_bytes())
        struct.pack_into(">q", data, at % SEGMENT_BYTES + 20, 8 + number)
        path.write_bytes(data)
    for stop in (killed, lambda store: store.close()):
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (0, 10)
        assert bodies(store) == [b"%05d" % number for number in (0, 1, 2, 3, 4, 0, 1)]
        stop(store)
    first = int(late[0].log_offset)
    wanted = (
        (first, int(late[0].end) - first, 0)
        if same_segment
        else (first - first % SEGMENT_BYTES - SEGMENT_BYTES, 0x7FFFFFFF, 0)
    )
    entries = list(struct.iter_unpack(">qiq", queue_bytes(tmp_path)[: 10 * 20]))
    assert entries[5:8] == [wanted] * 3


def test_a_topic_made_again_leaves_nothing_of_its_old_queues(tmp_path: Path) -> None:
    """Its oldest records have expired, so the walk begins its queue far behind 0, in another file, and then anew."""
    store = opened(tmp_path)
    put_many(store, 150)
    store.delete_topic("T")
    put(store, message(body=b"new 0"), message(body=b"new 1"))
    killed(store)
    for number in range(2):
        (tmp_path / "commitlog" / f"{number * SEGMENT_BYTES:020d}").unlink()
    for _ in range(3):
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (0, 2)
        assert bodies(store) == [b"new 0", b"new 1"]
        store.close()
