"""An archive as a table: the rows of committed files, and nothing that a killed run has left behind."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from bolide.pipeline.archive.delta import DeltaLog
from bolide.pipeline.archive.files import partition_of, read_files
from bolide.pipeline.archive.manifest import State, read_state
from bolide.pipeline.archive.place import DELTA, ArchiveDamaged, Place, open_place
from bolide.pipeline.schema import COLUMNS

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
    return read_state(place, up_to=DeltaLog(place).version())


def rows_of(
    spark: "SparkSession", place: Place, state: State, topics: Collection[str] | None = None
) -> "DataFrame":
    files = files_of(place, state, topics)
    missing = [str(file) for file in files.values() if not file.exists()]
    if missing:
        more = f" and {len(missing) - FILES_NAMED_MAX} more" if len(missing) > FILES_NAMED_MAX else ""
        raise ArchiveDamaged(
            f"files of the archive are missing: {', '.join(missing[:FILES_NAMED_MAX])}{more};"
            " `bolide pipeline audit` says which messages that are"
        )
    return frame_of(spark, place, list(files.values()))


def files_of(place: Place, state: State, topics: Collection[str] | None = None) -> dict[str, Path]:
    """By their paths below `data`, where the committed files are: some may be on their way there."""
    paths = list(state.files) if place.format != DELTA else DeltaLog(place).paths()
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
