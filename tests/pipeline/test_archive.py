"""An archive has every message once: killed before any step of a commit or compaction, and in a repeated batch."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive.compact import compact
from bolide.pipeline.archive.manifest import read_state
from bolide.pipeline.archive.place import DELTA, FORMATS, PARQUET, Place, open_or_make
from bolide.pipeline.archive.read import archived
from bolide.pipeline.archive.spans import Span
from bolide.pipeline.archive.write import OtherMessages
from bolide.pipeline.schema import native_schema
from tests.pipeline.archive_rows import all_files, bodies, kept, message, opened, plain, rows

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


def killed_at_every_step(
    begin: Place, folder: Path, work: Callable[[Place, Deadly], object]
) -> list[tuple[str, Place]]:
    """A copy of the place for every step, in which the work was killed before it."""
    whole = Deadly()
    shutil.copytree(begin.folder, folder / "whole")
    work(Place(folder / "whole", begin.format), whole)
    places: list[tuple[str, Place]] = []
    for number, step in enumerate(whole.steps):
        place = Place(folder / f"{number}", begin.format)
        shutil.copytree(begin.folder, place.folder)
        with pytest.raises(Killed):
            work(place, Deadly(number))
        places.append((step, place))
    return places


@pytest.mark.parametrize("kind", FORMATS)
def test_a_batch_is_there_once_wherever_its_process_was_killed(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    """The next process finds the archive without the batch or with all of it, and Spark repeats the batch."""
    first, second = batch(spark, range(3)).cache(), batch(spark, range(3, 6)).cache()
    before, after = bodies(first), bodies(first.union(second))
    begin = open_or_make(tmp_path / "begin", kind)
    opened(begin).append(first)
    places = killed_at_every_step(
        begin, tmp_path, lambda place, deadly: opened(place, before=deadly).append(second)
    )
    steps = [step for step, _ in places]
    assert [step for step in steps if step not in ("delta", "delta added")] == [
        *("stage", "name", "measure", "commit", "rename", "committed", "move", "move", "clear", "cleared")
    ]
    for step, place in places:
        assert kept(spark, place) in (before, after), step
        again = opened(place)
        assert plain(spark, place) in (before, after), step
        again.append(second)
        assert kept(spark, place) == plain(spark, place) == after, step
        state = read_state(place)
        assert {queue: state.spans(queue) for queue in QUEUES} == {queue: [Span(0, 6)] for queue in QUEUES}, (
            step
        )
        assert all_files(place.staging) == [], step
        assert [file for file in all_files(place.manifest) if file.suffix == ".new"] == [], step


def test_compaction_is_done_or_not_wherever_its_process_was_killed(
    spark: SparkSession, tmp_path: Path
) -> None:
    begin = open_or_make(tmp_path / "begin")
    archive = opened(begin)
    for number in range(3):
        archive.append(batch(spark, range(number * 2, number * 2 + 2), day=number // 2))
    every, files = kept(spark, begin), len(read_state(begin).files)
    places = killed_at_every_step(
        begin,
        tmp_path,
        lambda place, deadly: compact(spark, opened(place, day=1, before=deadly), folded_from=2),
    )
    assert {"stage", "rename", "committed", "move", "remove", "fold", "folded", "entries dropped"} <= {
        step for step, _ in places
    }
    for step, place in places:
        assert kept(spark, place) == every, step
        again = opened(place, day=1)
        assert plain(spark, place) == every, step
        compact(spark, again, folded_from=2)
        assert kept(spark, place) == plain(spark, place) == every, step
        assert len(all_files(place.data)) == len(read_state(place).files) == files - 3, step
        assert read_state(place).spans(QUEUES[0]) == [Span(0, 6)], step


def test_delta_compacts_days_that_are_over_and_keeps_every_row(spark: SparkSession, tmp_path: Path) -> None:
    place = open_or_make(tmp_path / "a", DELTA)
    for number in range(3):
        opened(place).append(batch(spark, range(number * 2, number * 2 + 2), day=number // 2))
    every = kept(spark, place)
    done = compact(spark, opened(place, day=1), folded_from=2)
    assert (done.partitions, done.files_before, done.files_after) == (1, 4, 1)
    assert kept(spark, place) == every
    opened(place).append(batch(spark, range(6, 8)))
    assert len(kept(spark, place)) == len(every) + 4


def test_columns_come_back_as_they_were_and_topics_are_chosen(spark: SparkSession, tmp_path: Path) -> None:
    """A topic with a name that needs escapes and one that looks like a number; a row that has no time."""
    odd = "%RETRY%g"
    unreadable = {**message(1, topic=odd), "storeTimestamp": None, "bodyError": "the record cannot be read"}
    frame = rows(spark, [message(0, topic=odd), unreadable, message(0, topic="2024", day=1), message(0)])
    for kind in FORMATS:
        place = open_or_make(tmp_path / kind, kind)
        archive = opened(place)
        archive.append(frame)
        assert sorted(archive.added) == [odd, "2024", "orders"]
        found = archived(spark, place.folder)
        assert found.schema == native_schema()
        assert sorted(map(repr, found.collect())) == sorted(map(repr, frame.collect()))
        assert archived(spark, place.folder, ["2024", odd]).count() == 3
        assert archived(spark, place.folder, []).count() == 0


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
    assert kept(spark, place) == plain(spark, place) == bodies(batch(spark, range(8)))


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
    with pytest.raises(OtherMessages, match="twice"):
        opened(place).append(rows(spark, [message(20), message(20)]))
    assert len(kept(spark, place)) == 5
