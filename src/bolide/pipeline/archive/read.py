"""An archive as a table: the rows of committed files, and nothing that a killed run has left behind."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bolide.pipeline.archive.delta import ArchiveLog
from bolide.pipeline.archive.files import read_files
from bolide.pipeline.archive.manifest import State, read_state
from bolide.pipeline.archive.place import DELTA, ArchiveDamaged, Place, open_place
from bolide.pipeline.schema import COLUMNS
from bolide.pipeline.table_files import partition_of
from bolide.pipeline.whole_files import cut_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FILES_NAMED_MAX = 3


def archived(spark: "SparkSession", place: str | Path, topics: Collection[str] | None = None) -> "DataFrame":
    """The columns of a topic (`bolide.pipeline.schema.COLUMNS`), of these topics or of all; Parquet and Delta alike.

    What is committed now: later commits are not in it.  A compaction removes files that it has replaced, and a read
    that is under way then fails; read again.
    """
    opened = open_place(place)
    return rows_of(spark, opened, committed(opened), topics)


def committed(place: Place) -> State:
    """What holds: of a Delta table, what it has been told of."""
    if place.format != DELTA:
        return read_state(place)
    return read_state(place, up_to=told_of(place, read_state(place)))


def told_of(place: Place, state: State) -> int:
    """The number of the last batch that the Delta table knows; only the last entry may be on its way there.

    The state is one that was read before, so that what is committed meanwhile is not missed.
    """
    told = ArchiveLog(place).version()
    untold = [number for number in state.batches if number > told]
    if untold and untold != [state.next_number - 1]:
        raise ArchiveDamaged(
            f"the Delta table in {place.data} does not know entry {untold[0]} of the manifest, and others came behind"
            " it: its _delta_log is gone, or older than the manifest; put both back from the same backup"
        )
    return told


def rows_of(
    spark: "SparkSession", place: Place, state: State, topics: Collection[str] | None = None
) -> "DataFrame":
    files = list(files_of(place, state, topics).values())
    check_files(files)
    return frame_of(spark, place, files)


def check_files(files: Sequence[Path]) -> None:
    """`ArchiveDamaged` where one of them is not there, empty or cut off."""
    if missing := [file for file in files if not file.exists()]:
        raise ArchiveDamaged(
            f"files of the archive are missing: {_named(missing)}; `bolide pipeline audit` says which messages that are"
        )
    if cut := cut_parquet(files):
        raise ArchiveDamaged(
            f"files of the archive are empty or cut off: {_named(cut)}; put them back from a copy."
            " `bolide pipeline audit` says which messages were in them"
        )


def _named(files: Sequence[Path]) -> str:
    more = f" and {len(files) - FILES_NAMED_MAX} more" if len(files) > FILES_NAMED_MAX else ""
    return f"{', '.join(map(str, files[:FILES_NAMED_MAX]))}{more}"


def files_of(place: Place, state: State, topics: Collection[str] | None = None) -> dict[str, Path]:
    """By their paths below `data`, where the committed files are: some may be on their way there."""
    paths = list(state.files) if place.format != DELTA else ArchiveLog(place).paths()
    return {
        path: _where(place, state, path)
        for path in paths
        if topics is None or partition_of(path)["topic"] in topics
    }


def frame_of(spark: "SparkSession", place: Place, files: list[Path]) -> "DataFrame":
    """Rows of files in `data` and in staging, with the columns of a topic."""
    inside = [file for file in files if file.is_relative_to(place.data)]
    frame = read_files(spark, place.data, inside)
    for root in sorted(
        {place.staging / file.relative_to(place.staging).parts[0] for file in set(files) - set(inside)}
    ):
        frame = frame.unionByName(
            read_files(spark, root, [file for file in files if file.is_relative_to(root)])
        )
    return frame.select(*COLUMNS)


def _where(place: Place, state: State, path: str) -> Path:
    target = place.data / path
    if target.exists() or state.last is None:
        return target
    staged = place.staged(state.last.number) / path
    return staged if staged.exists() else target
