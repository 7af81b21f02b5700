"""What the crash states have found, each as its shortest story."""

import errno
import itertools
import os
import random

import pytest

from bolide.model.errors import StoreError, StoreUnavailable
from bolide.store.store import MessageStore
from tests.crash.disk import SimDisk
from tests.crash.ledger import read_queue
from tests.crash.life import ROOT, Life
from tests.unit.store.stage import body_of

KEY = b"UNIQ_KEY\x01K\x02"


def lives(seed: int = 1) -> Life:
    life = Life(seed)
    life.start()
    return life


def append(life: Life, *bodies: bytes) -> None:
    life.append_to(("T", 0), [(body, KEY) for body in bodies])


def found(life: Life, disk: SimDisk) -> list[bytes]:
    store = MessageStore(disk, life.options, life.clock)
    store.open()
    point = store.durability.next_point()
    if point is not None:
        point.run()
        store.durability.reached(point)
    return [body_of(record) for record in read_queue(store, ("T", 0))[1]]


def sync(life: Life) -> None:
    life.begin_sync()
    life.end_sync()
    life.begin_checkpoint()
    life.end_checkpoint()


def test_queue_files_made_by_a_killed_process_are_synced_with_their_names() -> None:
    """The next process found them in their folders and took that for durable; then power was lost."""
    life = lives()
    life.append_to(("Orders", 0), [(b"another queue", KEY)])
    sync(life)
    append(life, b"a")
    life.write_behind()
    life.kill()
    sync(life)
    for seed in range(50):
        assert found(life, life.disk.after_power_loss(random.Random(seed))) == [b"a"]


def test_what_a_failed_sync_has_left_is_written_again_by_the_next_process() -> None:
    """The kernel took its pages for clean, so the next process synced them in vain and promised what it read."""
    life = lives()
    append(life, b"a")
    life.begin_sync()
    life.disk.on_step = failing_sync
    with pytest.raises(OSError, match="Input/output"):
        life.end_sync()
    life.disk.on_step = lambda kind, path: None
    life.kill()
    sync(life)
    for seed in range(50):
        assert found(life, life.disk.after_power_loss(random.Random(seed))) == [b"a"]


def failing_sync(kind: str, path: str) -> None:
    if kind == "sync":
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)


def test_old_bytes_that_a_failed_sync_has_not_erased_do_not_stay_behind_the_end_of_the_log() -> None:
    """The kernel took the zeros for written; old bytes could then complete a new record of which half was lost."""
    life = lives(3)
    append(life, b"a" * 3000)
    append(life, b"b" * 3000)
    disk = with_a_part_of_the_log(life)
    steps: list[str] = []

    def fail_behind_a_write(kind: str, path: str) -> None:
        steps.append(kind)
        if "commitlog" in path and "write" in steps:
            failing_sync(kind, path)

    disk.on_step = fail_behind_a_write
    with pytest.raises(StoreError, match="Input/output"):
        MessageStore(disk, life.options, life.clock).open()
    disk.on_step = lambda kind, path: None
    disk.after_kill()
    life.disk = disk
    life.start()
    for seed in range(50):
        files = disk.after_power_loss(random.Random(seed)).files()
        assert not any(files[f"{ROOT}/commitlog/{0:020d}"][life.store.log.end :])


def with_a_part_of_the_log(life: Life) -> SimDisk:
    """What power loss may leave: a later page of the log, and not the one before it."""
    for seed in itertools.count():
        disk = life.disk.after_power_loss(random.Random(seed))
        probe = MessageStore(disk.after_power_loss(random.Random(seed)), life.options, life.clock)
        if probe.open().has_erased:
            return disk
    raise AssertionError


def test_an_entry_that_a_failed_sync_has_not_erased_does_not_come_back() -> None:
    """As below: what the kernel takes for written, it will never write."""
    life = lives()
    append(life, b"lost with the power")
    life.write_behind()
    store = MessageStore(disk := with_entry_but_no_record(life), life.options, life.clock)
    store.open()
    checkpoint = store.next_checkpoint()
    assert checkpoint is not None
    disk.on_step = failing_sync
    with pytest.raises(OSError, match="Input/output") as failed:
        checkpoint.sync()
    store.durability.failed(failed.value)
    disk.on_step = lambda kind, path: None
    disk.after_kill()
    life.resume(disk)
    life.append_to(("Orders", 0), [(b"at the same place", KEY)])
    sync(life)
    for seed in range(100):
        assert found(life, life.disk.after_power_loss(random.Random(seed))) == []


def test_an_entry_that_a_killed_process_has_erased_does_not_come_back() -> None:
    """The next process found nothing to erase and did not sync it; the old entry then pointed at another message."""
    life = lives()
    append(life, b"lost with the power")
    life.write_behind()
    store = MessageStore(disk := with_entry_but_no_record(life), life.options, life.clock)
    store.open()
    disk.after_kill()
    life.resume(disk)
    life.append_to(("Orders", 0), [(b"at the same place", KEY)])
    sync(life)
    for seed in range(100):
        after = life.disk.after_power_loss(random.Random(seed))
        assert found(life, after) == []
        assert found(life, after.after_power_loss(random.Random(seed))) == []


def with_entry_but_no_record(life: Life) -> SimDisk:
    """What power loss may leave: the page of the queue, not that of the log."""
    for seed in itertools.count():
        disk = life.disk.after_power_loss(random.Random(seed))
        files = disk.files()
        if any(any(data) for path, data in files.items() if "consumequeue/T/0" in path) and not any(
            any(data) for path, data in files.items() if "commitlog" in path
        ):
            return disk
    raise AssertionError


def test_the_length_of_a_segment_that_a_killed_process_has_made_is_synced() -> None:
    """Or power loss cut the segment off behind its first messages, and the next start asked for a human."""
    life = Life(1)
    life.disk.on_step = kill_at_first_sync
    with pytest.raises(Killed):
        life.start()
    life.disk.on_step = lambda kind, path: None
    life.disk.after_kill()
    life.start()
    append(life, b"a" * 5000)
    for seed in range(100):
        assert found(life, life.disk.after_power_loss(random.Random(seed))) in ([], [b"a" * 5000])


class Killed(BaseException):
    pass


def kill_at_first_sync(kind: str, path: str) -> None:
    if kind == "sync" and "commitlog" in path:
        raise Killed


def test_a_topic_that_is_perhaps_deleted_takes_no_more_messages() -> None:
    """Or a new message became the first of a queue whose file still had old entries behind it."""
    life = lives()
    append(life, b"a")
    append(life, b"b")
    sync(life)

    def fail_to_move(kind: str, path: str) -> None:
        if kind == "rename":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    life.disk.on_step = fail_to_move
    with pytest.raises(StoreUnavailable, match="the queues of T cannot be deleted: Input/output"):
        life.store.delete_topic("T")
    life.disk.on_step = lambda kind, path: None
    with pytest.raises(StoreUnavailable, match="Input/output"):
        append(life, b"first of the next topic with this name")
    life.disk.after_kill()
    assert found(life, life.disk) == [b"a", b"b"]


def test_queues_made_again_from_the_whole_log_are_not_covered_by_an_old_checkpoint() -> None:
    """Somebody deleted the queues; they were made again, and power was lost before they were durable."""
    life = lives()
    life.append_to(("Orders", 0), [(b"another queue", KEY)])
    append(life, b"a")
    sync(life)
    life.disk.after_kill()
    life.disk.delete_tree(f"{ROOT}/consumequeue")
    life.disk.sync_dir(ROOT)
    life.start()
    for seed in range(100):
        assert found(life, life.disk.after_power_loss(random.Random(seed))) == [b"a"]
