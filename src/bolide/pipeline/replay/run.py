"""Runs a replay: slice after slice, each written once, with a note of it behind each.

A slice is a job of Spark's whose tasks write as those of a stream do: under the name of the replay, the number of the
slice and the number of the task the broker knows what it has of it.  So it does not matter where a replay was killed.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from bolide.model.errors import BolideError
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.account import Scope
from bolide.pipeline.declared.run import BEGUN_IN_VAIN_MAX, NO_WORKER, Stop
from bolide.pipeline.errors import in_plain_words
from bolide.pipeline.replay.folder import Done, ReplayFolder
from bolide.pipeline.replay.outgoing import Sieve, outgoing
from bolide.pipeline.replay.plan import Replay
from bolide.pipeline.replay.source import check_same, slices_frame
from bolide.pipeline.spark_errors import first_words
from bolide.pipeline.write_options import WriteOptions
from bolide.pipeline.write_task import write_batches

GROUP = "bolide-replay"
"""The group of producers in whose name messages are sent."""

LOOK_S = 0.2
WRITTEN = "sent long, stored_before long, refused long, named array<string>"
_WRITTEN = pa.schema(
    {
        "sent": pa.int64(),
        "stored_before": pa.int64(),
        "refused": pa.int64(),
        "named": pa.list_(pa.string()),
    }
)

Sent = tuple[int, int, int, Sequence[str]]
"""What `Done.plus` takes of a slice."""


class ReplayFailed(BolideError):
    """A slice could not be sent to its end; the replay goes on with it when it is started again."""


class Broken(BolideError):
    """It was told not to wait for the slice in hand."""


@dataclass(frozen=True)
class Target:
    """How to send, which may change from one run of a replay to the next."""

    cluster: ClusterAccess
    rate: int | None = None
    skip_expired: bool = False


def run(
    replay: Replay,
    folder: ReplayFolder,
    spark: SparkSession,
    target: Target,
    *,
    stop: Stop | None = None,
    progress: Callable[[Done], None] = lambda done: None,
) -> Done:
    """Send what is not sent yet; ends early when it is told to stop, after the slice in hand."""
    stop = stop or Stop()
    with folder.held(), ThreadPoolExecutor(1) as pool:
        kept = folder.replay()
        if kept is None:
            slices_frame(spark, target.cluster, replay, 0, replay.slices)  # what is wrong with it is told now
            folder.keep(replay)
        elif kept != replay:
            raise ReplayFailed(
                f"the replay {replay.id} was begun by another run meanwhile, with another plan; nothing was sent:"
                " start this one again to go on with that, or give it another --id"
            )
        done = folder.done()
        if done.slices < replay.slices:
            check_same(target.cluster, replay, skip_expired=target.skip_expired)
        progress(done)
        for number in range(done.slices, replay.slices):
            if stop.is_asked:
                break
            sending = pool.submit(_patiently, spark, replay, target, number)
            while not sending.done():
                wait([sending], LOOK_S)
                if stop.is_at_once:
                    spark.sparkContext.cancelAllJobs()
            try:
                done = done.plus(*sending.result())
            except Exception as error:
                if stop.is_at_once:
                    raise Broken("stopped in the middle of a slice") from error
                raise ReplayFailed(f"slice {number + 1} of {replay.slices}: {first_words(error)}") from error
            folder.note(done)
            progress(done)
    return done


def _patiently(spark: SparkSession, replay: Replay, target: Target, number: int) -> Sent:
    """Spark gives a Python ten seconds to start: on a machine that is too busy for that the slice begins again."""
    for left in reversed(range(BEGUN_IN_VAIN_MAX)):
        try:
            return _send(spark, replay, target, number)
        except Exception as error:
            if NO_WORKER not in str(error) or not left:
                raise
    raise AssertionError("the last one returns or raises")


def _send(spark: SparkSession, replay: Replay, target: Target, number: int) -> Sent:
    if replay.is_empty(number):
        return 0, 0, 0, []
    frame = slices_frame(spark, target.cluster, replay, number, number + 1, skip_expired=target.skip_expired)
    options = WriteOptions(target.cluster, topic=replay.asked.to, group=GROUP)
    if target.rate is not None:
        options = replace(options, rate=target.rate / replay.tasks)
    writer = _writer(options, replay.writer, number)
    rows = outgoing(frame, replay).mapInArrow(writer, WRITTEN).collect()
    sent, stored_before, refused = (
        sum(row[name] for row in rows) for name in ("sent", "stored_before", "refused")
    )
    return sent, stored_before, refused, [name for row in rows for name in row["named"]]


def _writer(
    options: WriteOptions, writer: str, number: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does; Spark sends it there."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None, "runs in a task of Spark's"
        assert options.topic is not None, "a replay has one"
        sieve = Sieve()
        with in_plain_words():
            scope = Scope(writer, number, task.partitionId())
            written = write_batches(options, scope, sieve.sift(batches, options.topic))
        told = [[written.rows], [written.stored_before], [sieve.refused], [sieve.named]]
        yield pa.record_batch(told, schema=_WRITTEN)

    return write
