"""Parquet files that are empty or cut off: named by whoever reads them, and never taken for files without rows."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.audit import Stored, compared, prove
from bolide.pipeline.archive.compact import compact
from bolide.pipeline.archive.place import DELTA, PARQUET, ArchiveDamaged, Place, open_or_make
from bolide.pipeline.archive.read import archived, committed
from tests.pipeline.archive_rows import image, message, opened, rows
from tests.pipeline.conftest import Bolide

pytestmark = pytest.mark.needs("java")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def scrawl(file: Path) -> None:
    """It begins and ends as it should, and is none."""
    content = bytearray(file.read_bytes())
    content[4:-8] = bytes(len(content) - 12)
    file.write_bytes(content)


Damage = Callable[[Path], None]


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Place]:
    """Two batches of one queue, by the format of the archive."""
    root = tmp_path_factory.mktemp("sound")
    places = {format_: open_or_make(root / format_, format_) for format_ in (PARQUET, DELTA)}
    for place in places.values():
        two_batches(spark, place)
    return places


def two_batches(spark: SparkSession, place: Place) -> None:
    for begin in (0, 3):
        opened(place).append(rows(spark, [message(at) for at in range(begin, begin + 3)]).coalesce(1))


@pytest.fixture(params=[(PARQUET, empty), (PARQUET, cut), (DELTA, empty)], ids=lambda one: one[0])
def damaged(request: pytest.FixtureRequest, sound: dict[str, Place], tmp_path: Path) -> tuple[Place, Path]:
    """A copy, and the file of it that is damaged: that of the first batch."""
    format_, damage = request.param
    shutil.copytree(sound[format_].folder, tmp_path / "a")
    place = Place(tmp_path / "a", format_)
    file = min(place.data.rglob("*.parquet"))
    damage(file)
    return place, file


def test_an_archive_with_a_damaged_file_is_not_read_without_its_rows(
    spark: SparkSession, damaged: tuple[Place, Path]
) -> None:
    place, file = damaged
    with pytest.raises(ArchiveDamaged, match=rf"empty or cut off: {file}; put them back from a copy"):
        archived(spark, place.folder)


def test_a_damaged_file_is_not_compacted_away(spark: SparkSession, damaged: tuple[Place, Path]) -> None:
    place, file = damaged
    before = image(place)
    with pytest.raises(ArchiveDamaged, match=rf"empty or cut off: {file};"):
        compact(spark, opened(place, day=1))
    assert image(place) == before


def test_a_batch_is_not_held_against_a_damaged_file(spark: SparkSession, damaged: tuple[Place, Path]) -> None:
    """A repeated batch is compared with what is archived, which cannot be seen."""
    place, file = damaged
    with pytest.raises(ArchiveDamaged, match=rf"empty or cut off: {file};"):
        opened(place).append(rows(spark, [message(at) for at in range(8)]))
    assert committed(place).next_number == 2


def test_an_audit_names_a_damaged_file_and_the_offsets_that_it_had(
    spark: SparkSession, damaged: tuple[Place, Path]
) -> None:
    place, file = damaged
    state = committed(place)
    queues = compared(Stored(), state, ["orders"], has_group=False, deleted=["orders"])
    found = prove(spark, place, state, queues, topics=None, cluster=ClusterAccess(""))
    assert [(one.path, one.problem) for one in found.files] == [
        (str(file.relative_to(place.data)), "unreadable")
    ]
    missing = [(str(finding.span), finding.kind.value) for one in found.queues for finding in one.findings]
    assert missing == [("0..2", "missing")]


def test_a_file_with_other_rows_than_were_committed_is_not_compacted_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    two_batches(spark, place)
    file = min(place.data.rglob("*.parquet"))
    pq.write_table(pq.ParquetFile(file).read().slice(0, 0), file)
    before = committed(place)
    with pytest.raises(
        ArchiveDamaged, match="have not the rows that were committed; the archive is as it was"
    ):
        compact(spark, opened(place, day=1))
    assert committed(place) == before
    assert file.exists()


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Path:
    """Two files of three messages each, written by a stream: `_spark_metadata` says which they are."""
    folder = tmp_path / "rows"
    folder.mkdir()
    schema = rows(spark, []).schema
    stream = spark.readStream.schema(schema).parquet(str(folder))
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    for begin in (0, 3):
        few = rows(spark, [message(at) for at in range(begin, begin + 3)]).coalesce(1)
        few.write.mode("append").parquet(str(folder))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "table"), format="parquet")
        query.awaitTermination()
    return tmp_path / "table"


def check_each(bolide: Bolide, table: Path, damages: Sequence[Damage]) -> None:
    """Of the files of a table: whichever Spark looks at first."""
    for file, damage in zip(sorted(table.glob("part-*.parquet")), damages, strict=True):
        content = file.read_bytes()
        damage(file)
        told = bolide("replay", "--from-archive", "table", "--to", "x", "--yes", code=1)
        assert f"{file} cannot be read: it is damaged, empty, cut off or gone. Put it back" in told
        file.write_bytes(content)


def replayed(bolide: Bolide) -> int:
    found = bolide("replay", "--from-archive", "table", "--to", "x", "--preview", "--json")
    return int(found["messages"])


def test_what_a_stream_has_written_is_not_replayed_without_the_rows_of_a_damaged_file(
    bolide: Bolide, table: Path
) -> None:
    check_each(bolide, table, [empty, cut])
    check_each(bolide, table, [scrawl, empty])
    (table / "unfinished.parquet").touch()
    assert replayed(bolide) == 6


def test_a_plain_folder_is_not_replayed_without_the_rows_of_a_damaged_file(
    bolide: Bolide, table: Path
) -> None:
    shutil.rmtree(table / "_spark_metadata")
    check_each(bolide, table, [empty, scrawl])
    check_each(bolide, table, [cut, empty])
    assert replayed(bolide) == 6
