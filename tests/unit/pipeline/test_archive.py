"""The folder and the manifest of an archive, without a session of Spark: what is refused, what is believed."""

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from bolide.model.errors import ConfigError, NoBroker, NothingFound
from bolide.model.offsets import MessageQueue
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive import manifest
from bolide.pipeline.archive.audit import Stored, ask_stored, compared
from bolide.pipeline.archive.compare import Finding, Kind, QueueAudit, compare_archived, compare_consumed
from bolide.pipeline.archive.delta import ArchiveLog
from bolide.pipeline.archive.manifest import (
    DataFile,
    Entry,
    Range,
    State,
    base_of,
    commit,
    drop_before,
    read_state,
)
from bolide.pipeline.archive.measure import Measured
from bolide.pipeline.archive.place import DELTA, ArchiveDamaged, Place, open_or_make, open_place
from bolide.pipeline.archive.read import committed
from bolide.pipeline.archive.run import run_archive
from bolide.pipeline.archive.spans import Span
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.archive.write import Archive
from bolide.pipeline.declared.checkpoint import Checkpoint
from tests.unit.client.scripted import cluster

QUEUE = MessageQueue("orders", "broker-a", 0)


def entry(number: int, first: int, end: int, **more: object) -> Entry:
    file = DataFile(f"date=2024-10-04/topic=orders/{number:012}-00000.parquet", end - first, 10)
    return Entry(number, "batch", 1000, [file], [Range(QUEUE, first, end, 2**63 + number)], **more)  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = open_or_make(tmp_path / "a")
    for number in range(3):
        commit(place, entry(number, number * 5, number * 5 + 5))
    return place


def settle(place: Place) -> None:
    """Files where the manifest says that they are."""
    for path in read_state(place).files:
        (place.data / path).parent.mkdir(parents=True, exist_ok=True)
        (place.data / path).touch()


def test_a_state_is_all_entries_together(place: Place) -> None:
    state = read_state(place)
    assert state.spans(QUEUE) == [Span(0, 15)]
    assert (state.next_number, state.end_of(QUEUE), len(state.files)) == (3, 15, 3)
    assert read_state(place, up_to=1).end_of(QUEUE) == 10


def test_a_base_says_the_same_as_all_before_it(place: Place) -> None:
    """Before and after the entries that it replaces are gone; checksums are sums modulo 2^64."""
    before = read_state(place)
    commit(place, base_of(before, 2000, keeps=lambda file: True))
    for _ in range(2):
        state = read_state(place)
        assert state.files == before.files
        assert state.ranges == {QUEUE: [Range(QUEUE, 0, 15, 2**63 + 3)]}
        drop_before(place, 3)
    assert [file.name for file in place.manifest.iterdir()] == ["000000000003.base.json"]
    commit(place, entry(4, 15, 16))
    assert read_state(place).end_of(QUEUE) == 16


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda file: file.unlink(), "000000000001.json is missing"),
        (lambda file: file.write_text("{"), "cannot be read"),
        (lambda file: file.write_text(file.read_text().replace('"number": 1', '"number": 7')), "entry 7"),
        (lambda file: file.write_text(file.read_text().replace('"first": 5', '"first": 3')), "twice"),
        (
            lambda file: file.write_text(file.read_text().replace("date=2024-10-04", "..")),
            "out of the archive",
        ),
        (lambda file: file.write_bytes(b"\xff" + file.read_bytes()), "cannot be read"),
        (
            lambda file: file.write_text(file.read_text().replace('"first": 5', '"first": Infinity')),
            "cannot be read",
        ),
        (lambda file: file.write_text("[" * 100_000), "cannot be read"),
        (lambda file: file.write_text(file.read_text().replace('"batch"', '"other"')), "of the kind 'other'"),
        (
            lambda file: file.write_text(file.read_text().replace("date=2024-10-04/", "")),
            "a date and a topic",
        ),
    ],
)
def test_a_manifest_that_is_not_whole_is_an_error_that_names_the_file(
    place: Place, harm: object, told: str
) -> None:
    harm(place.manifest / "000000000001.json")  # type: ignore[operator]
    with pytest.raises(ArchiveDamaged, match=told):
        read_state(place)


def test_what_was_begun_and_not_committed_is_not_there(place: Place) -> None:
    (place.manifest / "000000000003.json.new").write_text("{")
    assert read_state(place).next_number == 3


def test_an_entry_is_never_written_over(place: Place) -> None:
    with pytest.raises(ArchiveDamaged, match="somebody else writes"):
        commit(place, entry(2, 10, 15))


def test_a_newer_version_is_refused(place: Place) -> None:
    file = place.manifest / "000000000000.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 2}))
    with pytest.raises(ConfigError, match="version 2"):
        read_state(place)


def test_an_archive_is_made_in_an_empty_folder_only_and_keeps_its_format(tmp_path: Path) -> None:
    made = open_or_make(tmp_path / "a", DELTA)
    assert open_or_make(tmp_path / "a") == open_place(tmp_path / "a") == made
    with pytest.raises(ConfigError, match="an archive of delta, and stays one"):
        open_or_make(tmp_path / "a", "parquet")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "precious").touch()
    with pytest.raises(ConfigError, match="neither empty nor an archive"):
        open_or_make(tmp_path / "b")
    with pytest.raises(ConfigError, match="mount the s3 storage"):
        open_or_make("s3://bucket/a")
    with pytest.raises(NothingFound, match="is no archive"):
        open_place(tmp_path / "b")


def test_a_folder_that_was_being_made_when_its_process_died_is_made_again(tmp_path: Path) -> None:
    open_or_make(tmp_path / "a")
    (tmp_path / "a" / "archive.json").rename(tmp_path / "a" / "archive.json.new")
    (tmp_path / "a" / "lock").touch()
    assert open_or_make(tmp_path / "a", DELTA).format == DELTA


@pytest.mark.parametrize(
    ("stored", "archived", "consumed", "findings"),
    [
        (Span(0, 10), [Span(0, 10)], 10, []),
        (Span(5, 10), [Span(0, 10)], 10, []),  # expired, and archived
        (Span(5, 10), [Span(5, 10)], 10, []),  # expired before the archive began
        (Span(10, 10), [], 10, []),
        (None, [Span(0, 10)], None, ["0..9 not-compared"]),
        (Span(0, 10), [], 10, ["0..9 not-archived"]),
        (Span(0, 10), [Span(0, 8)], 10, ["8..9 not-archived"]),
        (Span(0, 10), [Span(0, 2), Span(4, 10)], 10, ["2..3 not-archived"]),
        (Span(5, 10), [Span(0, 2), Span(4, 10)], 10, ["2..3 lost"]),
        (Span(3, 10), [Span(0, 2), Span(4, 10)], 10, ["2 lost", "3 not-archived"]),
        (Span(10, 10), [Span(0, 4)], 10, ["4..9 lost"]),  # expired while nobody archived
        (Span(8, 10), [Span(0, 4)], 10, ["4..7 lost", "8..9 not-archived"]),
        (Span(0, 5), [Span(0, 10)], 5, ["5..9 beyond-the-end"]),
        (Span(5, 10), [Span(0, 10)], 3, ["3..9 not-consumed"]),
        (Span(5, 10), [Span(0, 10)], None, ["5..9 not-consumed"]),
        (Span(5, 10), [Span(0, 10)], 12, ["10..11 consumed-beyond"]),
    ],
)
def test_what_is_stored_archived_and_consumed_is_compared_by_spans(
    stored: Span | None, archived: list[Span], consumed: int | None, findings: list[str]
) -> None:
    one = QueueAudit(QUEUE, stored, archived, consumed)
    compare_archived(one)
    compare_consumed(one)
    assert [f"{found.span} {found.kind}" for found in sorted(one.findings)] == findings


def test_a_queue_that_no_broker_has_is_not_compared_unless_its_topic_was_deleted() -> None:
    """A name server of another cluster, or whose broker is away, knows as little of the topic as if it was deleted."""
    state = State()
    state.take(entry(0, 0, 5))
    other = MessageQueue("orders", "broker-b", 0)
    not_compared = [Finding(Span(0, 5), Kind.NOT_COMPARED)]
    away = compared(Stored({other: Span(0, 0)}), state, ["orders"], has_group=False, deleted=["orders"])
    assert [(one.queue, one.findings) for one in away.values()] == [(QUEUE, not_compared), (other, [])]
    unknown = compared(Stored(), state, ["orders"], has_group=True)
    assert [one.findings for one in unknown.values()] == [not_compared]
    deleted = compared(Stored(), state, ["orders"], has_group=False, deleted=["orders"])
    assert [one.findings for one in deleted.values()] == [[]]


def test_a_broker_of_which_only_a_slave_is_up_ends_an_audit_and_is_named() -> None:
    """Nobody would be asked about its queues, and those that are not archived would be missed by nobody."""

    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders")
            access = ClusterAccess(c.nameserver.address)
            both = await ask_stored(access, ["orders"], None, archived=["orders"])
            assert {queue.broker_name for queue in both.ends} == {"broker-0", "broker-1"}
            c.brokers[1].ids = {"1": c.brokers[1]}
            with pytest.raises(NoBroker, match="no master of broker-1 is up"):
                await ask_stored(access, ["orders"], None, archived=["orders"])

    asyncio.run(scenario())


def test_a_manifest_that_is_gone_is_said(place: Place) -> None:
    shutil.rmtree(place.manifest)
    with pytest.raises(ArchiveDamaged, match="manifest is gone"):
        read_state(place)


def test_a_delta_table_without_its_log_is_not_an_empty_archive(tmp_path: Path) -> None:
    place = open_or_make(tmp_path / "a", DELTA)
    commit(place, entry(0, 0, 5))
    assert committed(place).ranges == {}  # on its way
    commit(place, entry(1, 5, 10))
    with pytest.raises(ArchiveDamaged, match="does not know entry 0 of the manifest"):
        committed(place)


@pytest.mark.parametrize("name", ["a b", "ä", "100%", "a#b", "a?b", "a+b", "[a]"])
def test_a_delta_table_tells_its_files_wherever_it_lies(tmp_path: Path, name: str) -> None:
    place = open_or_make(tmp_path / name, DELTA)
    path = "date=2024-10-04/topic=%25RETRY%25g/000000000000-00000.parquet"
    for number in range(2):
        ArchiveLog(place).tell(
            Entry(number, "batch", 1000, [DataFile(path.replace("00000.p", f"{number:05}.p"), 1, 1)])
        )
    assert ArchiveLog(place).version() == 1
    assert ArchiveLog(place).paths() == [path, path.replace("00000.p", "00001.p")]


def delta_place(tmp_path: Path, *, batches: int, told: int) -> Place:
    """Of so many commits the table knows the first."""
    place = open_or_make(tmp_path / "a", DELTA)
    for number in range(batches):
        commit(place, entry(number, number * 5, number * 5 + 5))
        if number < told:
            ArchiveLog(place).tell(entry(number, number * 5, number * 5 + 5))
    return place


@pytest.mark.parametrize(("told", "first"), [(0, 0), (1, 1)])
def test_a_delta_table_that_lost_commits_is_not_made_one_of_the_last_batch(
    tmp_path: Path, told: int, first: int
) -> None:
    """Its log is gone, or comes from an older backup than the manifest."""
    place = delta_place(tmp_path, batches=3, told=told)
    for look in (committed, lambda place: Archive(place, lambda: 1000).recover()):
        with pytest.raises(ArchiveDamaged, match=f"does not know entry {first} of the manifest"):
            look(place)
    assert ArchiveLog(place).version() == told - 1


@pytest.mark.parametrize("is_old", [False, True])
def test_a_delta_table_without_its_log_is_missed_behind_a_base_too(tmp_path: Path, is_old: bool) -> None:
    """Also behind one of before its last batch was written down."""
    place = delta_place(tmp_path, batches=2, told=0)
    base = base_of(read_state(place), 2000, keeps=lambda file: False)
    commit(place, base if not is_old else Entry(2, "base", 2000, ranges=base.ranges))
    drop_before(place, 2)
    for number in (3, 4):
        with pytest.raises(ArchiveDamaged, match=f"does not know entry {0 if is_old else 1} of the manifest"):
            committed(place)
        commit(place, entry(number, number * 5, number * 5 + 5))
    with pytest.raises(ArchiveDamaged, match="put both back from the same backup"):
        Archive(place, lambda: 1000).recover()
    assert ArchiveLog(place).version() == -1


def test_a_base_says_of_a_base_before_it_which_batch_was_the_last(place: Place) -> None:
    for number in (3, 4):
        commit(place, base_of(read_state(place), 2000, keeps=lambda file: True))
        assert (read_state(place).batches, read_state(place).next_number) == ([2], number + 1)


def test_a_delta_table_that_is_newer_than_the_manifest_is_refused(tmp_path: Path) -> None:
    """Its batches would be taken for ones that it knows already, and their rows would be in no table."""
    place = delta_place(tmp_path, batches=3, told=3)
    for number in (1, 2):
        manifest.file_of(place, number).unlink()
    with pytest.raises(ArchiveDamaged, match="knows entry 2, and the manifest ends with 0"):
        Archive(place, lambda: 1000).recover()


@pytest.mark.parametrize("name", ["shop", "archive"])
def test_the_checkpoint_of_another_pipeline_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    """One with a sink called `archive`, which is what the query of an archive is called."""
    file = tmp_path / "shop.yaml"
    file.touch()
    kept = Checkpoint(str(tmp_path / "cp"))
    commits = Path(kept.of_query("archive"), "commits")
    commits.mkdir(parents=True)
    (commits / "0").write_text("v1\n{}")
    kept.write_state(name=name, file=str(file), state="stopped")
    before = {path: path.is_file() and path.read_text() for path in (tmp_path / "cp").rglob("*")}
    place = open_or_make(tmp_path / "a")
    commit(place, entry(0, 0, 5))
    with pytest.raises(ConfigError, match=r"checkpoint of another pipeline, .*shop\.yaml: give --checkpoint"):
        run_archive(
            None,  # type: ignore[arg-type]
            place,
            kept,
            Wanted(["orders"], ClusterAccess("127.0.0.1:1"), "1 minute"),
            now_ms=lambda: 1000,
        )
    assert {path: path.is_file() and path.read_text() for path in (tmp_path / "cp").rglob("*")} == before


def measured_of(*offsets: int) -> Measured:
    """As Spark sums them up."""
    low, squared = 2**31 - 1, 2**16 - 1
    sums = sum(at & low for at in offsets), sum((at & squared) ** 2 for at in offsets)
    return Measured(len(offsets), min(offsets), max(offsets), 0, *sums)


def test_offsets_are_dense_when_each_is_there_once() -> None:
    for first in (0, 7, 2**16 - 2, 2**31 - 2, 2**40 - 3):
        whole = range(first, first + 6)
        assert measured_of(*whole).is_dense
        assert (measured_of(*whole[:2]) + measured_of(*whole[2:])).is_dense
        for twice in whole:
            for missing in set(whole[1:-1]) - {twice}:
                assert not measured_of(*(twice if at == missing else at for at in whole)).is_dense
    assert not measured_of(0, 1, 1, 4, 4, 5).is_dense  # their sum alone is that of 0 to 5


def test_no_entry_is_written_that_could_not_be_read_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A base is the only copy of what it says, once those before it are removed."""
    settle(place)
    monkeypatch.setattr(
        manifest, "ARCHIVE_ENTRY_BYTES_MAX", max(file.stat().st_size for file in place.manifest.iterdir())
    )
    archive = Archive(place, lambda: 1000)
    archive.recover()
    archive.fold()
    assert not list(place.manifest.glob("*.base.json"))
    assert read_state(place).spans(QUEUE) == [Span(0, 15)]


def test_only_commits_that_were_under_way_are_removed_from_staging(place: Place, tmp_path: Path) -> None:
    settle(place)
    for name in ("000000000007", "precious"):
        (place.staging / name).mkdir()
    Archive(place, lambda: 1000).recover()
    assert [one.name for one in place.staging.iterdir()] == ["precious"]
    place.staging.rename(tmp_path / "elsewhere")
    place.staging.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArchiveDamaged, match="is a link"):
        Archive(place, lambda: 1000).recover()
    assert (tmp_path / "elsewhere" / "precious").exists()
