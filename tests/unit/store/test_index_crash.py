"""The key index after crashes, on full and failing disks, and while the log loses its beginning."""

import os
import struct
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from bolide.store.index_file import IndexFile, IndexSizes
from bolide.store.index_layout import DurableMark, IndexHeader, entry_at, key_hash
from bolide.store.store import MessageStore
from tests.unit.store.index_stage import (
    ALWAYS,
    SIZES,
    all_found,
    caught_up,
    entries_of,
    files,
    found,
    header_of,
    index_of,
    keyed,
    log_synced,
    opened_with_index,
    put_keyed,
)
from tests.unit.store.stage import WatchedDisk, killed, put

FIRST_SLOT = 40
FIRST_ENTRY = 40 + 4 * SIZES.slots


def mark_of(path: Path) -> DurableMark | None:
    return DurableMark.decode(path.read_bytes()[FIRST_ENTRY : FIRST_ENTRY + 20])


def change(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def killed_after(tmp_path: Path, synced: int, unsynced: int) -> Path:
    """A store that was killed when so many messages were durably indexed, and more were not."""
    store = opened_with_index(tmp_path)
    put_keyed(store, synced)
    log_synced(store)
    caught_up(store).sync()
    put_keyed(store, unsynced, first=synced)
    caught_up(store)
    killed(store)
    (path,) = files(tmp_path)
    return path


def test_after_a_clean_stop_nothing_is_indexed_again(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path)
    put_keyed(store, 5)
    store.close()
    (path,) = files(tmp_path)
    before = path.read_bytes()
    assert mark_of(path) is None
    store = opened_with_index(tmp_path)
    assert index_of(store).next_part(store.log, store.log.end) is None
    assert all_found(store, 5)
    store.close()
    assert files(tmp_path) == [path]
    assert path.read_bytes() == before


def test_after_a_kill_only_what_was_not_durable_is_indexed_again(tmp_path: Path) -> None:
    """[IX-08] RocketMQ makes the whole file again; here the durable part stays."""
    path = killed_after(tmp_path, synced=5, unsynced=3)
    store = opened_with_index(tmp_path)
    index_of(store).repair()
    assert header_of(path).next_entry == 1 + 10
    assert index_of(store).position == entries_of(path)[10].log_offset + 115
    assert all_found(store, 8)
    store.close()
    assert files(tmp_path) == [path]
    assert header_of(path).next_entry == 1 + 16


@pytest.mark.parametrize("lost", ["slots", "entries behind the mark", "header", "all of them"])
def test_pages_that_did_not_reach_the_disk_are_made_again(tmp_path: Path, lost: str) -> None:
    """[IX-08] Below the mark entries are durable, everything else may be anything."""
    path = killed_after(tmp_path, synced=5, unsynced=3)
    whole = opened_and_closed_copy(path, tmp_path)
    if lost in ("slots", "all of them"):
        change(path, FIRST_SLOT, b"\0\0\0\x07" * SIZES.slots)
    if lost in ("entries behind the mark", "all of them"):
        change(path, FIRST_ENTRY + 20 * 11, bytes(20 * 3) + os.urandom(20 * 3))
    if lost in ("header", "all of them"):
        header = header_of(path)
        change(path, 0, struct.pack(">qqqqii", header.begin_ms, 0, header.begin_offset, 0, 0, 1))
    store = opened_with_index(tmp_path)
    assert all_found(store, 8)
    store.close()
    assert path.read_bytes() == whole


def opened_and_closed_copy(path: Path, root: Path) -> bytes:
    """What the file would have become without the kill."""
    store = opened_with_index(root.with_name(root.name + "-whole"))
    put_keyed(store, 8)
    store.close()
    (whole,) = files(root.with_name(root.name + "-whole"))
    return whole.read_bytes()


def test_recovering_twice_changes_nothing(tmp_path: Path) -> None:
    path = killed_after(tmp_path, synced=5, unsynced=3)
    store = opened_with_index(tmp_path)
    all_found(store, 8)
    killed(store)
    store = opened_with_index(tmp_path)
    all_found(store, 8)
    killed(store)
    store = opened_with_index(tmp_path)
    assert all_found(store, 8)
    store.close()
    assert header_of(path).next_entry == 1 + 16


def test_a_file_of_rocketmq_is_made_again_after_its_crash(tmp_path: Path) -> None:
    """[IX-08] Nothing in it says how much of it is durable."""
    store = opened_with_index(tmp_path)
    put_keyed(store, 5)
    store.close()
    (path,) = files(tmp_path)
    change(path, FIRST_SLOT, bytes(4 * SIZES.slots))
    rocketmq_was_here(tmp_path)
    store = opened_with_index(tmp_path)
    assert not path.exists()
    assert all_found(store, 5)
    store.close()


def rocketmq_was_here(root: Path, index_ms: int = 0) -> None:
    """It has started, which leaves other times in the checkpoint, and has crashed."""
    change(root / "checkpoint", 0, struct.pack(">qqq", 1, 1, index_ms))
    (root / "abort").touch()


def test_a_start_without_messages_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    """The file has no mark then: it was closed, and not used again."""
    store = opened_with_index(tmp_path)
    put_keyed(store, 5)
    store.close()
    (path,) = files(tmp_path)
    killed(opened_with_index(tmp_path))
    change(path, FIRST_SLOT, bytes(4 * SIZES.slots))  # who wants to be sure makes the slots again
    store = opened_with_index(tmp_path)
    index_of(store).repair()
    assert index_of(store).next_part(store.log, store.log.end) is None
    assert all_found(store, 5)
    store.close()
    assert files(tmp_path) == [path]


def test_full_files_of_rocketmq_stay_after_its_crash_as_far_as_its_checkpoint_says(tmp_path: Path) -> None:
    sizes = IndexSizes(slots=10, entries=5)
    store = opened_with_index(tmp_path, sizes)
    put_keyed(store, 5)
    end_ms = store._store_time_ms()
    store.close()
    first, second, third = files(tmp_path)
    for index_ms, kept in ((end_ms, [first, second]), (end_ms - 1, [])):
        rocketmq_was_here(tmp_path, index_ms)
        store = opened_with_index(tmp_path, sizes)
        assert [path for path in (first, second, third) if path.exists()] == kept
        assert all_found(store, 5)
        store.close()


def test_entries_behind_the_end_of_the_log_are_dropped(tmp_path: Path) -> None:
    """Power loss may cost the log more than the index."""
    path = killed_after(tmp_path, synced=8, unsynced=0)
    cut_at = entries_of(path)[11].log_offset
    segment = next((tmp_path / "commitlog").iterdir())
    (tmp_path / "checkpoint").unlink(missing_ok=True)
    change(segment, cut_at, bytes(100))
    store = opened_with_index(tmp_path)
    assert store.log.end == cut_at
    put(store, keyed(b"new", "U5"), keyed(b"newer", "N"))
    assert [found(store, f"U{n}") for n in range(8)] == [[b"b%d" % n] for n in range(5)] + [[b"new"], [], []]
    assert found(store, "N") == [b"newer"]
    store.close()
    assert all(entry.log_offset < store.log.end or store.log.end == 0 for entry in entries_of(path))


def test_entries_of_messages_that_the_log_may_lose_are_not_durable(tmp_path: Path) -> None:
    """Or they would lead to other messages, stored at the same places after the loss."""
    store = opened_with_index(tmp_path, IndexSizes(slots=10, entries=8))
    put_keyed(store, 2)
    log_synced(store)
    durable = store.log.end
    put_keyed(store, 4, first=2)
    index = caught_up(store)
    index.sync()
    first, second = files(tmp_path)  # the first one is full, of messages that are not all durable
    slots_end = 40 + 4 * 10
    marks = [DurableMark.decode(path.read_bytes()[slots_end : slots_end + 20]) for path in (first, second)]
    assert marks == [DurableMark(5, durable), DurableMark(1, durable)]
    assert index.durable == (0, durable)
    log_synced(store)
    index.sync()
    mark = DurableMark.decode(first.read_bytes()[slots_end : slots_end + 20])
    assert mark is not None
    assert mark.whole
    assert index.durable == (header_of(first).end_ms, store.log.end)
    store.close()


def test_an_index_of_another_log_is_made_again(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path)
    put_keyed(store, 8)
    store.close()
    for path in [*(tmp_path / "commitlog").iterdir(), tmp_path / "checkpoint"]:
        path.unlink()
    store = opened_with_index(tmp_path)
    put(store, keyed(b"x" * 1000, "U3"), keyed(b"y", "Y"))
    store.close()
    store = opened_with_index(tmp_path)
    assert found(store, "U3") == [b"x" * 1000]
    assert found(store, "U4") == []
    assert found(store, "Y") == [b"y"]
    store.close()


@pytest.mark.parametrize("damage", ["truncated", "empty", "other numbers", "header of noise"])
def test_a_file_that_cannot_be_one_is_made_again(tmp_path: Path, damage: str) -> None:
    store = opened_with_index(tmp_path, IndexSizes(slots=10, entries=5))
    put_keyed(store, 5)
    store.close()
    second = files(tmp_path)[1]
    sizes = IndexSizes(slots=10, entries=5)
    if damage == "truncated":
        os.truncate(second, 100)
    elif damage == "empty":
        os.truncate(second, 0)
    elif damage == "header of noise":
        change(second, 0, os.urandom(32) + b"\xff" * 8)
    else:
        sizes = IndexSizes(slots=12, entries=7)
    store = opened_with_index(tmp_path, sizes)
    assert all_found(store, 5)
    store.close()


def test_a_damaged_file_never_brings_a_wrong_message(tmp_path: Path) -> None:
    """Entries that point at other messages, into the middle of one or nowhere; chains that turn in circles."""
    store = opened_with_index(tmp_path)
    put_keyed(store, 6)
    store.close()
    (path,) = files(tmp_path)
    whole, entries = path.read_bytes(), entries_of(path)
    for number in range(1, len(entries)):
        for at, data in (
            (4, struct.pack(">q", entries[1].log_offset)),
            (4, struct.pack(">q", entries[number].log_offset + 1)),
            (4, struct.pack(">q", 2**62)),
            (4, struct.pack(">q", -1)),
            (12, struct.pack(">i", -1)),
            (16, struct.pack(">i", number)),
            (16, struct.pack(">i", 2**31 - 1)),
        ):
            path.write_bytes(whole)
            change(path, entry_at(SIZES.slots, number) + at, data)
            store = opened_with_index(tmp_path)
            for n in range(6):
                assert found(store, f"U{n}") in ([b"b%d" % n], [])
            assert set(found(store, "all")) <= {b"b%d" % n for n in range(6)}
            store.close()


def test_bytes_in_the_log_that_are_no_record_are_passed_over(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path)
    put_keyed(store, 4)
    (first, second, *_) = (appended for appended in put(store, keyed(b"x", "X"), keyed(b"y", "Y")))
    at = first.log_offset
    store.log.current.file.write(at + 28, struct.pack(">q", at + 1))  # says that it lies elsewhere
    assert found(store, "Y") == [b"y"]
    assert found(store, "X") == []
    assert second.log_offset > at
    assert all_found(store, 4)
    store.close()


# ---- full and failing disks ----------------------------------------------------------------------------------


def test_a_full_disk_pauses_indexing_and_it_catches_up(tmp_path: Path) -> None:
    disk = WatchedDisk()
    sizes = IndexSizes(slots=10, entries=4)
    store = opened_with_index(tmp_path, sizes, disk=disk)
    put_keyed(store, 3)
    assert all_found(store, 3)
    for number in range(3, 6):
        disk.full = False
        put_keyed(store, 1, first=number)
        disk.full = True
        with pytest.raises(OSError, match="No space"):
            caught_up(store)
        assert (
            len(index_of(store).find(key_hash("T#all"), 9, *ALWAYS)) == 3
        )  # what is indexed can be searched
    disk.full = False
    assert all_found(store, 6)
    store.close()
    store = opened_with_index(tmp_path, sizes)
    assert all_found(store, 6)
    store.close()


def test_slots_and_entries_are_reserved_before_they_are_written(tmp_path: Path) -> None:
    """A write through the mapping where the disk has no block for it would end the process."""
    sizes = IndexSizes(slots=50_000, entries=2_000_000)
    store = opened_with_index(tmp_path, sizes)
    put_keyed(store, 1)
    caught_up(store)
    (path,) = files(tmp_path)
    allocated = path.stat().st_blocks * 512
    assert 200_000 + 8 * 1024**2 <= allocated < path.stat().st_size / 2
    store.close()


def test_after_a_failed_sync_the_index_ends_and_the_store_goes_on(tmp_path: Path) -> None:
    """What the failed sync left is not trusted at the next start either."""
    disk = WatchedDisk()
    store = opened_with_index(tmp_path, disk=disk)
    put_keyed(store, 3)
    log_synced(store)
    caught_up(store).sync()
    put_keyed(store, 3, first=3)
    caught_up(store)

    def fail() -> None:
        raise OSError(5, "Input/output error")

    disk.before_sync = fail
    with pytest.raises(OSError, match="Input/output"):
        index_of(store).sync()
    disk.before_sync = lambda: None
    put_keyed(store, 3, first=6)
    with pytest.raises(OSError, match="Input/output"):
        caught_up(store)
    store.close()
    (path,) = files(tmp_path)
    assert mark_of(path) == DurableMark(7, entries_of(path)[7].log_offset)
    store = opened_with_index(tmp_path)
    assert all_found(store, 9)
    store.close()


# ---- retention -----------------------------------------------------------------------------------------------


def test_files_whose_messages_are_all_deleted_are_deleted_but_never_the_last(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path, IndexSizes(slots=10, entries=5))
    put_keyed(store, 8)
    index = caught_up(store)
    ends = [header_of(path).end_offset for path in files(tmp_path)]
    assert len(ends) == 4
    index.drop_before(ends[1])
    assert [header_of(path).end_offset for path in files(tmp_path)] == ends[1:]
    index.drop_before(2**62)
    assert [header_of(path).end_offset for path in files(tmp_path)] == ends[3:]
    store.close()


def test_a_part_that_is_being_indexed_does_not_keep_its_segment_from_being_deleted(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path)
    put_keyed(store, 60)
    first = store.log.segments[0]
    part = index_of(store).next_part(store.log, store.log.end)
    assert part is not None
    first.view.release()  # as the log does when it deletes a segment
    first.file.close()
    index_of(store).add(part)
    assert index_of(store).position == first.base + first.size
    assert header_of(files(tmp_path)[0]).end_offset > 0


def test_indexing_goes_on_at_the_start_of_the_log_when_messages_were_deleted_first(tmp_path: Path) -> None:
    store = opened_with_index(tmp_path, IndexSizes(slots=100, entries=500))
    put_keyed(store, 80)
    start = store.log.segments[1].base
    store.close()
    for path in files(tmp_path):
        path.unlink()
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    store = opened_with_index(tmp_path, IndexSizes(slots=100, entries=500))
    assert store.log.start == start
    assert found(store, "U0") == []
    assert found(store, "U79") == [b"b79"]
    store.close()


def test_a_file_says_how_much_of_it_is_durable_only_after_the_sync(tmp_path: Path) -> None:
    path = str(tmp_path / "1")
    file = IndexFile.create(OsDisk(), path, SIZES, None)
    file.header = IndexHeader(1, 1, 0, 100, 1, 2)
    seen: list[tuple[DurableMark | None, bool]] = [(file.mark, file.is_dirty)]
    mark = DurableMark(2, 150)
    for said in (mark, mark, None):
        file.sync_whole(None) if said is None else file.sync(said)
        seen.append((file.mark, file.is_dirty))
    assert seen == [
        (None, True),
        (mark, True),
        (mark, False),
        (None, False),
    ]  # the mark itself waits for a sync
    file.close()


def test_a_stop_finishes_what_is_left_to_index(tmp_path: Path) -> None:
    store: MessageStore = opened_with_index(tmp_path)
    put_keyed(store, 3)
    store.close()
    assert header_of(files(tmp_path)[0]).next_entry == 7
