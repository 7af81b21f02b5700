"""Reads of store files without Spark: how a log is cut, what tasks give, and what becomes of damage."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bolide.model.errors import ConfigError, NotAStore
from bolide.offline.files import StoreFiles
from bolide.offline.places import complete_before, cuts, log_end
from bolide.offline.scan import sound_at
from bolide.pipeline import quarantine, store_plan, store_task
from bolide.pipeline.errors import BadRecord, OffsetsExpired
from bolide.pipeline.schema import arrow_schema, native_schema
from bolide.pipeline.store_options import StoreOptions
from bolide.pipeline.store_plan import StorePart, plan_parts
from bolide.pipeline.store_task import read_part
from bolide.store.disk_os import OsDisk
from tests.unit.offline.damaged import make, segment, write_at
from tests.unit.store.stage import SEGMENT_BYTES, HeldClock, message, opened, put

MESSAGES = 120
BIRTH_MS = 1_700_000_000_000

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("clean")
    make(root, count=MESSAGES)
    return root


@pytest.fixture
def copy(clean: Path, tmp_path: Path) -> Path:
    shutil.copytree(clean, tmp_path / "copy")
    return tmp_path / "copy"


def options(root: Path, **changes: Any) -> StoreOptions:
    return StoreOptions(str(root), **changes)


def rows_of(wanted: StoreOptions, parts: list[StorePart] | None = None) -> Rows:
    return list(_rows(wanted, plan_parts(wanted) if parts is None else parts))


def _rows(wanted: StoreOptions, parts: list[StorePart]) -> Iterator[dict[str, Any]]:
    for part in parts:
        for batch in read_part(wanted, part, arrow_schema(native_schema(wanted.columns))):
            batch.validate(full=True)
            yield from batch.to_pylist()


def numbers(rows: Rows) -> list[int]:
    """Which messages came, sorted."""
    return sorted(int(row["body"].split()[-1]) for row in rows if row["bodyError"] is None)


def places_of(root: Path) -> dict[int, int]:
    """Where in the log each message is."""
    return {int(row["body"].split()[-1]): row["logOffset"] for row in rows_of(options(root))}


def test_every_message_is_in_exactly_one_part(clean: Path) -> None:
    for part_bytes in (300, 1000, 5000, 10**6):
        wanted = options(clean, part_bytes_max=part_bytes)
        parts = plan_parts(wanted)
        assert all(before.end == after.begin for before, after in itertools.pairwise(parts))
        assert numbers(rows_of(wanted, parts)) == list(range(MESSAGES))
    assert len(plan_parts(options(clean, part_bytes_max=1000))) > 10
    assert len(plan_parts(options(clean))) == -(-parts[-1].end // SEGMENT_BYTES)  # a segment is never shared


def test_a_log_is_cut_only_where_a_record_begins(clean: Path) -> None:
    store = StoreFiles(OsDisk(), str(clean))
    places = cuts(store, store.log.start, log_end(store), 500)
    assert len(places) > 20
    assert all(sound_at(store, place) for place in places[:-1])
    store.close()


def test_a_store_without_queues_is_read_by_whole_segments(copy: Path) -> None:
    shutil.rmtree(copy / "consumequeue")
    parts = plan_parts(options(copy, part_bytes_max=500))
    assert [part.begin % SEGMENT_BYTES for part in parts] == [0] * len(parts)
    assert numbers(rows_of(options(copy))) == list(range(MESSAGES))


def test_parts_are_left_out_by_time(clean: Path) -> None:
    middle = BIRTH_MS + 1000 * (MESSAGES // 2)
    later = options(clean, since_ms=middle, part_bytes_max=1000)
    assert numbers(rows_of(later)) == list(range(MESSAGES // 2 - 1, MESSAGES))
    before = options(clean, until_ms=middle, part_bytes_max=1000)
    assert numbers(rows_of(before)) == list(range(MESSAGES // 2 - 1))
    assert (
        len(plan_parts(later)) + len(plan_parts(before))
        <= len(plan_parts(options(clean, part_bytes_max=1000))) + 2
    )


@pytest.fixture
def jumps_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even in segments as small as those of tests."""
    monkeypatch.setattr(store_plan, "JUMP_BYTES", 100)


def few_among_many(root: Path, *, clean: bool = True) -> None:
    clock = HeldClock()
    store = opened(root, clock=clock)
    for number in range(600):
        clock.ms += 1000
        put(store, message("few" if number % 60 == 7 else "many", b"body %d" % number))
    if clean:
        store.close()


@pytest.mark.usefixtures("jumps_pay")
def test_few_messages_are_followed_by_their_entries_and_many_are_walked(tmp_path: Path) -> None:
    few_among_many(tmp_path)
    few = options(tmp_path, topics=("few",))
    (part,) = plan_parts(few)  # joined over all segments
    assert part.jumps is not None
    assert numbers(rows_of(few)) == list(range(7, 600, 60))
    assert all(part.jumps is None for part in plan_parts(options(tmp_path, topics=("many",))))
    times = {"since_ms": BIRTH_MS + 68_000, "until_ms": BIRTH_MS + 188_001}
    assert numbers(rows_of(options(tmp_path, topics=("few",), **times))) == [67, 127, 187]


@pytest.mark.usefixtures("jumps_pay")
def test_what_has_no_entry_yet_is_walked(tmp_path: Path) -> None:
    """A broker that was killed, or still runs, has entries on the disk only up to its checkpoint."""
    few_among_many(tmp_path, clean=False)
    store = StoreFiles(OsDisk(), str(tmp_path))
    assert complete_before(store, log_end(store)) == 0
    store.close()
    few = options(tmp_path, topics=("few",))
    assert all(part.jumps is None for part in plan_parts(few))
    assert numbers(rows_of(few)) == list(range(7, 600, 60))


def test_a_frame_read_again_after_more_was_stored_gives_the_same(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(20):
        put(store, message("orders", b"body %d" % number))
    wanted = options(tmp_path)
    parts = plan_parts(wanted)
    put(store, message("orders", b"body 20"))
    assert numbers(rows_of(wanted, parts)) == list(range(20))
    assert numbers(rows_of(wanted)) == list(range(21))
    store.close()


# ---- damage ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part_bytes", [400, 10**6])
def test_a_wrong_body_is_a_row_with_what_is_known_of_its_message(copy: Path, part_bytes: int) -> None:
    place = places_of(copy)[11]
    write_at(segment(copy), place + 90, b"X")
    rows = rows_of(options(copy, part_bytes_max=part_bytes))
    (bad,) = [row for row in rows if row["bodyError"] is not None]
    assert (bad["topic"], bad["queueId"], bad["logOffset"]) == ("payments", 1, place)
    assert (bad["bodyError"], bad["body"][:3]) == ("a checksum does not match", b"boX")
    assert numbers(rows) == [number for number in range(MESSAGES) if number != 11]
    assert len(rows_of(options(copy, topics=("orders",)))) == MESSAGES // 2  # it is not one of theirs


def test_bytes_that_are_no_record_are_rows_of_their_own_and_the_read_goes_on(copy: Path) -> None:
    places = places_of(copy)
    write_at(segment(copy), places[5], bytes(places[7] - places[5]))
    rows = rows_of(options(copy))
    (bad,) = [row for row in rows if row["bodyError"] is not None]
    assert (bad["logOffset"], bad["topic"], len(bad["body"])) == (places[5], None, places[7] - places[5])
    assert bad["bodyError"] == "zeros where a record should be"
    assert numbers(rows) == [number for number in range(MESSAGES) if number not in (5, 6)]


def test_damage_is_skipped_or_ends_the_read_as_the_user_chose(copy: Path) -> None:
    write_at(segment(copy), places_of(copy)[5], b"\xff\xff")
    assert len(rows_of(options(copy, bad_bodies="skip"))) == MESSAGES - 1
    with pytest.raises(BadRecord, match="badBodies=deliver"):
        rows_of(options(copy, bad_bodies="fail"))


def test_columns_without_body_error_have_no_rows_of_damage(copy: Path) -> None:
    write_at(segment(copy), places_of(copy)[5], b"\xff\xff")
    assert len(rows_of(options(copy, columns=("queueOffset",)))) == MESSAGES - 1


def test_a_missing_segment_is_one_row_and_a_short_one_ends_where_it_ends(copy: Path) -> None:
    places = places_of(copy)
    segments = {number: place // SEGMENT_BYTES for number, place in places.items()}
    last = max(number for number in segments if segments[number] == 2)
    segment(copy, 1).unlink()
    with segment(copy, 2).open("r+b") as file:
        file.truncate(places[last] % SEGMENT_BYTES)
    rows = rows_of(options(copy))
    missing = [row["logOffset"] for row in rows if row["bodyError"] == "the segment is missing"]
    assert missing == [SEGMENT_BYTES]
    assert numbers(rows) == [number for number in range(MESSAGES) if segments[number] != 1 and number != last]


@pytest.mark.usefixtures("jumps_pay")
def test_a_damaged_entry_is_a_row_with_its_queue_and_offset(tmp_path: Path) -> None:
    few_among_many(tmp_path)
    write_at(tmp_path / "consumequeue" / "few" / "0" / f"{0:020d}", 3 * 20 + 8, b"\x7f\xff\xff\xff")
    rows = rows_of(options(tmp_path, topics=("few",)))
    (bad,) = [row for row in rows if row["bodyError"] is not None]
    assert (bad["topic"], bad["queueId"], bad["queueOffset"]) == ("few", 0, 3)
    assert len(rows) == 10


def batches_of(wanted: StoreOptions, parts: list[StorePart]) -> list[Rows]:
    schema = arrow_schema(native_schema(wanted.columns))
    return [batch.to_pylist() for part in parts for batch in read_part(wanted, part, schema)]


def test_a_long_damaged_stretch_is_given_away_piece_by_piece(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_task, "SPARK_RECORD_BYTES_MAX", 200)
    monkeypatch.setattr(store_task, "SPARK_QUARANTINE_BYTES_MAX", 100)
    monkeypatch.setattr(quarantine, "SIZE_BYTES_MAX", 300)
    places = places_of(copy)
    write_at(segment(copy), places[5], bytes(places[15] - places[5]))
    batches = batches_of(options(copy), plan_parts(options(copy)))
    damaged = [batch for batch in batches if batch[0]["bodyError"] is not None]
    assert sum(len(row["body"]) for batch in damaged for row in batch) == places[15] - places[5]
    assert max(sum(len(row["body"]) for row in batch) for batch in damaged) == 300


@pytest.mark.usefixtures("jumps_pay")
def test_any_number_of_damaged_entries_is_given_away_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "ROWS_MAX", 3)
    few_among_many(tmp_path)
    few = options(tmp_path, topics=("few",))
    parts = plan_parts(few)
    for number in range(10):
        queue = tmp_path / "consumequeue" / "few" / "0" / f"{0:020d}"
        write_at(queue, number * 20 + 8, b"\x7f\xff\xff\xff" if number < 7 else b"\0\0\0\x09")
    batches = batches_of(few, parts)
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    assert [row["queueOffset"] for batch in batches for row in batch] == list(range(10))


def test_a_segment_that_expired_since_the_plan_is_data_lost(copy: Path) -> None:
    wanted = options(copy)
    parts = plan_parts(wanted)
    segment(copy, 0).unlink()
    with pytest.raises(OffsetsExpired, match="have expired"):
        rows_of(wanted, parts)
    forgiving = options(copy, fail_on_data_loss=False)
    assert numbers(rows_of(forgiving, parts)) == [
        number for number, place in sorted(places_of(copy).items()) if place >= SEGMENT_BYTES
    ]


def test_what_is_not_there_is_said(tmp_path: Path, clean: Path) -> None:
    with pytest.raises(NotAStore, match="is no store directory"):
        plan_parts(options(tmp_path))
    with pytest.raises(ConfigError, match="has no topic nowhere"):
        plan_parts(options(clean, topics=("orders", "nowhere")))
