"""An archive has every message once: killed before any step of a commit or compaction, and in a repeated batch."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive.compact import TARGET_BYTES, compact, rewritten, small_files
from bolide.pipeline.archive.manifest import read_state
from bolide.pipeline.archive.place import DELTA, FORMATS, PARQUET, Place, open_or_make
from bolide.pipeline.archive.read import archived
from bolide.pipeline.archive.spans import Span
from bolide.pipeline.archive.write import Archive, OtherMessages
from bolide.pipeline.schema import native_schema
from tests.pipeline.archive_rows import (
    FIRST_DAY_MS,
    all_files,
    bodies,
    held,
    image,
    kept,
    message,
    opened,
    plain,
    rows,
)

pytestmark = pytest.mark.needs("java")

QUEUES = [MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)]


class Killed(BaseException):
    """Nothing that is left to do is done, as with SIGKILL."""


class Deadly:
    """Counts steps, and dies before one of them."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.dies_at = dies_at
        self.steps: list[str] = []

    def __call__(self, step: str) -> None:
        if len(self.steps) == self.dies_at:
            raise Killed(step)
        self.steps.append(step)


def batch(spark: SparkSession, offsets: range, *, day: int = 0, body: str = "") -> DataFrame:
    """Both queues, so that two tasks write a file each."""
    return rows(spark, [message(at, queue=queue, day=day, body=body) for queue in (0, 1) for at in offsets])


def copied(place: Place, folder: Path) -> Place:
    shutil.copytree(place.folder, folder)
    return Place(folder, place.format)


def killed_at_every_step(
    begin: Place, folder: Path, work: Callable[[Archive], object]
) -> tuple[Place, list[tuple[str, Place]]]:
    """Where the work was done to its end, and a copy for every step, in which it was killed before it."""

    def working(place: Place, deadly: Deadly) -> None:
        work(Archive(place, lambda: FIRST_DAY_MS, deadly, read_state(place)))

    counting = Deadly()
    whole = copied(begin, folder / "whole")
    working(whole, counting)
    places: list[tuple[str, Place]] = []
    for number, step in enumerate(counting.steps):
        place = copied(begin, folder / f"{number}")
        with pytest.raises(Killed):
            working(place, Deadly(number))
        places.append((step, place))
    return whole, places


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_is_there_once_wherever_its_process_was_killed(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    """The next process has the archive without the batch or with it, to the byte; a repeated batch changes nothing."""
    first, second = batch(spark, range(3)), batch(spark, range(3, 6))
    begin = open_or_make(tmp_path / "begin", kind)
    opened(begin).append(first)
    before, after = bodies(first), bodies(first.union(second))
    for number in (1, 2):  # while files are staged
        place = copied(begin, tmp_path / f"staged-{number}")
        with pytest.raises(Killed):
            opened(place, before=Deadly(number)).append(second)
        assert held(place) == plain(place) == before
        opened(place)
        assert image(place) == image(begin)
    staged = copied(begin, tmp_path / "staged")
    entry = opened(staged).prepare(second)
    assert entry is not None
    whole, places = killed_at_every_step(staged, tmp_path, lambda archive: archive.commit(entry))
    assert [step for step, _ in places if step not in ("delta", "delta added")] == [
        *("commit", "rename", "committed", "move", "move", "clear", "cleared")
    ]
    assert held(whole) == plain(whole) == after
    for step, place in places:
        is_committed = step not in ("commit", "rename")
        assert held(place) in ([before, after] if kind == DELTA else [after if is_committed else before]), (
            step
        )
        assert Counter(plain(place)) <= Counter(after)
        opened(place)
        assert image(place) == image(whole if is_committed else begin), step
    assert opened(whole).append(second) is None
    assert kept(spark, whole) == plain(whole) == after
    assert {queue: read_state(whole).spans(queue) for queue in QUEUES} == {
        queue: [Span(0, 6)] for queue in QUEUES
    }


def test_compaction_is_done_or_not_wherever_its_process_was_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    begin = open_or_make(tmp_path / "begin")
    archive = opened(begin)
    for number in range(3):
        archive.append(batch(spark, range(number * 2, number * 2 + 2), day=number // 2))
    every = kept(spark, begin)
    staged = copied(begin, tmp_path / "staged")
    small = list(small_files(list(read_state(begin).files.values()), "2024-10-05", TARGET_BYTES))
    assert [len(files) for files in small] == [4]
    entry = rewritten(spark, opened(staged), small[0], TARGET_BYTES)
    whole, places = killed_at_every_step(staged, tmp_path, lambda archive: archive.commit(entry))
    assert {"rename", "committed", "move", "remove", "clear"} <= {step for step, _ in places}
    for step, place in places:
        assert held(place) == every, step
        opened(place)
        assert image(place) == image(begin if step in ("commit", "rename") else whole), step
    assert kept(spark, whole) == plain(whole) == every
    assert len(read_state(whole).files) == 3


def test_a_manifest_is_folded_or_not_wherever_its_process_was_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    begin = open_or_make(tmp_path / "begin")
    for number in range(2):
        opened(begin).append(batch(spark, range(number * 2, number * 2 + 2)))
    whole, places = killed_at_every_step(begin, tmp_path, lambda archive: archive.fold())
    assert [step for step, _ in places] == ["fold", "folded", "entries dropped"]
    for step, place in places:
        assert held(place) == plain(begin), step
        opened(place)
        assert image(place) == image(begin if step == "fold" else whole), step
    assert len(all_files(whole.manifest)) == 1
    assert [(one.first, one.end) for one in read_state(whole).ranges[QUEUES[0]]] == [(0, 4)]


def test_compaction_takes_days_that_are_over_and_small_files_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    for number in range(2):
        opened(place).append(batch(spark, range(number * 2, number * 2 + 2)))
    assert compact(spark, opened(place)).files_before == 0
    assert compact(spark, opened(place, day=1), target_bytes=100).files_before == 0
    done = compact(spark, opened(place, day=1), folded_from=2)
    assert (done.partitions, done.files_before, done.files_after) == (1, 4, 1)
    assert len(kept(spark, place)) == len(plain(place)) == 8
    assert compact(spark, opened(place, day=1)).files_before == 0


def test_delta_compacts_days_that_are_over_and_keeps_every_row(spark: SparkSession, tmp_path: Path) -> None:
    place = open_or_make(tmp_path / "ä b", DELTA)
    for number in range(3):
        opened(place).append(batch(spark, range(number * 2, number * 2 + 2), day=number // 2))
    every = kept(spark, place)
    done = compact(spark, opened(place, day=1), folded_from=2)
    assert (done.partitions, done.files_before, done.files_after) == (1, 4, 1)
    assert kept(spark, place) == every
    opened(place).append(batch(spark, range(6, 8)))
    assert len(kept(spark, place)) == len(every) + 4


def test_columns_come_back_as_they_were_and_topics_are_chosen(spark: SparkSession, tmp_path: Path) -> None:
    """A topic with a name that needs escapes and one that looks like a number; a row that has no time.  The folder's
    name has what an address cannot have."""
    odd = "%RETRY%g"
    unreadable = {**message(1, topic=odd), "storeTimestamp": None, "bodyError": "the record cannot be read"}
    frame = rows(spark, [message(0, topic=odd), unreadable, message(0, topic="2024", day=1), message(0)])
    for kind in FORMATS:
        place = open_or_make(tmp_path / f"ä b {kind}", kind)
        archive = opened(place)
        archive.append(frame)
        assert sorted(archive.added) == [odd, "2024", "orders"]
        found = archived(spark, place.folder)
        assert found.schema == native_schema()
        assert sorted(map(repr, found.collect())) == sorted(map(repr, frame.collect()))
        assert archived(spark, place.folder, ["2024", odd]).count() == 3
        assert archived(spark, place.folder, []).count() == 0
    data = tmp_path / f"ä b {DELTA}" / "data"
    table = DeltaTable(str(data)).to_pyarrow_table()  # as somebody else reads it
    assert sorted(table["topic"].to_pylist()) == [odd, odd, "2024", "orders"]
    assert {str(day) for day in table["date"].to_pylist()} == {"None", "2024-10-04", "2024-10-05"}


def test_what_is_archived_already_is_left_out_and_the_rest_goes_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A checkpoint that was set back, or one that is new: batches begin and end elsewhere than before."""
    place = open_or_make(tmp_path / "a", PARQUET)
    opened(place).append(batch(spark, range(5)))
    entry = opened(place).append(batch(spark, range(3, 8)))
    assert entry is not None
    assert [(one.queue, one.span) for one in entry.ranges] == [(queue, Span(5, 8)) for queue in QUEUES]
    assert opened(place).append(batch(spark, range(8))) is None
    assert kept(spark, place) == plain(place) == bodies(batch(spark, range(8)))


def test_other_messages_at_archived_offsets_are_refused_and_change_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A topic that was deleted and made again."""
    place = open_or_make(tmp_path / "a")
    opened(place).append(batch(spark, range(5)))
    before = [file for file in all_files(place.folder) if place.staging not in file.parents]
    with pytest.raises(OtherMessages, match=r"orders@broker-a:0 3\.\.4"):
        opened(place).append(batch(spark, range(3, 6), body="new"))
    opened(place)
    assert all_files(place.folder) == before


def test_holes_are_in_the_manifest_and_offsets_that_come_twice_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    opened(place).append(rows(spark, [message(at) for at in (0, 1, 4, 7, 8)]))
    assert read_state(place).spans(QUEUES[0]) == [Span(0, 2), Span(4, 5), Span(7, 9)]
    # The last two have as many as there are from the first to the last.
    for offsets in ((20, 20), (20, 21, 21, 23), (20, 21, 21, 24, 24, 25)):
        with pytest.raises(OtherMessages, match="twice"):
            opened(place).append(rows(spark, [message(at) for at in offsets]))
    assert len(kept(spark, place)) == 5
