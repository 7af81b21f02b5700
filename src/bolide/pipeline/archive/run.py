"""Topics into an archive: a query of Spark's whose batches `write.py` commits.

How far it is, the checkpoint says; but the manifest is what counts.  A query that begins anew (its checkpoint is gone,
or elsewhere) goes on where the manifest ends, and a batch that comes again is known by its offsets.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bolide.admin.connection import AdminConnection
from bolide.admin.queues import queues_of
from bolide.model.errors import BolideError
from bolide.pipeline.archive.compact import Compacted, compact
from bolide.pipeline.archive.manifest import State
from bolide.pipeline.archive.place import Place
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.archive.write import Added, Archive
from bolide.pipeline.declared.build import first_words
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import TOPIC_FORMAT
from bolide.pipeline.declared.run import PipelineFailed, Stop, Watch, run_queries

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
    with place.held():
        archive = Archive(place, now_ms, before)
        archive.recover()
        work = _Work(spark, archive, wanted)
        options = {**_source(wanted), "startingOffsets": asyncio.run(_first_offsets(wanted, archive.state))}
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


async def _first_offsets(wanted: Wanted, state: State) -> str:
    """Where a new query begins: behind what is archived, and elsewhere with the oldest."""
    tree: dict[str, dict[str, dict[str, int]]] = {}
    async with AdminConnection(wanted.nameserver) as servers:
        for topic in wanted.topics:
            for one in await queues_of(servers, topic):
                queue = one.place.queue
                end = state.end_of(queue)
                brokers = tree.setdefault(topic, {}).setdefault(queue.broker_name, {})
                brokers[str(queue.queue_id)] = EARLIEST if end is None else end
    return json.dumps(tree)


def _source(wanted: Wanted) -> dict[str, str]:
    options = {
        "nameserver": wanted.nameserver,
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
