"""Stores in which topics were deleted: the tools see what a broker would show, and no damage."""

from pathlib import Path

import pytest

from bolide.model.clock import Clock
from bolide.offline.export import Export, Selection
from bolide.offline.files import StoreFiles
from bolide.offline.repair import Repair
from bolide.record.decode import each_message
from bolide.store.checkpoint import MARK_AT, Checkpoint
from bolide.store.deletions import FILE
from bolide.store.disk_os import OsDisk
from bolide.store.index_file import IndexSizes
from bolide.store.store import MessageStore
from tests.unit.offline.damaged import examine, write_tables
from tests.unit.store.stage import (
    HeldClock,
    bodies,
    killed,
    make_durable,
    message,
    opened,
    put_many,
)

INDEX = IndexSizes(slots=50, entries=200)
OLD = 20
STOPS = {"clean": MessageStore.close, "killed": killed}


def make(root: Path, *, again: int, stop: str, with_others: bool = True) -> None:
    """Orders in two queues, deleted, and `again` of them in one; its name is known to the tables all the time."""
    store = opened(root, index=INDEX)
    for queue_id in (0, 1):
        put_many(store, OLD, "orders", queue_id)
    if with_others:
        put_many(store, 3, "payments")
    make_durable(store)
    store.delete_topic("orders")
    store.queues.trash.settle()
    for number in range(again):
        store.append([message("orders", b"new %d" % number)])
        if stop == "clean" or number % 2:  # of a killed broker some entries were not written
            store.write_behind(store.take_touched())
    write_tables(root)
    (root / "config" / "consumerOffset.json").unlink()
    (root / "config" / "consumerOffset.json.bak").unlink()
    STOPS[stop](store)


def exported(root: Path) -> list[bytes]:
    store = StoreFiles(OsDisk(), str(root))
    try:
        blocks = Export(store, Selection(topic="orders")).blocks()
        return [message.body for block in blocks for message in each_message(block, "b")]
    finally:
        store.close()


@pytest.mark.parametrize("again", [0, 1, 5, OLD, 2 * OLD])
@pytest.mark.parametrize("stop", STOPS)
def test_a_topic_that_was_deleted_or_made_again_is_no_damage(tmp_path: Path, stop: str, again: int) -> None:
    make(tmp_path, again=again, stop=stop)
    found = examine(tmp_path)
    assert found.is_sound, list(found.findings)
    assert found.fixes == [] or stop == "killed"
    assert found.entries <= again + 3
    assert exported(tmp_path) == [b"new %d" % number for number in range(again)]
    assert exported(tmp_path) == bodies(opened(tmp_path, index=INDEX), "orders")


def test_what_the_original_deleted_and_made_again_with_fewer_queues_is_no_damage(tmp_path: Path) -> None:
    """It writes nothing down, but a queue that begins anew tells what became of the others."""
    make(tmp_path, again=3, stop="clean")
    (tmp_path / FILE).unlink()
    found = examine(tmp_path)
    assert found.is_sound, list(found.findings)
    assert any("topic that was deleted" in note.text for note in found.findings.notes)
    assert exported(tmp_path) == [b"new 0", b"new 1", b"new 2"]


def test_the_only_topic_that_had_messages_may_be_the_deleted_one(tmp_path: Path) -> None:
    make(tmp_path, again=0, stop="clean", with_others=False)
    assert examine(tmp_path).is_sound
    assert exported(tmp_path) == []


def test_a_folder_that_power_loss_brought_back_is_told_and_no_damage(tmp_path: Path) -> None:
    make(tmp_path, again=0, stop="killed")
    (tmp_path / "deleted" / "1").rename(tmp_path / "consumequeue" / "orders")
    found = examine(tmp_path)
    assert found.is_sound
    assert any("is of a topic that was deleted" in note.text for note in found.findings.notes)
    assert exported(tmp_path) == []


def test_a_repair_brings_nothing_back(tmp_path: Path) -> None:
    make(tmp_path, again=3, stop="clean")
    for path in (tmp_path / "consumequeue" / "orders").rglob("0*0"):
        if path.is_file():
            path.unlink()
    repaired(tmp_path, HeldClock())
    assert bodies(opened(tmp_path, index=INDEX), "orders") == [b"new 0", b"new 1", b"new 2"]


def repaired(root: Path, clock: Clock) -> None:
    plan = Repair(OsDisk(), str(root), clock)
    try:
        assert plan.steps
        plan.apply()
    finally:
        plan.close()


def test_a_damaged_list_of_deletions_is_named_and_taken_away(tmp_path: Path) -> None:
    make(tmp_path, again=0, stop="clean")
    data = bytearray((tmp_path / FILE).read_bytes())
    data[20] ^= 1
    (tmp_path / FILE).write_bytes(data)
    assert any(damage.file == FILE for damage in examine(tmp_path).findings.damages)
    repaired(tmp_path, HeldClock())
    assert not (tmp_path / FILE).exists()


def test_a_repair_of_a_store_that_the_original_has_used_forgets_deletions_for_good(tmp_path: Path) -> None:
    make(tmp_path, again=0, stop="clean")
    says = Checkpoint.decode((tmp_path / "checkpoint").read_bytes())
    (tmp_path / "checkpoint").write_bytes(Checkpoint(says.log_ms, says.queues_ms, says.index_ms, 1).encode())
    assert len(exported(tmp_path)) == 2 * OLD
    (tmp_path / "config" / "topics.json").write_text("{")
    repaired(tmp_path, HeldClock())
    assert not (tmp_path / FILE).exists()
    assert Checkpoint.decode((tmp_path / "checkpoint").read_bytes()).mark is not None


def test_a_damaged_checkpoint_is_named_and_brings_no_deleted_topic_back(tmp_path: Path) -> None:
    make(tmp_path, again=0, stop="clean")
    data = bytearray((tmp_path / "checkpoint").read_bytes())
    data[MARK_AT + 20] ^= 1
    (tmp_path / "checkpoint").write_bytes(data)
    assert exported(tmp_path) == []
    assert any("the mark is damaged" in str(note) for note in examine(tmp_path).findings.notes)
