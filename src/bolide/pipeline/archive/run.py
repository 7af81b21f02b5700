"""Topics into an archive: a query of Spark's whose batches `write.py` commits.

How far it is, the checkpoint says; but the manifest is what counts.  Where the two differ (the checkpoint is gone or of
another archive, or one of them comes from a backup) the query begins anew where the manifest ends: with the last
message of each queue that is archived, so that a topic that was made again is known by its contents.
"""

import asyncio
import json
import logging
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bolide.model.errors import BolideError, ConfigError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive.compact import Compacted, compact
from bolide.pipeline.archive.manifest import State
from bolide.pipeline.archive.place import Place
from bolide.pipeline.archive.wanted import Ends, Wanted
from bolide.pipeline.archive.write import Added, Archive
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import TOPIC_FORMAT
from bolide.pipeline.declared.offsets import queue_offsets
from bolide.pipeline.declared.run import PipelineFailed, Stop, Watch, run_queries
from bolide.pipeline.spark_errors import first_words
from bolide.wire.bodies.topic import QueueBounds

log = logging.getLogger(__name__)

QUERY = "archive"
EARLIEST = -2
DAY_MS = 86_400_000
ENDING_S = 60
"""For a batch that was broken off, until it has noticed."""


@dataclass
class Done:
    added: Mapping[str, Added]
    compacted: Compacted | None = None


def run_archive(
    spark: SparkSession,
    place: Place,
    checkpoint: Checkpoint,
    wanted: Wanted,
    *,
    now_ms: Callable[[], int],
    stop: Stop | None = None,
    watch: Watch | None = None,
    before: Callable[[str], None] = lambda step: None,
) -> Done:
    """Until it is stopped, or with `once` until all is read."""
    _check_no_other(checkpoint)
    with place.held():
        archive = Archive(place, now_ms, before)
        archive.recover()
        ends = asyncio.run(wanted.ends())
        _begin_anew_if_other(checkpoint, archive.state, ends)
        work = _Work(spark, archive, wanted)
        options = {**source_options(wanted), "startingOffsets": _first_offsets(archive.state, ends)}
        if not wanted.once:
            work.compact()
        try:
            run_queries(
                lambda: [(QUERY, lambda: work.begin(options, checkpoint.of_query(QUERY)))],
                checkpoint,
                {"name": QUERY, "file": str(place.folder)},
                now_ms=now_ms,
                stop=stop,
                watch=watch,
            )
        except PipelineFailed as error:
            raise work.told(error) from error
        finally:
            work.wait()
        if wanted.once:
            work.compact()
    return Done(archive.added, work.compacted)


def _check_no_other(checkpoint: Checkpoint) -> None:
    """What an archive has left there may be forgotten; what another pipeline goes on from must not be."""
    told = checkpoint.read_state()
    if told and (told.get("name") != QUERY or Path(str(told.get("file"))).is_file()):
        raise ConfigError(
            f"{checkpoint.location} is the checkpoint of another pipeline, {told.get('file')}:"
            " give --checkpoint a folder of its own"
        )


def _begin_anew_if_other(checkpoint: Checkpoint, state: State, ends: Ends) -> None:
    """Forget a checkpoint that says something else than the manifest."""
    if checkpoint.folder is None:
        return  # only Spark reads there
    with checkpoint.held():
        done = checkpoint.last_done(QUERY)
        if done is None and not state.ranges:
            return
        offsets = queue_offsets(done.offsets[0]) if done is not None and done.offsets else None
        folder = Path(checkpoint.of_query(QUERY))
        if folder.exists() and (offsets is None or not _agree(offsets, state, ends)):
            log.warning(
                "%s does not end where the manifest does: the stream begins anew where that ends", folder
            )
            shutil.rmtree(folder)


def _agree(offsets: Mapping[MessageQueue, int], state: State, ends: Ends) -> bool:
    """Whether a stream that goes on at these offsets goes on behind what is archived."""
    for queue in {*offsets, *ends}:
        at, end = offsets.get(queue), state.end_of(queue)
        if end is not None:
            if at != end:
                return False
        elif at is not None and queue in ends and at > ends[queue].offset_min:
            return False  # something was read, and it is not here
    return True


def _first_offsets(state: State, ends: Ends) -> str:
    """Where a new query begins: with the last that is archived, and elsewhere with the oldest."""
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for queue, bounds in ends.items():
        end = state.end_of(queue)
        brokers = tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})
        brokers[str(queue.queue_id)] = EARLIEST if end is None else _last_known(end, bounds)
    return json.dumps(tree)


def _last_known(end: int, bounds: QueueBounds) -> int:
    """The last archived message if it is still stored; else the next, and what is missing before it is noticed."""
    return end - 1 if bounds.offset_min < end <= bounds.offset_max else end


def source_options(wanted: Wanted) -> dict[str, str]:
    options = {
        **wanted.cluster.options(),
        "subscribe": ",".join(wanted.topics),
        "failOnDataLoss": "false" if wanted.allow_gaps else "true",
    }
    if wanted.batch_bytes is not None:
        options["maxBytesPerTrigger"] = str(wanted.batch_bytes)
    return options


class _Work:
    """What the query calls back."""

    def __init__(self, spark: SparkSession, archive: Archive, wanted: Wanted) -> None:
        self._spark, self._archive, self._wanted = spark, archive, wanted
        self._day = archive.now_ms() // DAY_MS
        self._turn = threading.Lock()
        self.failure: Exception | None = None
        self.compacted: Compacted | None = None

    def begin(self, options: Mapping[str, str], checkpoint: str) -> Any:
        stream = self._spark.readStream.format(TOPIC_FORMAT).options(**options).load()
        writer = stream.writeStream.queryName(QUERY).foreachBatch(self.batch)
        writer = writer.option("checkpointLocation", checkpoint)
        if self._wanted.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=self._wanted.trigger).start()

    def batch(self, frame: DataFrame, number: int) -> None:
        """Spark wraps what goes wrong here into a text, so the error itself is kept for who waits."""
        try:
            with self._turn:
                self._archive.append(frame, {"batch": number})
                self._compact_on_a_new_day()
            self.failure = None
        except Exception as error:
            self.failure = error
            raise

    def _compact_on_a_new_day(self) -> None:
        day = self._archive.now_ms() // DAY_MS
        if day != self._day and not self._wanted.once:
            self._day = day
            self.compact()

    def wait(self) -> None:
        """A query that is stopped at once leaves its batch on a thread of its own: the archive's lock outlasts it."""
        if self._turn.acquire(timeout=ENDING_S):
            self._turn.release()

    def told(self, error: PipelineFailed) -> BolideError:
        """What really went wrong, where that was in a batch."""
        if self.failure is None or isinstance(self.failure, BolideError):
            return self.failure or error
        return PipelineFailed(first_words(self.failure))

    def compact(self) -> None:
        if self._wanted.target_bytes is None:
            return
        done = compact(self._spark, self._archive, target_bytes=self._wanted.target_bytes)
        total = self.compacted or Compacted()
        total.partitions += done.partitions
        total.files_before += done.files_before
        total.files_after += done.files_after
        self.compacted = total
