"""The store's files as the format describes them (check-list ST-01 to ST-15)."""

import itertools
import os
import shutil
import struct
from pathlib import Path

import pytest

from bolide.model.errors import RecordTooLarge, StoreError, StoreUnavailable
from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import MAGIC_BLANK
from bolide.store.marks import Promise
from bolide.store.reading import PullStatus
from tests.unit.store.stage import (
    LIMITS,
    SEGMENT_BYTES,
    HeldClock,
    WatchedDisk,
    bodies,
    body_of,
    killed,
    log_bytes,
    message,
    opened,
    put,
    put_many,
    queue_bytes,
    records_of,
)


def test_one_message_makes_the_files_of_the_layout(tmp_path: Path) -> None:
    """ST-01, and RC-01: `abort` has our process id while the store is open, and is gone after a clean stop."""
    store = opened(tmp_path)
    put(store, message("T", queue_id=3))
    assert (tmp_path / "abort").read_bytes() == str(os.getpid()).encode()
    assert (tmp_path / "lock").read_bytes() == b"lock"
    assert (tmp_path / "commitlog" / f"{0:020d}").stat().st_size == SEGMENT_BYTES
    assert (tmp_path / "consumequeue" / "T" / "3" / f"{0:020d}").stat().st_size == 200
    store.close()
    assert not (tmp_path / "abort").exists()


def test_all_topics_share_one_log_without_gaps(tmp_path: Path) -> None:
    """ST-02."""
    store = opened(tmp_path)
    appended = put(store, *(message(f"T{number % 2}") for number in range(6)))
    assert appended[0].log_offset == 0
    for before, after in itertools.pairwise(appended):
        assert after.log_offset == before.end


def test_a_record_says_where_it_is_and_when_it_was_stored(tmp_path: Path) -> None:
    """ST-03."""
    clock = HeldClock(1234)
    store = opened(tmp_path, clock=clock)
    first, second = put(store, message(body=b"a"), message(body=b"bb"))
    log = log_bytes(tmp_path)
    head = inspect_record(log, int(second.log_offset), len(log), True)
    assert isinstance(head, RecordHead)
    assert (head.log_offset, head.queue_offset, head.store_timestamp_ms) == (first.end, 1, 1234)


def test_restart_changes_no_byte_of_old_records(tmp_path: Path) -> None:
    """ST-04."""
    store = opened(tmp_path)
    put_many(store, 50)
    end = int(store.log.end)
    store.close()
    before = log_bytes(tmp_path)[:end]
    store = opened(tmp_path)
    put_many(store, 1)
    assert log_bytes(tmp_path)[:end] == before


def record_bytes(body: bytes) -> int:
    return 91 + 1 + len(b"UNIQ_KEY\x01K\x02") + len(body)


@pytest.mark.parametrize(("spare", "fits"), [(8, True), (7, False), (100, True), (0, False)])
def test_a_record_needs_eight_bytes_behind_it(tmp_path: Path, spare: int, fits: bool) -> None:
    """ST-05: a record of remaining - 8 bytes still fits, one of remaining - 7 does not."""
    store = opened(tmp_path)
    (first,) = put(store, message(body=b"x" * 1000))
    remaining = SEGMENT_BYTES - int(first.end)
    (second,) = put(store, message(body=b"y" * (remaining - spare - record_bytes(b""))))
    segments = sorted(path.name for path in (tmp_path / "commitlog").iterdir())
    if fits:
        assert second.log_offset == first.end
        assert segments == [f"{0:020d}"]
    else:
        assert second.log_offset == SEGMENT_BYTES
        assert segments == [f"{0:020d}", f"{SEGMENT_BYTES:020d}"]
        assert struct.unpack_from(">II", log_bytes(tmp_path), int(first.end)) == (remaining, MAGIC_BLANK)


def test_a_blank_record_writes_eight_bytes_only(tmp_path: Path) -> None:
    store = opened(tmp_path)
    (first,) = put(store, message(body=b"x" * 3000))
    put(store, message(body=b"y" * 3000))
    assert set(log_bytes(tmp_path)[int(first.end) + 8 : SEGMENT_BYTES]) == {0}


def test_offsets_go_on_over_segments_and_reads_cross_their_borders(tmp_path: Path) -> None:
    """ST-06."""
    store = opened(tmp_path)
    put_many(store, 200)
    names = sorted(int(path.name) for path in (tmp_path / "commitlog").iterdir())
    assert len(names) > 4
    assert names == [number * SEGMENT_BYTES for number in range(len(names))]
    assert bodies(store) == [b"%05d" % number for number in range(200)]


def test_queue_offsets_count_from_zero_and_a_refused_message_uses_none(tmp_path: Path) -> None:
    """ST-07."""
    store = opened(tmp_path)
    assert [int(one.queue_offset) for one in put_many(store, 3)] == [0, 1, 2]
    with pytest.raises(RecordTooLarge, match="does not fit a segment"):
        store.append([message(body=b"x" * SEGMENT_BYTES)])
    assert [int(one.queue_offset) for one in put_many(store, 1)] == [3]
    assert store.reader.queue_range("T", 0) == (0, 4)


def test_an_entry_has_place_size_and_code_of_the_tag(tmp_path: Path) -> None:
    """ST-08."""
    store = opened(tmp_path)
    tags = (b"TAGS\x01TagA\x02", b"", b"TAGS\x01polygenelubricants\x02")
    appended = put(store, *(message(properties=properties) for properties in tags))
    entries = [struct.unpack_from(">qiq", queue_bytes(tmp_path), 20 * number) for number in range(3)]
    assert [entry[2] for entry in entries] == [2598919, 0, -(2**31)]
    for entry, one in zip(entries, appended, strict=True):
        assert entry[:2] == (one.log_offset, one.end - one.log_offset)


def test_entry_45_is_the_sixth_of_the_fifth_file(tmp_path: Path) -> None:
    """ST-09, with ten entries per file."""
    store = opened(tmp_path)
    appended = put_many(store, 50)
    file = (tmp_path / "consumequeue" / "T" / "0" / f"{45 * 20 // 200 * 200:020d}").read_bytes()
    assert struct.unpack_from(">q", file, 5 * 20) == (appended[45].log_offset,)
    assert bodies(store)[40:] == [b"%05d" % number for number in range(40, 50)]


def test_a_batch_is_consecutive_records_of_one_queue_in_one_segment(tmp_path: Path) -> None:
    """ST-11."""
    store = opened(tmp_path)
    put(store, message(body=b"x" * 3000))
    batch = [message(body=b"%d" % number * 300) for number in range(3)]
    appended = store.append(batch)
    assert [int(one.queue_offset) for one in appended] == [1, 2, 3]
    assert appended[0].log_offset == SEGMENT_BYTES  # not split over the border
    assert [int(one.end) for one in appended[:2]] == [int(one.log_offset) for one in appended[1:]]
    with pytest.raises(RecordTooLarge):
        store.append([message(body=b"x" * 1500)] * 3)
    assert store.reader.queue_range("T", 0) == (0, 4)


def test_messages_of_several_queues_in_one_call_get_the_next_numbers_of_their_own_queues(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    put(store, message("T", b"0"), message("T", b"1"))
    places = [("T", 0), ("Orders", 3), ("T", 0), ("T", 1), ("Orders", 3)]
    appended = store.append(
        [message(topic, b"%d" % number, queue_id) for number, (topic, queue_id) in enumerate(places, 2)]
    )
    assert [int(one.queue_offset) for one in appended] == [2, 0, 3, 0, 1]
    assert {tail.key for tail in store.take_touched()} == set(places)
    found = {place: bodies(store, *place) for place in set(places)}
    assert found == {("T", 0): [b"0", b"1", b"2", b"4"], ("T", 1): [b"5"], ("Orders", 3): [b"3", b"6"]}
    killed(store)
    store = opened(tmp_path)
    assert {place: bodies(store, *place) for place in set(places)} == found


def test_of_messages_of_several_queues_that_do_not_fit_a_segment_none_is_taken(tmp_path: Path) -> None:
    store = opened(tmp_path)
    with pytest.raises(RecordTooLarge):
        store.append([message("T", b"x" * 2500), message("Orders", b"x" * 2500)])
    assert store.reader.queue_range("T", 0) == store.reader.queue_range("Orders", 0) == (0, 0)
    assert store.log.end == 0
    assert store.append([]) == []


def test_a_code_from_outside_is_in_the_entry_and_one_that_no_entry_can_hold_is_refused(
    tmp_path: Path,
) -> None:
    store = opened(tmp_path)
    put(store, message(tags_code=-5), message(tags_code=0, properties=b"TAGS\x01TagA\x02"))
    entries = [struct.unpack_from(">qiq", queue_bytes(tmp_path), 20 * number) for number in range(2)]
    assert [entry[2] for entry in entries] == [-5, 0]
    end = store.log.end
    with pytest.raises(ValueError, match="64 bits"):
        store.append([message(), message(tags_code=1 << 63)])
    assert store.log.end == end


@pytest.mark.parametrize("sealed", [False, True])
def test_a_recovery_gives_the_entries_that_the_appends_gave(tmp_path: Path, sealed: bool) -> None:
    """Plain and delayed messages, and the halves of transactions, which have none; the queues' files are lost."""
    delayed = message("SCHEDULE_TOPIC_XXXX", properties=b"TAGS\x01A\x02DELAY\x013\x02")
    clock = HeldClock()
    store = opened(tmp_path, clock=clock, sealed=sealed)
    put(store, message(), delayed, message("SCHEDULE_TOPIC_XXXX", properties=b"TAGS\x01A\x02"))
    clock.ms += 1234
    put(store, delayed, message(sys_flag=4), message(sys_flag=8), message(sys_flag=12), message())
    queues = {queue.tail.key: queue.read(0, 100) for queue in store.queues}
    assert {key: len(entries) // 20 for key, entries in queues.items()} == {
        ("T", 0): 3,
        ("SCHEDULE_TOPIC_XXXX", 0): 3,
    }
    killed(store)
    shutil.rmtree(tmp_path / "consumequeue")
    store = opened(tmp_path, clock=clock, sealed=sealed)
    assert {queue.tail.key: queue.read(0, 100) for queue in store.queues} == queues


def test_a_message_is_found_by_its_place_in_the_log_and_only_there(tmp_path: Path) -> None:
    """ST-13, second half."""
    store = opened(tmp_path)
    first, second = put(store, message(body=b"one"), message(body=b"two"))
    found = store.reader.read_at(int(second.log_offset))
    assert found is not None
    assert body_of(found) == b"two"
    for nowhere in (1, int(first.end) + 1, int(second.end), 10**9, -5):
        assert store.reader.read_at(nowhere) is None


def test_store_times_never_go_back_along_the_log(tmp_path: Path) -> None:
    """ST-14, second half."""
    clock = HeldClock(1000)
    store = opened(tmp_path, clock=clock)
    for now_ms in (1000, 2000, 1500, 500, 3000):
        clock.ms = now_ms
        put(store, message())
    assert [store.reader.store_time("T", 0, offset) for offset in range(5)] == [1000, 2000, 2000, 2000, 3000]


def test_a_second_store_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    """ST-15."""
    store = opened(tmp_path)
    with pytest.raises(StoreError, match="another broker uses the store"):
        opened(tmp_path)
    put_many(store, 1)
    with pytest.raises(StoreError, match="another broker uses the store"):
        opened(tmp_path)  # the refusal did not break the lock
    store.close()
    opened(tmp_path).close()


def test_a_store_that_cannot_open_lets_go_of_its_lock(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 1)
    store.close()
    with pytest.raises(StoreError, match="mappedFileSizeCommitLog"):
        opened(tmp_path, segment_bytes=8192)
    opened(tmp_path).close()


def test_queue_files_are_sparse_and_segments_are_reserved(tmp_path: Path) -> None:
    store = opened(tmp_path, segment_bytes=1024 * 1024, queue_file_bytes=6_000_000)
    put_many(store, 3)
    queue = (tmp_path / "consumequeue" / "T" / "0" / f"{0:020d}").stat()
    assert queue.st_size == 6_000_000
    assert queue.st_blocks * 512 <= 64 * 1024
    assert (tmp_path / "commitlog" / f"{0:020d}").stat().st_blocks * 512 >= 1024 * 1024


def test_a_full_disk_at_the_roll_refuses_messages_and_reads_go_on(tmp_path: Path) -> None:
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    count = len(put_many(store, 30))
    disk.full = True
    while store.log.position + 2 * record_bytes(b"body") < SEGMENT_BYTES:  # what still fits is taken
        store.append([message()])
        count += 1
    with pytest.raises(StoreUnavailable, match="No space left"):
        store.append([message(body=b"x" * 1000)])
    assert store.reader.queue_range("T", 0) == (0, count)
    assert len(bodies(store)) == count
    disk.full = False
    put(store, message(body=b"after"))
    assert bodies(store)[-1] == b"after"
    assert store.reader.queue_range("T", 0) == (0, count + 1)


def test_while_queue_entries_cannot_be_written_nothing_more_is_taken(tmp_path: Path) -> None:
    """Otherwise they would pile up in memory; what was taken stays readable."""
    disk = WatchedDisk()
    store = opened(tmp_path, disk=disk)
    put_many(store, 5)
    store.append([message(body=b"six")])
    tails = store.take_touched()
    disk.full = True
    with pytest.raises(StoreUnavailable, match="consume queue"):
        store.write_behind(tails)
    with pytest.raises(StoreUnavailable):
        store.append([message()])
    assert bodies(store)[-1] == b"six"
    disk.full = False
    store.write_behind(tails)
    assert [int(one.queue_offset) for one in put(store, message())] == [6]


def test_search_by_time_finds_the_first_message_at_or_after_it(tmp_path: Path) -> None:
    clock = HeldClock()
    store = opened(tmp_path, clock=clock)
    for now_ms in (1000, 1000, 2000, 2000, 3000):
        clock.ms = now_ms
        put(store, message())
    lower = [store.reader.search_offset("T", 0, t) for t in (0, 1000, 1001, 2000, 2500, 3000, 3001)]
    assert lower == [0, 0, 2, 2, 4, 4, 5]
    upper = [store.reader.search_offset("T", 0, t, upper=True) for t in (0, 1000, 1999, 2000, 3000, 9999)]
    assert upper == [0, 1, 1, 3, 4, 4]
    assert store.reader.search_offset("T", 9, 1000) == 0
    assert store.reader.earliest_store_time("T", 0) == 1000
    assert store.reader.earliest_store_time("T", 9) == -1


def test_the_range_of_a_queue_is_its_first_and_next_offset(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.reader.queue_range("T", 0) == (0, 0)
    put_many(store, 3)
    assert store.reader.queue_range("T", 0) == (0, 3)
    assert store.reader.queue_range("T", 1) == (0, 0)


@pytest.mark.parametrize(
    ("offset", "status", "following"),
    [
        (0, PullStatus.FOUND, 25),
        (24, PullStatus.FOUND, 25),
        (25, PullStatus.OFFSET_OVERFLOW_ONE, 25),
        (26, PullStatus.OFFSET_OVERFLOW_BADLY, 25),
    ],
)
def test_every_offset_has_a_status_and_a_next_offset(
    tmp_path: Path, offset: int, status: PullStatus, following: int
) -> None:
    store = opened(tmp_path)
    put_many(store, 25)
    while True:
        result = store.reader.pull("T", 0, offset, limits=LIMITS)
        if result.status is not PullStatus.FOUND or result.next_offset == following:
            break
        offset = result.next_offset
    assert (result.status, result.next_offset) == (status, following)
    assert (result.offset_min, result.offset_max) == (0, 25)


def test_entries_not_yet_written_are_read_from_memory(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    store.append([message(body=b"only in memory")])
    assert bodies(store)[-1] == b"only in memory"
    assert len(queue_bytes(tmp_path).rstrip(b"\0")) <= 5 * 20


def test_a_pull_goes_on_from_the_file_into_memory(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    for number in range(3):
        store.append([message(body=b"%d" % number)])
    result = store.reader.pull("T", 0, 2, limits=LIMITS)
    assert (result.count, result.next_offset) == (6, 8)


def test_a_missing_queue_file_is_passed_over(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 35)
    store.close()
    (tmp_path / "consumequeue" / "T" / "0" / f"{200:020d}").unlink()
    store = opened(tmp_path)
    result = store.reader.pull("T", 0, 13, limits=LIMITS)
    assert (result.status, result.next_offset) == (PullStatus.OFFSET_FOUND_NULL, 20)
    assert store.reader.pull("T", 0, 20, limits=LIMITS).status is PullStatus.FOUND


def test_a_pull_gives_stored_bytes_unchanged(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 3)
    data = store.reader.pull("T", 0, 0, limits=LIMITS).data
    assert data == log_bytes(tmp_path)[: len(data)]
    assert len(records_of(data)) == 3


def test_what_a_kill_left_is_readable_under_sync_flush_before_anybody_sends(tmp_path: Path) -> None:
    store = opened(tmp_path, promise=Promise.DURABLE)
    put_many(store, 3)
    killed(store)
    assert len(bodies(opened(tmp_path, promise=Promise.DURABLE))) == 3


def test_nothing_is_readable_under_sync_flush_before_it_is_durable(tmp_path: Path) -> None:
    store = opened(tmp_path, promise=Promise.DURABLE)
    store.append([message()])
    result = store.reader.pull("T", 0, 0, limits=LIMITS)
    assert (result.status, result.next_offset) == (PullStatus.OFFSET_OVERFLOW_ONE, 0)
    point = store.durability.next_point()
    assert point is not None
    point.run()
    store.durability.reached(point)
    assert store.reader.pull("T", 0, 0, limits=LIMITS).status is PullStatus.FOUND


def test_a_deleted_topic_leaves_no_files_and_starts_again_at_zero(tmp_path: Path) -> None:
    """Even when entries of it were on their way to its files."""
    store = opened(tmp_path)
    put_many(store, 3)
    store.append([message()])
    tails = store.take_touched()
    store.delete_topic("T")
    store.write_behind(tails)
    assert not (tmp_path / "consumequeue" / "T").exists()
    assert [int(one.queue_offset) for one in put_many(store, 1)] == [0]


def test_after_a_failed_sync_nothing_more_is_taken(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 1)
    store.durability.failed(OSError(5, "Input/output error"))
    with pytest.raises(StoreUnavailable, match="Input/output error"):
        store.append([message()])
    with pytest.raises(StoreError, match="failed before"):
        store.durability.next_point()
    killed(store)


def test_store_times_do_not_go_back_when_the_clock_did_over_a_restart(tmp_path: Path) -> None:
    store = opened(tmp_path, clock=HeldClock(5000))
    put_many(store, 3)
    store.close()
    store = opened(tmp_path, clock=HeldClock(1000))
    (later,) = put(store, message(body=b"later"))
    log = log_bytes(tmp_path)
    head = inspect_record(log, int(later.log_offset), len(log), True)
    assert isinstance(head, RecordHead)
    assert head.store_timestamp_ms == 5000


@pytest.mark.parametrize("promise", list(Promise))
def test_only_a_log_that_is_synced_later_is_written_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promise: Promise
) -> None:
    store = opened(tmp_path, promise=promise)
    file = store.log.current.file
    sizes: list[int] = []
    write = file.write

    def watched(at: int, data: bytes | memoryview) -> None:
        sizes.append(len(data))
        write(at, data)

    monkeypatch.setattr(file, "write", watched)
    put(store, message("T"))
    assert sizes == (
        [store.log.position] if promise is Promise.DURABLE else [SEGMENT_BYTES, store.log.position]
    )
    store.close()


@pytest.mark.parametrize(("asked", "given"), [(20, 20), (21, 40), (2**31 - 1, 2**31 - 8)])
def test_a_queue_file_has_whole_entries_and_no_more_bytes_than_a_file_may_have(
    asked: int, given: int, tmp_path: Path
) -> None:
    store = opened(tmp_path, queue_file_bytes=asked)
    put(store, message())
    store.close()
    (path,) = (tmp_path / "consumequeue").glob("*/0/*")
    assert path.stat().st_size == given
    again = opened(tmp_path, queue_file_bytes=asked)
    assert again.queues.end_of("T", 0) == 1
    again.close()
