"""Deleted topics stay deleted, whatever happens to the store, and those made again keep what they are given."""

import logging
from pathlib import Path

import pytest

from bolide.model.errors import TableFull
from bolide.store import deletions as module
from bolide.store.checkpoint import MARK_AT, Checkpoint
from bolide.store.deletions import FILE, Deletions, decode_deletions
from bolide.store.disk_os import OsDisk
from bolide.store.index_file import IndexSizes
from bolide.store.store import MessageStore
from tests.unit.store.index_stage import found
from tests.unit.store.stage import (
    HeldClock,
    WatchedDisk,
    bodies,
    killed,
    log_bytes,
    make_durable,
    message,
    opened,
    put,
    put_many,
)

INDEX = IndexSizes(slots=50, entries=200)


def delete(store: MessageStore, topic: str = "T") -> None:
    """As a broker does before it answers."""
    store.delete_topic(topic)
    store.queues.trash.settle()


def noted(root: Path) -> dict[str, int] | None:
    path = root / FILE
    return decode_deletions(path.read_bytes()) if path.exists() else {}


@pytest.mark.parametrize("others", [0, 3])
@pytest.mark.parametrize("stop", ["clean", "killed", "killed before its entries were written"])
def test_nothing_of_a_deleted_topic_comes_back(tmp_path: Path, stop: str, others: int) -> None:
    store = opened(tmp_path)
    put_many(store, others, "Orders")
    put_many(store, 20)
    if stop.startswith("killed before"):
        store.append([message(body=b"in memory only")])
    delete(store)
    assert bodies(store) == []
    if stop == "clean":
        store.close()
    else:
        killed(store)
    for _ in range(2):
        store = opened(tmp_path)
        assert bodies(store) == []
        assert len(bodies(store, "Orders")) == others
        killed(store)


def test_a_topic_that_had_its_messages_in_memory_only_stays_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.append([message()])
    delete(store)
    killed(store)
    assert bodies(opened(tmp_path)) == []


def test_a_topic_made_again_begins_at_zero_and_keeps_what_it_is_given(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 25)
    delete(store)
    (first,) = put(store, message(body=b"new"))
    assert first.queue_offset == 0
    killed(store)
    store = opened(tmp_path)
    assert bodies(store) == [b"new"]
    put(store, message(body=b"newer"))
    store.close()
    assert bodies(opened(tmp_path)) == [b"new", b"newer"]


def test_a_recovery_of_the_whole_log_passes_over_every_incarnation_but_the_last(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(3):
        put(store, *(message(body=b"%d %d" % (number, each)) for each in range(10 * (3 - number))))
        delete(store)
    put(store, message(body=b"new"))
    make_durable(store)
    killed(store)
    for path in sorted((tmp_path / "consumequeue").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert bodies(opened(tmp_path)) == [b"new"]


def test_a_folder_that_power_loss_brought_back_is_taken_away_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 25)
    put_many(store, 3, "Orders")
    make_durable(store)
    delete(store)
    killed(store)
    (tmp_path / "deleted" / "1").rename(tmp_path / "consumequeue" / "T")
    store = opened(tmp_path)
    assert bodies(store) == []
    assert not (tmp_path / "consumequeue" / "T").exists()
    (first,) = put(store, message())
    assert first.queue_offset == 0


def test_what_is_stored_where_a_log_was_cut_is_not_taken_for_deleted(tmp_path: Path) -> None:
    """Power loss takes the end of the log that a deletion speaks of; new messages come to the same places."""
    store = opened(tmp_path)
    put_many(store, 3)
    kept = int(store.log.end)
    put_many(store, 20)
    end = int(store.log.end)
    delete(store)
    killed(store)
    assert noted(tmp_path) == {"T": end}
    segment = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    data[kept:] = bytes(len(data) - kept)
    segment.write_bytes(data)
    store = opened(tmp_path)
    assert bodies(store) == []
    assert noted(tmp_path) == {"T": kept}
    put(store, message(body=b"new"))
    killed(store)
    assert bodies(opened(tmp_path)) == [b"new"]


def test_a_full_disk_at_the_start_costs_no_new_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The places cannot be written: then nothing is passed over, rather than too much."""
    store = opened(tmp_path)
    put_many(store, 3)
    kept = int(store.log.end)
    put_many(store, 20)
    delete(store)
    killed(store)
    segment = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(segment.read_bytes())
    data[kept:] = bytes(len(data) - kept)
    segment.write_bytes(data)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_whole", full)
        store = opened(tmp_path)
        assert bodies(store) == []
        put(store, message(body=b"new"))
        killed(store)
    assert b"new" in bodies(opened(tmp_path))


def test_deletions_are_forgotten_when_the_log_begins_behind_them(tmp_path: Path) -> None:
    disk = OsDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 3)
    delete(store)
    assert list(noted(tmp_path) or {}) == ["T"]
    while len(store.log.segments) < 3:
        put_many(store, 20, "Orders")
    make_durable(store)
    store.close()
    for path in sorted((tmp_path / "commitlog").iterdir())[:-1]:
        path.unlink()
    store = opened(tmp_path)
    assert noted(tmp_path) == {}
    assert not (tmp_path / FILE).exists()


def test_only_so_many_deletions_are_kept_in_mind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELETIONS_MAX", 2)
    store = opened(tmp_path)
    for topic in ("A", "B", "C"):
        put_many(store, 2, topic)
    for topic in ("A", "B"):
        delete(store, topic)
    with pytest.raises(TableFull, match="fileReservedTime"):
        store.delete_topic("C")
    assert len(bodies(store, "C")) == 2
    put_many(store, 2, "A")
    delete(store, "A")


def test_a_topic_that_leaves_nothing_needs_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELETIONS_MAX", 1)
    store = opened(tmp_path)
    put_many(store, 2, "A")
    delete(store, "A")
    delete(store, "never written to")
    assert noted(tmp_path) == {"A": store.log.end}


def test_a_host_adds_no_more_deletions_than_stay_free_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DELETIONS_MAX", 8)
    store = opened(tmp_path)
    names = [f"T{number}" for number in range(5)]
    for topic in names:
        put_many(store, 1, topic)
    for topic in names[:3]:
        store.delete_topic(topic, host="10.6.6.6")
    with pytest.raises(TableFull, match=r"10\.6\.6\.6 has .*fileReservedTime"):
        store.delete_topic(names[3], host="10.6.6.6")
    assert len(bodies(store, names[3])) == 1
    put_many(store, 1, names[0])
    store.delete_topic(names[0], host="10.6.6.6")  # it has its line
    store.delete_topic(names[3], host="10.0.0.1")
    store.delete_topic(names[4])  # the broker's own work
    assert len(store.queues.deletions.by_name()) == 5


def test_what_has_expired_is_not_counted_for_its_host_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DELETIONS_MAX", 8)
    deletions = Deletions(WatchedDisk(), str(tmp_path))
    for number in range(3):
        deletions.make_room(f"T{number}", 0, "10.6.6.6")
        deletions.note(f"T{number}", 10 * number + 10, "10.6.6.6")
    with pytest.raises(TableFull):
        deletions.make_room("T3", 9, "10.6.6.6")
    deletions.make_room("T3", 10, "10.6.6.6")
    assert sorted(deletions.by_name()) == [b"T1", b"T2"]


def test_a_message_of_a_deleted_topic_is_found_neither_by_key_nor_by_place(tmp_path: Path) -> None:
    store = opened(tmp_path, index=INDEX)
    old = put(store, message(properties=b"UNIQ_KEY\x01K\x02"))[0]
    delete(store)
    new = put(store, message(body=b"new", properties=b"UNIQ_KEY\x01K\x02"))[0]
    assert store.reader.read_at(old.log_offset) is None
    assert store.reader.read_at(new.log_offset) is not None
    assert found(store, "K") == [b"new"]


def test_a_damaged_checkpoint_brings_no_deleted_topic_back_and_is_written_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path)
    put_many(store, 20)
    put_many(store, 2, "Orders")
    delete(store)
    store.close()
    data = bytearray((tmp_path / "checkpoint").read_bytes())
    data[MARK_AT + 20] ^= 1
    (tmp_path / "checkpoint").write_bytes(data)
    store = opened(tmp_path)
    assert bodies(store) == []
    assert "RocketMQ" not in caplog.text
    assert Checkpoint.decode((tmp_path / "checkpoint").read_bytes()).mark is not None


def test_after_the_original_has_run_deletions_count_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It may have brought the messages back, gone on with their numbers, and cut the log."""
    store = opened(tmp_path)
    put_many(store, 5)
    put_many(store, 2, "Orders")
    delete(store)
    store.close()
    says = Checkpoint.decode((tmp_path / "checkpoint").read_bytes())
    (tmp_path / "checkpoint").write_bytes(
        Checkpoint(says.log_ms, says.queues_ms, says.index_ms, 1, 1).encode()
    )
    with caplog.at_level(logging.WARNING):
        store = opened(tmp_path)
    assert "Apache RocketMQ has used this store" in caplog.text
    assert not (tmp_path / FILE).exists()
    assert Checkpoint.decode((tmp_path / "checkpoint").read_bytes()).mark is not None
    put_many(store, 2)
    delete(store)
    killed(store)
    assert bodies(opened(tmp_path)) == []


@pytest.mark.parametrize("damage", [b"", b"\0" * 60, b"bolide deletions 1\n9 T\n", b"4096 T\n", b"\xff\xfe"])
def test_a_damaged_file_is_no_list_of_deletions(tmp_path: Path, damage: bytes) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    store.close()
    (tmp_path / FILE).write_bytes(damage)
    store = opened(tmp_path)
    assert len(bodies(store)) == 5
    assert not (tmp_path / FILE).exists() or not damage


@pytest.mark.parametrize("place", [18, 19, 20, 30])
def test_one_changed_byte_of_the_file_voids_it(tmp_path: Path, place: int) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    delete(store)
    data = bytearray((tmp_path / FILE).read_bytes())
    data[place % len(data)] ^= 1
    assert decode_deletions(bytes(data)) is None


def test_a_deletion_costs_one_small_file_however_many_messages_the_topic_had(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk, clock=HeldClock())
    put_many(store, 60)
    before = log_bytes(tmp_path)
    delete(store)
    assert log_bytes(tmp_path) == before
    assert (tmp_path / FILE).stat().st_size < 100
