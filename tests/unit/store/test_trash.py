"""Deleted topics: moved away in one step, deleted later, and never in the way of a topic of the same name."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bolide.model.errors import StoreUnavailable
from bolide.offline.survey import survey
from bolide.store.disk_os import OsDisk
from bolide.store.trash import NAMES_PER_PIECE
from tests.unit.offline.damaged import examine
from tests.unit.store.stage import WatchedDisk, bodies, killed, make_durable, message, opened, put, put_many


class CountingDisk(WatchedDisk):
    """Counts what is done to the disk, and fails where a test wants it to."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[str] = []
        self.folders_synced: list[str] = []
        self.rename_error = self.sync_error = 0
        self.before_move: Callable[[], None] = lambda: None

    def delete(self, path: str) -> None:
        self.deleted.append(path)
        super().delete(path)

    def delete_tree(self, path: str) -> None:
        self.deleted.append(path)
        super().delete_tree(path)

    def rename(self, source: str, target: str) -> None:
        if "deleted" in target.split(os.sep):
            self.before_move()
        if self.rename_error:
            raise OSError(self.rename_error, os.strerror(self.rename_error), target)
        super().rename(source, target)

    def sync_dir(self, path: str) -> None:
        if self.sync_error:
            raise OSError(self.sync_error, os.strerror(self.sync_error), path)
        self.folders_synced.append(os.path.basename(path))
        super().sync_dir(path)


def trash_in(root: Path) -> list[str]:
    return sorted(os.listdir(root / "deleted")) if (root / "deleted").exists() else []


def names_in(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*"))


def test_deleting_a_topic_is_one_move_and_the_rest_is_left_for_later(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 50)
    put_many(store, 3, "Orders")
    make_durable(store)
    disk.folders_synced.clear()
    disk.deleted.clear()
    store.delete_topic("T")
    assert (disk.deleted, disk.folders_synced) == ([], [])
    assert os.listdir(tmp_path / "consumequeue") == ["Orders"]
    assert trash_in(tmp_path) == ["1"]
    trash = store.queues.trash
    assert not trash.clear_some(), "its move may still be undone"
    trash.settle()
    trash.settle()
    assert disk.folders_synced == [tmp_path.name, "consumequeue"]
    assert trash.clear_some()
    assert not trash.clear_some()
    assert trash_in(tmp_path) == []


def test_a_wide_topic_is_cleared_in_pieces_of_so_many_names(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for queue_id in range(100):
        put(store, message(queue_id=queue_id))
    make_durable(store)
    store.delete_topic("T")
    trash = store.queues.trash
    trash.settle()
    pieces, left = 0, names_in(tmp_path / "deleted")
    assert left == 1 + 100 + 100
    while trash.clear_some():
        pieces, before, left = pieces + 1, left, names_in(tmp_path / "deleted")
        assert 0 < before - left <= NAMES_PER_PIECE
    assert (left, pieces) == (0, -(-201 // NAMES_PER_PIECE))


def test_what_a_link_in_a_topics_folder_leads_to_stays(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 3)
    make_durable(store)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "kept").touch()
    (tmp_path / "consumequeue" / "T" / "link").symlink_to(tmp_path / "elsewhere")
    store.delete_topic("T")
    store.queues.trash.settle()
    while store.queues.trash.clear_some():
        pass
    assert trash_in(tmp_path) == []
    assert (tmp_path / "elsewhere" / "kept").exists()


def test_one_sync_is_enough_for_all_topics_that_were_deleted_before(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    for topic in ("A", "B", "C"):
        put_many(store, 3, topic)
    disk.folders_synced.clear()
    for topic in ("A", "B", "C"):
        store.delete_topic(topic)
    store.queues.trash.settle()
    assert disk.folders_synced == [tmp_path.name, "consumequeue"]


def test_a_sync_while_a_topic_is_being_moved_away_does_not_count_for_it(tmp_path: Path) -> None:
    """The remover's thread makes an earlier deletion last, and a rename lets it run."""
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    for topic in ("A", "B"):
        put_many(store, 3, topic)
    trash = store.queues.trash
    store.delete_topic("A")
    disk.before_move = trash.settle
    store.delete_topic("B")
    assert (trash.is_leaving("A"), trash.is_leaving("B")) == (False, True)
    disk.folders_synced.clear()
    trash.settle()
    assert disk.folders_synced == ["consumequeue"]
    assert trash.is_settled


def test_forgetting_a_topic_does_not_look_at_the_queues_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    for number in range(50):
        put(store, message(f"T{number}"))

    def nobody_asks(index: object) -> None:
        raise AssertionError("all queues were walked over")

    monkeypatch.setattr(type(store.queues), "__iter__", nobody_asks)
    store.delete_topic("T7")
    assert store.queues.find("T7", 0) is None
    assert store.queues.find("T8", 0) is not None


def test_a_topic_made_again_at_once_waits_for_the_deletion_to_last_and_begins_at_zero(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 25)
    store.delete_topic("T")
    disk.folders_synced.clear()
    (appended,) = put(store, message(body=b"new"))
    assert disk.folders_synced == [tmp_path.name, "consumequeue"]
    assert appended.queue_offset == 0
    assert store.queues.trash.clear_some()
    assert bodies(store) == [b"new"]
    killed(store)
    assert bodies(opened(tmp_path)) == [b"new"]


def test_who_still_holds_a_deleted_queue_does_not_touch_the_files_of_the_next_one(tmp_path: Path) -> None:
    """Retention goes over the queues in turns, between which a topic may be deleted and made again."""
    store = opened(tmp_path)
    put_many(store, 25)
    stale = store.queues.find("T", 0)
    assert stale is not None
    stale.expire(int(store.log.end))
    store.delete_topic("T")
    put_many(store, 25)
    make_durable(store)
    stale.expire(int(store.log.end))
    assert stale.delete_first_file() is None
    stale.write_behind()
    assert len(bodies(store)) == 25


def test_without_descriptors_a_topic_made_again_is_refused_for_the_moment(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 5)
    store.delete_topic("T")
    disk.sync_error = errno.EMFILE
    with pytest.raises(StoreUnavailable, match="still being deleted"):
        store.append([message()])
    disk.sync_error = 0
    put_many(store, 5)
    assert len(bodies(store)) == 5


def test_a_failing_disk_is_final_and_no_second_try_says_otherwise(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 5)
    store.delete_topic("T")
    disk.sync_error = errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        store.queues.trash.settle()
    disk.sync_error = 0
    with pytest.raises(StoreUnavailable, match="Input/output"):
        store.append([message()])
    assert store.durability.failure is not None


def test_queues_on_a_disk_of_their_own_are_deleted_in_place(tmp_path: Path) -> None:
    disk = CountingDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 5)
    disk.rename_error = errno.EXDEV
    store.delete_topic("T")
    disk.rename_error = 0
    assert os.listdir(tmp_path / "consumequeue") == []
    assert store.queues.trash.is_leaving("T")
    put_many(store, 3)
    assert len(bodies(store)) == 3


def test_a_topic_without_files_is_deleted_without_the_disk(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.delete_topic("never written to")
    assert store.queues.trash.is_settled
    assert trash_in(tmp_path) == []


def test_it_is_remembered_when_messages_may_wait_for_it_elsewhere(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 3, topic="where messages wait")
    store.delete_topic("T", others_wait=True)
    assert store.queues.deletions.place_of("T") == store.log.end


@pytest.mark.parametrize("stop", ["clean", "killed"])
def test_what_a_stop_leaves_in_the_trash_is_no_topic_and_no_damage_and_is_cleared_later(
    tmp_path: Path, stop: str
) -> None:
    store = opened(tmp_path)
    put_many(store, 25)
    put_many(store, 3, "Orders")
    store.delete_topic("T")
    make_durable(store)
    if stop == "clean":
        store.close()
    else:
        killed(store)
    assert trash_in(tmp_path) == ["1"]
    assert not any("deleted/" in finding.file for finding in examine(tmp_path).findings)
    assert {queue.topic for queue in survey(OsDisk(), str(tmp_path)).queues} == {"Orders"}
    store = opened(tmp_path)
    assert store.queues.find("T", 0) is None
    put_many(store, 3)
    store.delete_topic("T")
    assert trash_in(tmp_path) == ["1", "2"]
    assert store.queues.trash.clear_some()
    assert trash_in(tmp_path) == ["2"]
