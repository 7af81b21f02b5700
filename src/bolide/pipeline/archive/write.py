"""Batches into an archive, each message once, whenever the process is killed.

A commit goes in steps, and each of them may be the last one of a process:

1. Spark writes the rows to files of a staging folder, which get their names for good and are synced.
2. They are read back: which queues and offsets do they hold, with which checksums?
3. What the archive has already (a batch that is repeated) is held against it and left out.
4. One file of the manifest is written, synced and renamed.  **This is the commit.**
5. The files are moved from staging to `data`, and a Delta table is told of them.

A process that dies before 4 leaves a staging folder that the next one removes; one that dies behind it leaves moves
that the next one finishes (`recover`).  So `data` never has a file that is not committed.
"""

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from bolide.model.errors import BolideError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive import manifest
from bolide.pipeline.archive.delta import ArchiveLog
from bolide.pipeline.archive.files import listed_files, read_files, write_files
from bolide.pipeline.archive.manifest import DataFile, Entry, Range, State, read_state
from bolide.pipeline.archive.measure import (
    QUEUE,
    Measured,
    dense_ranges,
    measured,
    measured_spans,
    outside,
    queue_of,
)
from bolide.pipeline.archive.place import DELTA, STAGED, ArchiveDamaged, Place
from bolide.pipeline.archive.read import rows_of, told_of
from bolide.pipeline.archive.spans import Span, common
from bolide.pipeline.table_files import move_in, named_files, partition_of, set_for

log = logging.getLogger(__name__)

Step = Callable[[str], None]
"""Called before every step of a commit, with its name."""

QUEUES_NAMED_MAX = 5


class OtherMessages(BolideError):
    """The archive has other messages at these offsets: they are of another topic of the same name."""


@dataclass
class Added:
    """What a run has written, by topic."""

    rows: int = 0
    files: int = 0
    size_bytes: int = 0


@dataclass(frozen=True)
class Staged:
    """Files that are written and not committed."""

    number: int
    files: list[DataFile]
    ranges: list[Range]


@dataclass
class Archive:
    """An archive that is written to, by whoever holds its lock."""

    place: Place
    now_ms: Callable[[], int]
    before: Step = lambda step: None
    state: State = field(default_factory=State)
    added: dict[str, Added] = field(default_factory=dict)
    is_sound: bool = False
    """Whether the state is what the manifest says; not while a commit is under way, nor after one that failed."""

    # ---- what a killed run has left ------------------------------------------------------------------------

    def recover(self) -> None:
        """Finishes the last commit, and removes what is none.  Called first."""
        self.state = read_state(self.place)
        if self.place.format == DELTA:
            self._check_told()
        self.place.check_staging()
        last = self.state.last
        if last is not None:
            if last.kind == "base":
                manifest.drop_before(self.place, last.number)
            self._publish(last)
        for leftover in self.place.staging.iterdir():
            if STAGED.fullmatch(leftover.name):
                shutil.rmtree(leftover)
        for begun in self.place.manifest.glob("*.new"):
            begun.unlink()
        self.is_sound = True

    def _check_told(self) -> None:
        """A table that knows too little would get the last batch alone, and one that knows too much no new one."""
        told = told_of(self.place, self.state)
        if told >= self.state.next_number:
            raise ArchiveDamaged(
                f"the Delta table in {self.place.data} knows entry {told}, and the manifest ends with"
                f" {self.state.next_number - 1}: it is older than the table; put both back from the same backup"
            )

    # ---- a batch -------------------------------------------------------------------------------------------

    def append(self, frame: DataFrame, source: Mapping[str, object] | None = None) -> Entry | None:
        """Commits the rows that are not there yet; None when there are none."""
        entry = self.prepare(frame, source)
        if entry is not None:
            self.commit(entry)
            self._count(entry)
        return entry

    def prepare(self, frame: DataFrame, source: Mapping[str, object] | None = None) -> Entry | None:
        """All that is to be done before the commit: files that are staged, and the entry that names them."""
        if not self.is_sound:
            self.recover()
        staged = self.stage(frame)
        repeated = self._overlap(staged.ranges)
        if repeated:
            self._check_same(frame.sparkSession, staged, repeated)
            staged = self.stage(outside(frame, repeated))
        if not staged.files:
            self._clear(staged.number)
            return None
        return Entry(
            staged.number, "batch", self.now_ms(), staged.files, staged.ranges, source=dict(source or {})
        )

    def stage(self, frame: DataFrame, tasks: int | None = None) -> Staged:
        """Rows in files of the staging folder, and what these hold by their own account."""
        number, spark = self.state.next_number, frame.sparkSession
        folder = self.place.staged(number)
        self.before("stage")
        write_files(frame, folder, tasks or spark.sparkContext.defaultParallelism)
        self.before("name")
        files = named_files(folder, f"{number:012}")
        self.before("measure")
        # A stream's session does not adapt plans, and would count in hundreds of empty tasks.
        with set_for(spark, adaptive_enabled="true"):
            rows, ranges = self._measure(read_files(spark, folder, files)) if files else ({}, [])
        return Staged(number, listed_files(folder, files, rows), ranges)

    def _measure(self, written: DataFrame) -> tuple[dict[str, int], list[Range]]:
        """Rows by file, and the ranges of all of them."""
        rows: dict[str, int] = {}
        queues: dict[MessageQueue, Measured] = {}
        named = written.select("*", "_metadata.file_name")
        for row, one in measured(named, "file_name", *QUEUE):
            rows[row.file_name] = rows.get(row.file_name, 0) + one.rows
            queue = queue_of(row)
            queues[queue] = queues[queue] + one if queue in queues else one
        ranges = dense_ranges(written, queues)
        _check_once(queues, ranges)
        return rows, ranges

    def _overlap(self, ranges: list[Range]) -> dict[MessageQueue, list[Span]]:
        """What of these the archive has already."""
        found: dict[MessageQueue, list[Span]] = {}
        for one in ranges:
            if both := common([one.span], self.state.spans(one.queue)):
                found.setdefault(one.queue, []).extend(both)
        return found

    def _check_same(
        self, spark: SparkSession, staged: Staged, repeated: Mapping[MessageQueue, list[Span]]
    ) -> None:
        """Offsets that come again must bring the messages that they brought before."""
        folder = self.place.staged(staged.number)
        again = read_files(spark, folder, [folder / file.path for file in staged.files])
        topics = {queue.topic for queue in repeated}
        mine = measured_spans(again, repeated)
        theirs = measured_spans(rows_of(spark, self.place, self.state, topics), repeated)
        other = [f"{queue} {span}" for queue, span in mine if mine[queue, span] != theirs.get((queue, span))]
        if other:
            more = ", …" if len(other) > QUEUES_NAMED_MAX else ""
            raise OtherMessages(
                f"the archive {self.place.folder} has other messages at offsets that come now:"
                f" {', '.join(other[:QUEUES_NAMED_MAX])}{more}. The topic was deleted and made again, or its broker has"
                " lost the end of its log. Archive it to another folder; nothing was changed in this one"
            )

    # ---- the commit ----------------------------------------------------------------------------------------

    def commit(self, entry: Entry) -> None:
        self.is_sound = False
        self.before("commit")
        manifest.commit(self.place, entry, lambda: self.before("rename"))
        self.before("committed")
        self.state.take(entry)
        self._publish(entry)
        self.is_sound = True

    def fold(self) -> None:
        """The whole manifest in one entry.  A Delta table says itself which files it has."""
        is_listed = self.place.format != DELTA
        entry = manifest.base_of(self.state, self.now_ms(), keeps=lambda file: is_listed)
        self.before("fold")
        try:
            manifest.commit(self.place, entry)
        except manifest.EntryTooLong as error:
            log.warning("the manifest of %s stays in many files: %s", self.place.folder, error)
            return
        self.before("folded")
        manifest.drop_before(self.place, entry.number)
        self.before("entries dropped")
        self.state = read_state(self.place)

    def _publish(self, entry: Entry) -> None:
        """Files to where everybody looks; done again it changes nothing."""
        if entry.kind == "base":
            return
        staged = self.place.staged(entry.number)
        for file in entry.files:
            self._move_in(entry.number, file)
        if self.place.format == DELTA and entry.kind == "batch":
            self.before("delta")
            ArchiveLog(self.place).tell(entry)
            self.before("delta added")
        for path in entry.removed:
            self.before("remove")
            (self.place.data / path).unlink(missing_ok=True)
        if staged.exists():
            self._clear(entry.number)

    def _move_in(self, number: int, file: DataFile) -> None:
        source, target = self.place.staged(number) / file.path, self.place.data / file.path
        if not source.exists():
            if not target.exists() and self.place.format != DELTA:  # Delta's may be compacted since
                raise ArchiveDamaged(f"{target} is committed, and neither there nor in {source}")
            return
        self.before("move")
        move_in(source, self.place.staged(number), self.place.data)

    def _clear(self, number: int) -> None:
        self.before("clear")
        shutil.rmtree(self.place.staged(number), ignore_errors=True)
        self.before("cleared")

    def _count(self, entry: Entry) -> None:
        for file in entry.files:
            one = self.added.setdefault(partition_of(file.path)["topic"] or "", Added())
            one.rows += file.rows
            one.files += 1
            one.size_bytes += file.size_bytes


def _check_once(queues: Mapping[MessageQueue, Measured], ranges: list[Range]) -> None:
    """A batch has every message once, or something is wrong that must not get into an archive."""
    rows: dict[MessageQueue, int] = {}
    for one in ranges:
        rows[one.queue] = rows.get(one.queue, 0) + one.span.rows
    twice = [str(queue) for queue, one in queues.items() if one.rows != rows.get(queue)]
    if twice:
        raise OtherMessages(
            f"a batch has offsets twice, and was not archived: {', '.join(twice[:QUEUES_NAMED_MAX])}"
        )
