"""What the files of an archive really hold, held against its manifest, and against the messages that are still stored.

Everything is counted and summed up by Spark, queue by queue; only a queue that is not right is looked at row by row.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.offsets import MessageQueue
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.compare import FileFinding, Kind
from bolide.pipeline.archive.manifest import CHECKSUM_MASK, Range, State
from bolide.pipeline.archive.measure import (
    HASH,
    QUEUE,
    Measured,
    islands,
    measured_queues,
    measured_spans,
    within,
)
from bolide.pipeline.archive.place import DELTA, ArchiveDamaged, Place
from bolide.pipeline.archive.read import files_of, frame_of
from bolide.pipeline.archive.spans import Span, common, without
from bolide.pipeline.declared.definition import TOPIC_FORMAT
from bolide.pipeline.spark_errors import first_words
from bolide.pipeline.table_files import partition_of
from bolide.pipeline.whole_files import cut_parquet

Found = Callable[[MessageQueue, Kind, Sequence[Span]], None]
Ranges = Mapping[MessageQueue, Sequence[Range]]

UNREADABLE = "unreadable"


class Files:
    """The files of some topics of an archive: those that can be read, as a table."""

    def __init__(
        self, spark: SparkSession, place: Place, state: State, topics: Collection[str] | None
    ) -> None:
        self._spark, self._place, self._state, self._topics = spark, place, state, topics
        self.problems: list[FileFinding] = []
        """Of single files."""
        self.frame, self.measured = self._readable()

    def _readable(self) -> tuple[DataFrame, dict[MessageQueue, Measured]]:
        files = files_of(self._place, self._state, self._topics)
        there = {path: file for path, file in files.items() if file.exists()}
        self.problems += [FileFinding(path, "missing") for path in sorted(set(files) - set(there))]
        self.problems += [FileFinding(path, "foreign") for path in self._foreign(set(files))]
        cut = {path for path, file in there.items() if cut_parquet([file])}
        self.problems += [FileFinding(path, UNREADABLE) for path in sorted(cut)]
        there = {path: file for path, file in there.items() if path not in cut}
        frame = frame_of(self._spark, self._place, list(there.values()))
        try:
            return frame, measured_queues(frame)
        except Exception as error:  # Spark has many kinds of errors for a file that it cannot read
            unreadable = {path for path, file in there.items() if not self._can_read(file)}
            if not unreadable:
                text = f"{self._place.data} cannot be read, though each file of it can; try again"
                raise ArchiveDamaged(f"{text}: {first_words(error)}") from error
        self.problems += [FileFinding(path, UNREADABLE) for path in sorted(unreadable)]
        frame = frame_of(
            self._spark, self._place, [file for path, file in there.items() if path not in unreadable]
        )
        return frame, measured_queues(frame)

    def _can_read(self, file: Path) -> bool:
        try:
            measured_queues(frame_of(self._spark, self._place, [file]))
        except Exception:
            return False
        return True

    def _foreign(self, known: Collection[str]) -> list[str]:
        """Files that a plain read of the folder takes for a part of it.  A Delta table leaves old ones there."""
        if self._place.format == DELTA:
            return []
        found = {str(file.relative_to(self._place.data)) for file in self._place.data.rglob("*.parquet")}
        foreign = sorted(found - set(known))
        return [
            path
            for path in foreign
            if self._topics is None or partition_of(path).get("topic") in self._topics
        ]


def prove_files(files: Files, ranges: Ranges, found: Found) -> None:
    """Has every range of the manifest its rows, each once, with the contents that it had?"""
    frame, actual = files.frame, files.measured
    wrong = {
        queue: list(ranges.get(queue, ()))
        for queue in {*actual, *ranges}
        if _told(ranges.get(queue, ()))
        != ((actual[queue].rows, actual[queue].checksum) if queue in actual else (0, 0))
    }
    if not wrong:
        return
    everything = {queue: [Span(0, 2**63 - 1)] for queue in wrong}
    rows = within(frame, everything).drop("_first", "_end")
    there = islands(rows)
    twice = islands(rows.groupBy(*QUEUE, "queueOffset").count().where("count > 1"))
    parts = measured_spans(frame, {queue: [one.span for one in wrong[queue]] for queue in wrong})
    for queue, told in wrong.items():
        spans = [one.span for one in told]
        found(queue, Kind.MISSING, without(spans, there.get(queue, ())))
        found(queue, Kind.FOREIGN, without(there.get(queue, ()), spans))
        found(queue, Kind.DOUBLED, common(twice.get(queue, ()), spans))
        found(
            queue, Kind.CHANGED, [one.span for one in told if _is_changed(one, parts.get((queue, one.span)))]
        )


def _is_changed(one: Range, part: Measured | None) -> bool:
    """As many rows as there should be, and not the same; where rows are missing or doubled that is said already."""
    return part is not None and part.rows == one.span.rows and part.checksum != one.checksum


def _told(ranges: Sequence[Range]) -> tuple[int, int]:
    return sum(one.span.rows for one in ranges), sum(one.checksum for one in ranges) & CHECKSUM_MASK


def prove_stored(
    frame: DataFrame,
    cluster: ClusterAccess,
    stored: Mapping[MessageQueue, Span],
    windows: Mapping[MessageQueue, Sequence[Span]],
    found: Found,
) -> None:
    """Are the archived messages those that the brokers still have?  Of every queue, where both have some."""
    if not windows:
        return
    topic = within(_topics(frame.sparkSession, cluster, stored, windows), windows).drop("_first", "_end")
    mine = within(frame, windows).drop("_first", "_end")
    ours, theirs = measured_queues(mine), measured_queues(topic)
    wrong = {queue: windows[queue] for queue in windows if ours.get(queue) != theirs.get(queue)}
    if not wrong:
        return
    on = [*QUEUE, "queueOffset"]
    left = within(mine, wrong).select(*on, F.expr(HASH).alias("_mine"))
    right = within(topic, wrong).select(*on, F.expr(HASH).alias("_theirs"))
    differing = left.join(right, on, "full_outer").where("not (_mine <=> _theirs)")
    for queue, spans in islands(differing).items():
        found(queue, Kind.DIFFERS, spans)


def _topics(
    spark: SparkSession,
    cluster: ClusterAccess,
    stored: Mapping[MessageQueue, Span],
    windows: Mapping[MessageQueue, Sequence[Span]],
) -> DataFrame:
    """What the brokers have in these windows; queues without one are named too, because all must be."""
    topics = {queue.topic for queue in windows}
    begins: dict[str, dict[str, dict[str, int]]] = {}
    ends: dict[str, dict[str, dict[str, int]]] = {}
    for queue, span in stored.items():
        if queue.topic in topics:
            window = windows.get(queue) or [Span(span.first, span.first)]
            for tree, offset in ((begins, window[0].first), (ends, window[-1].end)):
                tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = (
                    offset
                )
    return (
        spark.read.format(TOPIC_FORMAT)
        .options(**cluster.options())
        .option("subscribe", ",".join(sorted(topics)))
        .option("startingOffsets", json.dumps(begins))
        .option("endingOffsets", json.dumps(ends))
        .load()
    )
