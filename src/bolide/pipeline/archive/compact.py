"""Small files of days that are over into few large ones, without a moment in which a row is lost.

A partition (a date and topic) is one commit of the manifest: the new files come, then the old ones go.  Of a Delta
table its own library does it.  When the manifest has grown long, it becomes one entry.
"""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bolide.model.limit import MIB
from bolide.pipeline.archive.delta import ArchiveLog
from bolide.pipeline.archive.files import read_files
from bolide.pipeline.archive.manifest import DataFile, Entry
from bolide.pipeline.archive.measure import dense_ranges, measured_queues
from bolide.pipeline.archive.place import DELTA, ArchiveDamaged
from bolide.pipeline.archive.read import check_files
from bolide.pipeline.archive.write import Archive
from bolide.pipeline.schema import COLUMNS
from bolide.pipeline.table_files import partition_of

TARGET_BYTES = 128 * MIB
FOLDED_FROM = 100
"""So many entries make it worth writing the manifest anew."""


@dataclass
class Compacted:
    partitions: int = 0
    files_before: int = 0
    files_after: int = 0


def compact(
    spark: SparkSession,
    archive: Archive,
    *,
    target_bytes: int = TARGET_BYTES,
    folded_from: int = FOLDED_FROM,
) -> Compacted:
    """All days before today (UTC) in which there are small files."""
    if not archive.is_sound:
        archive.recover()
    today = datetime.datetime.fromtimestamp(archive.now_ms() / 1000, datetime.UTC).date().isoformat()
    done = Compacted()
    if archive.place.format == DELTA:
        _compact_delta(archive, today, target_bytes, done)
    else:
        for small in small_files(list(archive.state.files.values()), today, target_bytes):
            entry = rewritten(spark, archive, small, target_bytes)
            archive.commit(entry)
            done.partitions += 1
            done.files_before += len(small)
            done.files_after += len(entry.files)
    if archive.state.entries >= folded_from:
        archive.fold()
    return done


def small_files(files: Sequence[DataFile], today: str, target_bytes: int) -> Iterator[list[DataFile]]:
    """Of each partition of a day that is over, those worth rewriting."""
    partitions: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda one: one.path):
        date = partition_of(file.path)["date"]
        if date is not None and date < today and file.size_bytes * 2 < target_bytes:
            partitions.setdefault(file.path.rpartition("/")[0], []).append(file)
    return (small for small in partitions.values() if _files_for(small, target_bytes) < len(small))


def _files_for(small: Sequence[DataFile], target_bytes: int) -> int:
    return max(1, -(-sum(file.size_bytes for file in small) // target_bytes))


def rewritten(spark: SparkSession, archive: Archive, small: Sequence[DataFile], target_bytes: int) -> Entry:
    """Their rows in new files, which are staged and not committed."""
    data = archive.place.data
    files = [data / file.path for file in small]
    check_files(files)
    before = read_files(spark, data, files)
    staged = archive.stage(before.select(*COLUMNS), _files_for(small, target_bytes))
    if sum(file.rows for file in staged.files) != sum(file.rows for file in small):
        raise ArchiveDamaged(
            f"{files[0]} and its neighbours have not the rows that were committed; the archive is as it was."
            " `bolide pipeline audit` says which messages that are"
        )
    if dense_ranges(before, measured_queues(before)) != staged.ranges:
        raise ArchiveDamaged(
            f"{data / small[0].path} and its neighbours: what was written anew is not what was read;"
            " the archive is as it was. Is the disk sound?"
        )
    removed = [file.path for file in small]
    return Entry(staged.number, "compaction", archive.now_ms(), staged.files, removed=removed)


def _compact_delta(archive: Archive, today: str, target_bytes: int, done: Compacted) -> None:
    log = ArchiveLog(archive.place)
    partitions: dict[tuple[str, str], list[Path]] = {}
    for path in log.paths():
        date, topic = partition_of(path).values()
        if date is not None and topic:
            partitions.setdefault((date, topic), []).append(archive.place.data / path)
    for (date, topic), files in sorted(partitions.items()):
        if date < today:
            check_files(files)
            archive.before("optimize")
            removed, added = log.compact(date, topic, target_bytes)
            done.partitions += 1 if removed else 0
            done.files_before += removed
            done.files_after += added
    archive.before("vacuum")
    log.vacuum()
