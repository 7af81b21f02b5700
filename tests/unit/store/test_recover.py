"""What a start finds after a clean stop, a kill, and damage (check-list RC-03 to RC-10)."""

import os
import shutil
import struct
from pathlib import Path

import pytest

from bolide.model.delay_levels import DEFAULT_LEVELS
from bolide.model.errors import StoreError
from bolide.record.layout import MAGIC_BLANK
from bolide.store.deliver_time import deliver_time_of
from bolide.store.reading import PullStatus
from tests.unit.store.stage import (
    LIMITS,
    QUEUE_FILE_BYTES,
    SEGMENT_BYTES,
    HeldClock,
    bodies,
    killed,
    log_bytes,
    message,
    opened,
    put,
    put_many,
    queue_bytes,
)


def damage(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def segment(root: Path, number: int = 0) -> Path:
    return root / "commitlog" / f"{number * SEGMENT_BYTES:020d}"


def test_a_clean_restart_has_the_same_queues_and_goes_on(tmp_path: Path) -> None:
    """RC-03."""
    store = opened(tmp_path)
    put_many(store, 100)
    put_many(store, 7, "Other", 3)
    end = store.log.end
    store.close()
    store = opened(tmp_path)
    assert store.log.end == end
    assert store.reader.queue_range("T", 0) == (0, 100)
    assert store.reader.queue_range("Other", 3) == (0, 7)
    assert [int(one.queue_offset) for one in put_many(store, 1)] == [100]
    assert len(bodies(store)) == 101
    store.close()


def test_an_empty_store_restarts_empty(tmp_path: Path) -> None:
    opened(tmp_path).close()
    store = opened(tmp_path)
    assert store.log.end == 0
    put_many(store, 1)
    assert len(bodies(store)) == 1


@pytest.mark.parametrize("count", [1, 9, 10, 11, 20, 300])
def test_after_a_kill_everything_is_there_once(tmp_path: Path, count: int) -> None:
    """RC-04: the queue entries that were only in memory are found in the log again."""
    store = opened(tmp_path)
    late = min(count, 15)
    put_many(store, count - late)
    for number in range(late):
        store.append([message(body=b"late %d" % number)])
    expected = bodies(store)
    killed(store)
    assert (tmp_path / "abort").exists()
    store = opened(tmp_path)
    assert bodies(store) == expected
    assert store.reader.queue_range("T", 0) == (0, count)
    store.close()
    store = opened(tmp_path)
    assert bodies(store) == expected


def test_the_queues_are_rebuilt_from_the_log_when_their_files_are_gone(tmp_path: Path) -> None:
    """RC-06."""
    store = opened(tmp_path, segment_bytes=65536)
    put_many(store, 35)
    put_many(store, 5, "Other", 2)
    expected = bodies(store)
    store.close()
    queue = queue_bytes(tmp_path)
    shutil.rmtree(tmp_path / "consumequeue")
    for clean in (False, True):
        if not clean:
            (tmp_path / "abort").write_bytes(b"1")
        store = opened(tmp_path, segment_bytes=65536)
        assert bodies(store) == expected
        assert store.reader.queue_range("Other", 2) == (0, 5)
        store.close()
        assert queue_bytes(tmp_path) == queue


def test_recovery_over_records_that_have_their_entries_adds_none(tmp_path: Path) -> None:
    """RC-07, several times over."""
    store = opened(tmp_path)
    put_many(store, 60)
    for _ in range(3):
        killed(store)
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (0, 60)
    assert len(bodies(store)) == 60


@pytest.mark.parametrize("kept", [0, 4, 50, 90, 100])
def test_a_torn_last_record_is_cut_with_its_entry(tmp_path: Path, kept: int) -> None:
    """RC-05: the log ends before it, a new message takes its place and its number."""
    store = opened(tmp_path)
    appended = put_many(store, 20)
    killed(store)
    last = int(appended[-1].log_offset)
    damage(segment(tmp_path), last + kept, bytes(int(appended[-1].end) - last - kept))
    store = opened(tmp_path)
    assert store.log.end == last
    assert store.reader.queue_range("T", 0) == (0, 19)
    (again,) = put(store, message(body=b"again"))
    assert (again.log_offset, again.queue_offset) == (last, 19)
    assert bodies(store)[-1] == b"again"


def test_a_flipped_byte_of_a_body_ends_the_log_there(tmp_path: Path) -> None:
    store = opened(tmp_path)
    appended = put_many(store, 20)
    killed(store)
    damage(segment(tmp_path), int(appended[15].log_offset) + 88, b"\xff")
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (0, 15)
    assert len(bodies(store)) == 15


def test_what_was_cut_never_comes_back(tmp_path: Path) -> None:
    """Records behind a damaged one still lie in the file, at their own places, until they are overwritten.

    A new record of the same size ends exactly where one of them begins: a later start must not take it.
    """
    store = opened(tmp_path)
    appended = put_many(store, 20)
    killed(store)
    damage(segment(tmp_path), int(appended[10].log_offset) + 88, b"\xff")
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (0, 10)
    put(store, message(body=b"00010"))
    for stop in (killed, lambda store: store.close()):
        stop(store)
        store = opened(tmp_path)
        assert bodies(store) == [b"%05d" % number for number in range(11)]
        assert store.log.end == appended[10].end


def test_a_damaged_record_in_an_older_segment_cuts_all_behind_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    appended = put_many(store, 120)
    killed(store)
    newest = max(int(path.name) for path in (tmp_path / "commitlog").iterdir())
    first_of_previous = next(
        number for number, one in enumerate(appended) if one.log_offset >= newest - SEGMENT_BYTES
    )
    bad = first_of_previous + 3
    damage(
        segment(tmp_path, newest // SEGMENT_BYTES - 1),
        int(appended[bad].log_offset) % SEGMENT_BYTES + 88,
        b"!",
    )
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (0, bad)
    assert not segment(tmp_path, newest // SEGMENT_BYTES).exists()
    put_many(store, 100)
    assert len(bodies(store)) == bad + 100


def test_a_stop_between_the_blank_record_and_the_first_of_the_next_segment(tmp_path: Path) -> None:
    """The blank record reached the disk, the next segment is still empty: it is where the log goes on."""
    store = opened(tmp_path)
    (first,) = put(store, message(body=b"x" * 3000))
    put(store, message(body=b"y" * 3000))
    killed(store)
    damage(segment(tmp_path, 1), 0, bytes(SEGMENT_BYTES))
    assert struct.unpack_from(">II", log_bytes(tmp_path), int(first.end))[1] == MAGIC_BLANK
    store = opened(tmp_path)
    assert store.log.end == SEGMENT_BYTES
    (again,) = put(store, message(body=b"z" * 3000))
    assert (again.log_offset, again.queue_offset) == (SEGMENT_BYTES, 1)
    assert bodies(store) == [b"x" * 3000, b"z" * 3000]


def test_an_extra_empty_segment_is_accepted_and_used_in_time(tmp_path: Path) -> None:
    """RC-09: the original makes the next segment before it needs it."""
    store = opened(tmp_path)
    put_many(store, 5)
    store.close()
    segment(tmp_path, 1).write_bytes(bytes(SEGMENT_BYTES))
    store = opened(tmp_path)
    put_many(store, 60)
    assert len(bodies(store)) == 65


def test_a_segment_of_another_length_is_refused_and_an_empty_last_one_removed(tmp_path: Path) -> None:
    """RC-10."""
    store = opened(tmp_path)
    put_many(store, 5)
    store.close()
    segment(tmp_path, 1).write_bytes(b"")
    store = opened(tmp_path)
    assert not segment(tmp_path, 1).exists()
    store.close()
    segment(tmp_path, 1).write_bytes(b"short")
    with pytest.raises(StoreError, match="5 bytes where mappedFileSizeCommitLog is 4096"):
        opened(tmp_path)


def test_a_last_segment_that_was_only_half_reserved_is_made_again(tmp_path: Path) -> None:
    """Reserving a gigabyte takes the file system several steps; power may go between two of them."""
    store = opened(tmp_path)
    put_many(store, 60)
    store.close()
    last = sorted((tmp_path / "commitlog").iterdir())[-1]
    half_made = last.with_name(f"{int(last.name) + SEGMENT_BYTES:020d}")
    half_made.write_bytes(bytes(1024))
    store = opened(tmp_path)
    assert not half_made.exists()
    assert bodies(store) == [b"%05d" % number for number in range(60)]
    put_many(store, 60)
    store.close()
    assert half_made.stat().st_size == SEGMENT_BYTES


def test_a_missing_segment_is_refused_and_nothing_is_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 150)
    killed(store)
    names = sorted(path.name for path in (tmp_path / "commitlog").iterdir())
    segment(tmp_path, len(names) - 2).unlink()
    with pytest.raises(StoreError, match="missing"):
        opened(tmp_path)
    assert len(list((tmp_path / "commitlog").iterdir())) == len(names) - 1


def test_an_empty_log_empties_the_queues(tmp_path: Path) -> None:
    """RC-08."""
    store = opened(tmp_path)
    put_many(store, 25)
    store.close()
    for path in (tmp_path / "commitlog").iterdir():
        path.unlink()
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (0, 0)
    put_many(store, 2)
    assert len(bodies(store)) == 2
    store.close()
    store = opened(tmp_path)
    assert len(bodies(store)) == 2


def test_entries_that_point_behind_the_log_are_cut(tmp_path: Path) -> None:
    store = opened(tmp_path)
    appended = put_many(store, 25)
    killed(store)
    for number in (24, 23):
        at = int(appended[number].log_offset)
        damage(segment(tmp_path, at // SEGMENT_BYTES), at % SEGMENT_BYTES, bytes(8))
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (0, 23)
    store.close()
    assert set(queue_bytes(tmp_path)[23 * 20 :]) == {0}


def gap_entries(count: int) -> bytes:
    return struct.pack(">qiq", 0, 0x7FFFFFFF, 0) * count


@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("gap", [1, 4, 6, 7])
def test_a_queue_that_begins_with_gap_entries_keeps_its_messages(
    tmp_path: Path, clean: bool, gap: int
) -> None:
    """The original fills the part of a first file that lies before the queue's first message."""
    store = opened(tmp_path)
    appended = put_many(store, 8)
    store.close()
    entries = b"".join(
        struct.pack(">qiq", one.log_offset, one.end - one.log_offset, 0) for one in appended[gap:]
    )
    damage(tmp_path / "consumequeue" / "T" / "0" / f"{0:020d}", 0, gap_entries(gap) + entries)
    if not clean:
        (tmp_path / "abort").write_bytes(b"1")
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (gap, 8)
    result = store.reader.pull("T", 0, gap, limits=LIMITS)
    assert (result.status, result.count, result.next_offset) == (PullStatus.FOUND, 8 - gap, 8)


def test_a_queue_whose_oldest_records_are_gone_begins_where_the_log_begins(tmp_path: Path) -> None:
    store = opened(tmp_path)
    appended = put_many(store, 150)
    store.close()
    for number in range(2):
        segment(tmp_path, number).unlink()
    first = next(number for number, one in enumerate(appended) if one.log_offset >= 2 * SEGMENT_BYTES)
    for clean in (True, False):
        if not clean:
            (tmp_path / "abort").write_bytes(b"1")
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (first, 150)
        assert store.reader.pull("T", 0, 0, limits=LIMITS).status is PullStatus.OFFSET_TOO_SMALL
        assert bodies(store) == [b"%05d" % number for number in range(first, 150)]
        store.close()


def test_queues_rebuilt_without_their_oldest_records_keep_their_numbers(tmp_path: Path) -> None:
    """Old segments have expired and the queue files are lost: offsets stay what they were, over restarts too."""
    store = opened(tmp_path)
    appended = put_many(store, 150)
    store.close()
    for number in range(2):
        segment(tmp_path, number).unlink()
    shutil.rmtree(tmp_path / "consumequeue")
    first = next(number for number, one in enumerate(appended) if one.log_offset >= 2 * SEGMENT_BYTES)
    for _ in range(3):
        store = opened(tmp_path)
        assert store.reader.queue_range("T", 0) == (first, 150)
        assert bodies(store) == [b"%05d" % number for number in range(first, 150)]
        store.close()


def test_entries_missing_in_the_middle_of_a_queue_do_not_hide_the_others(tmp_path: Path) -> None:
    """Pages of a queue file were lost that belong to segments older than the ones that are walked."""
    store = opened(tmp_path)
    put_many(store, 150)
    before = queue_bytes(tmp_path)
    killed(store)
    folder = tmp_path / "consumequeue" / "T" / "0"
    for path in sorted(folder.iterdir())[3:]:
        path.unlink()
    for _ in range(3):
        store = opened(tmp_path)
        found = bodies(store)
        assert store.reader.queue_range("T", 0) == (0, 150)
        assert found[:30] == [b"%05d" % number for number in range(30)]
        assert found[30:] == [b"%05d" % number for number in range(150 - len(found) + 30, 150)]
        assert len(found) > 60
        store.close()
    assert queue_bytes(tmp_path)[-200:] == before[-200:]


def test_a_topic_in_the_log_that_is_no_name_never_becomes_a_path(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put(store, message("T"), message("..\\..\\x"), message("T", body=b"behind"))
    killed(store)
    log = bytearray(segment(tmp_path).read_bytes())
    at = log.index(b"..\\..\\x")
    for name in (b"../../x", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9", b"a\0b\0c\0d"):
        log[at : at + 7] = name
        segment(tmp_path).write_bytes(log)
        store = opened(tmp_path)
        assert bodies(store) == [b"body"]
        assert not (tmp_path / "x").exists()
        assert not (tmp_path.parent / "x").exists()
        killed(store)


@pytest.mark.parametrize("damage_done", ["short", "misplaced"])
def test_queue_files_of_another_size_are_refused_with_words(tmp_path: Path, damage_done: str) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    store.close()
    folder = tmp_path / "consumequeue" / "T" / "0"
    if damage_done == "short":
        os.truncate(folder / f"{0:020d}", 130)
    else:
        (folder / f"{0:020d}").rename(folder / f"{60:020d}")
    with pytest.raises(StoreError, match="mappedFileSizeConsumeQueue"):
        opened(tmp_path)


def test_a_queue_file_without_a_length_is_made_again(tmp_path: Path) -> None:
    """Its name reached the disk before power was lost, its length did not."""
    store = opened(tmp_path)
    put_many(store, 15)
    killed(store)
    for path in (tmp_path / "consumequeue" / "T" / "0").iterdir():
        os.truncate(path, 0)
    store = opened(tmp_path)
    assert bodies(store) == [b"%05d" % number for number in range(15)]
    assert len(queue_bytes(tmp_path)) == 2 * QUEUE_FILE_BYTES
    store.close()


def test_stray_files_among_the_queues_are_ignored(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    store.close()
    (tmp_path / "consumequeue" / "stray").write_bytes(b"x")
    (tmp_path / "consumequeue" / "T" / "stray").write_bytes(b"x")
    (tmp_path / "consumequeue" / "T" / "0" / "stray").write_bytes(b"x")
    store = opened(tmp_path)
    assert len(bodies(store)) == 5


def test_after_a_clean_stop_nothing_of_the_log_is_read_but_its_last_record(tmp_path: Path) -> None:
    store = opened(tmp_path)
    appended = put_many(store, 150)
    end = store.log.end
    store.close()
    last = int(appended[-1].log_offset)
    for path in (tmp_path / "commitlog").iterdir():
        base = int(path.name)
        damage(path, 0, b"\xaa" * max(0, min(SEGMENT_BYTES, last - base)))
    store = opened(tmp_path)
    assert store.log.end == end
    assert store.reader.queue_range("T", 0) == (0, 150)


@pytest.mark.parametrize("entries", ["kept", "lost"])
def test_delayed_messages_stay_due_when_they_were(tmp_path: Path, entries: str) -> None:
    """The original keeps the time of delivery in their queue entries; here level 3, ten seconds."""
    store = opened(tmp_path)
    delayed = message("SCHEDULE_TOPIC_XXXX", queue_id=2, properties=b"TAGS\x01A\x02DELAY\x013\x02")
    (appended,) = put(store, delayed)
    killed(store)
    path = tmp_path / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "2" / f"{0:020d}"
    place = (int(appended.log_offset), int(appended.end - appended.log_offset))
    if entries == "kept":  # by somebody with other delays
        damage(path, 0, struct.pack(">qiq", *place, HeldClock().ms + 4711))
    else:
        damage(path, 0, bytes(20))
    opened(tmp_path)
    due = HeldClock().ms + (4711 if entries == "kept" else 10_000)
    assert struct.unpack_from(">qiq", path.read_bytes()) == (*place, due)


@pytest.mark.parametrize(
    ("level", "delay_ms"), [(b"1", 1000), (b"5", 60_000), (b"18", 7_200_000), (b"99", 7_200_000)]
)
def test_delay_levels_are_those_of_the_original(level: bytes, delay_ms: int) -> None:
    assert deliver_time_of(b"DELAY\x01" + level + b"\x02", 5, DEFAULT_LEVELS) == 5 + delay_ms


@pytest.mark.parametrize(
    "text", [b"", b"DELAY\x010\x02", b"DELAY\x01-1\x02", b"DELAY\x01x\x02", b"XDELAY\x013\x02"]
)
def test_without_a_level_there_is_no_time_of_delivery(text: bytes) -> None:
    assert deliver_time_of(text, 5, DEFAULT_LEVELS) is None


@pytest.mark.parametrize("filler", range(200, 712, 8))
def test_a_queue_whose_first_file_was_lost_before_any_checkpoint_is_what_the_log_says(
    tmp_path: Path, filler: int
) -> None:
    """Wherever its first record lies: what is left of its files is no reason to doubt the log."""
    store = opened(tmp_path)
    put(store, message("Other", bytes(filler)))
    put_many(store, 15)
    killed(store)
    (tmp_path / "consumequeue" / "T" / "0" / f"{0:020d}").unlink()
    store = opened(tmp_path)
    assert bodies(store) == [b"%05d" % number for number in range(15)]
    store.close()


@pytest.mark.parametrize("with_files", [True, False])
@pytest.mark.parametrize("filler", range(200, 712, 8))
def test_a_topic_that_was_made_again_does_not_cut_the_log(
    tmp_path: Path, filler: int, with_files: bool
) -> None:
    """Wherever its first record lies: its number begins anew, and is not one that was lost with the power."""
    store = opened(tmp_path)
    put_many(store, 3)
    store.delete_topic("T")
    put(store, message("Other", bytes(filler)))
    put_many(store, 2)
    end = store.log.end
    killed(store)
    if not with_files:
        shutil.rmtree(tmp_path / "consumequeue")
    store = opened(tmp_path)
    assert store.log.end == end
    assert bodies(store) == [b"00000", b"00001"]
    store.close()


def test_a_zero_in_the_text_of_a_store_of_others_ends_no_log(tmp_path: Path) -> None:
    """Wherever it lies: also where a sector ends."""
    store = opened(tmp_path, segment_bytes=1 << 20)
    for number in range(600):
        put(
            store,
            message("T", b"%05d" % number, properties=b"name\x01" + b"smith\0" * (1 + number % 3) + b"\x02"),
        )
    killed(store)
    store = opened(tmp_path, segment_bytes=1 << 20)
    assert store.queues.get("T", 0).tail.next_offset == 600
