"""What a replay reads: the messages of its slices, as a frame with the columns of a topic."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.errors import ConfigError, NothingFound
from bolide.model.limits.spark import REPLAY_SLICES_MAX
from bolide.model.message import BODY_BYTES_MAX
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.place import HEAD
from bolide.pipeline.archive.read import archived
from bolide.pipeline.cluster import Cluster
from bolide.pipeline.errors import QueueRecreated
from bolide.pipeline.folders import local_folder
from bolide.pipeline.moving import asks_another_query, moving_parts
from bolide.pipeline.options import ReadOptions, parse_options
from bolide.pipeline.places import Mark, Place, Verdict, judge
from bolide.pipeline.plan import plan_read
from bolide.pipeline.ranges import QueueRange, report_loss
from bolide.pipeline.replay.plan import Asked, Replay, Selection, moments_of, slices_of_ranges
from bolide.pipeline.schema import COLUMNS
from bolide.pipeline.spark_errors import FileUnreadable, first_words, in_one_line
from bolide.pipeline.whole_files import cut_parquet

STEP = "minute"
STEP_MS = 60_000
STEPS_MAX = 20 * REPLAY_SLICES_MAX
"""Some four years of minutes, if each has messages."""

IS_SENDABLE = f"bodyError IS NULL AND length(body) BETWEEN 1 AND {BODY_BYTES_MAX}"
"""Whether a message has a body that can be sent; damaged ones, and ones that only a broker can have made, have none.

What else a write refuses the tasks find out (`outgoing.py`).
"""


def plan_topics(cluster: ClusterAccess, asked: Asked, replay_id: str, writer: str, made_ms: int) -> Replay:
    """A replay of topics, its ends fixed by what the queues have now.  Needs no Spark."""
    ranges, marks = asyncio.run(_ranges(parse_options(_between(cluster, asked))))
    messages = sum(one.length for one in ranges)
    slices = slices_of_ranges(messages, asked.rate) if messages else 0
    return Replay(replay_id, writer, asked, made_ms, messages, slices, ranges=ranges, marks=marks)


async def _ranges(options: ReadOptions) -> tuple[tuple[QueueRange, ...], tuple[Mark | None, ...]]:
    """With the last message of each."""
    ranges = await plan_read(options)
    async with Cluster(options) as servers:
        marks = await servers.marks({one.queue: one.end - 1 for one in ranges})
    return tuple(ranges), tuple(marks[one.queue] for one in ranges)


def check_same(cluster: ClusterAccess, replay: Replay, *, skip_expired: bool = False) -> None:
    """`QueueRecreated` where a queue has another end of its range now, or none: all offsets mean others then."""
    if not replay.ranges:
        return
    verdicts = asyncio.run(_verdicts(parse_options(_between(cluster, replay.asked)), replay))
    for one, verdict in zip(replay.ranges, verdicts, strict=True):
        if verdict is Verdict.RECREATED:
            recreated = QueueRecreated(
                f"{one.queue} is not the queue that the replay was planned for: the message at offset {one.end - 1} is"
                " another one, or is not there. The topic was deleted and made again, or its broker has lost the end"
                " of its log. Begin another replay, with another --id; --skip-expired goes on with what has these"
                " offsets now"
            )
            report_loss(recreated, fail=not skip_expired)


async def _verdicts(options: ReadOptions, replay: Replay) -> list[Verdict]:
    ranges, marks = replay.ranges, replay.marks or [None] * len(replay.ranges)
    async with Cluster(options) as servers:
        ends = await servers.ends([one.queue for one in ranges])
        last = await servers.marks({one.queue: one.end - 1 for one in ranges})
    return [
        judge(Place(one.end, mark), ends[one.queue], last[one.queue], None)
        for one, mark in zip(ranges, marks, strict=True)
    ]


def plan_archive(spark: SparkSession, asked: Asked, replay_id: str, writer: str, made_ms: int) -> Replay:
    """A replay of an archive, its ends fixed by what the archive has now."""
    chosen = selected(_archive(spark, asked), asked.selection)
    chosen = chosen.where(IS_SENDABLE).where("storeTimestamp IS NOT NULL")
    minutes = chosen.groupBy(F.unix_millis(F.date_trunc(STEP, "storeTimestamp")).alias("at")).count()
    counts = {row["at"]: row["count"] for row in minutes.limit(STEPS_MAX + 1).collect()}
    if len(counts) > STEPS_MAX:
        raise ConfigError(
            f"the archive has messages of more than {STEPS_MAX} minutes: give --from and --until"
        )
    moments_ms = tuple(moments_of(counts, STEP_MS, asked.rate))
    messages, slices = sum(counts.values()), max(0, len(moments_ms) - 1)
    return Replay(replay_id, writer, asked, made_ms, messages, slices, moments_ms=moments_ms)


def slices_frame(
    spark: SparkSession,
    cluster: ClusterAccess,
    replay: Replay,
    first: int,
    end: int,
    *,
    skip_expired: bool = False,
) -> DataFrame:
    """The messages of slices from one to before another that are meant, whether they can be sent or not."""
    asked = replay.asked
    if asked.archive is None:
        options = _of_ranges(cluster, replay.ranges_of(first, end), asked.selection.tags)
        options["failOnDataLoss"] = "false" if skip_expired else "true"
        frame = spark.read.format("rocketmq").options(**options).load()
        return selected(frame, asked.selection)
    begin_ms, end_ms = replay.span_of(first, end)
    stored = F.col("storeTimestamp")
    frame = _archive(spark, asked).where((stored >= _moment(begin_ms)) & (stored < _moment(end_ms)))
    return selected(frame, asked.selection)


def selected(frame: DataFrame, selection: Selection) -> DataFrame:
    """`ConfigError` for SQL that is wrong, and for such that does not choose the same in every slice and every run."""
    stored = F.col("storeTimestamp")
    if selection.from_ms is not None:
        frame = frame.where(stored >= _moment(selection.from_ms))
    if selection.until_ms is not None:
        frame = frame.where(stored < _moment(selection.until_ms))
    if selection.tags:
        frame = frame.where(F.col("tags").isin(list(selection.tags)))
    if selection.keys:
        frame = frame.where(F.arrays_overlap("keys", F.array(*map(F.lit, selection.keys))))
    if selection.where is None:
        return frame
    frame = chosen_by(frame, selection.where)
    if asks_another_query(frame):
        raise ConfigError(
            "--where asks another query (SELECT …), whose rows may be others each time that Spark looks, and what is"
            " replayed is fixed before the first message: write what it would find into the condition itself"
        )
    if moving := moving_parts(frame, selection.where):
        raise ConfigError(
            f"--where asks for {', '.join(moving)}, which is something else each time that Spark looks, and what is"
            " replayed is fixed before the first message: write the moment itself (TIMESTAMP '2026-11-18 10:00:00'),"
            " or use --from and --until"
        )
    return frame


def chosen_by(frame: DataFrame, where: str | None) -> DataFrame:
    """`ConfigError` says what Spark finds wrong with the SQL."""
    if where is None:
        return frame
    try:
        return frame.where(F.expr(where))
    except PySparkException as error:
        raise ConfigError(
            f"--where is SQL over the columns {', '.join(frame.columns)}: {first_words(error)}"
        ) from error


def _archive(spark: SparkSession, asked: Asked) -> DataFrame:
    """An archive of ours, or else Parquet with the columns of a topic; other columns that it has are left alone."""
    place = asked.archive
    assert place is not None
    topics = asked.topics or None
    if (folder := local_folder(place)) is not None and (folder / HEAD).exists():
        return archived(spark, folder, topics)
    try:
        frame = spark.read.parquet(place)
    except Exception as error:  # of the JVM and of PySpark
        if isinstance(error, PySparkException) and error.getCondition() == "PATH_NOT_FOUND":
            raise NothingFound(f"{place} is not there, says Spark") from error
        raise in_one_line(error) or ConfigError(
            f"{place} cannot be read as an archive: {first_words(error)}"
        ) from error
    if cut := cut_parquet(_local_files(frame)):
        raise FileUnreadable(str(cut[0]))
    if missing := [name for name in COLUMNS if name not in frame.columns]:
        raise ConfigError(f"{place} is no archive of messages: the columns {', '.join(missing)} are missing")
    frame = frame.select(*(F.col(name).cast(kind) for name, kind in COLUMNS.items()))
    return frame if topics is None else frame.where(F.col("topic").isin(list(topics)))


def _local_files(frame: DataFrame) -> Iterator[Path]:
    """Those of this machine that a frame is read from."""
    for uri in map(urlsplit, frame.inputFiles()):
        if uri.scheme == "file":
            yield Path(unquote(uri.path))


def _moment(moment_ms: int) -> Any:
    return F.timestamp_millis(F.lit(moment_ms))


def _between(cluster: ClusterAccess, asked: Asked) -> dict[str, str]:
    """Options of a read between the two times, or from end to end."""
    options = {**cluster.options(), "subscribe": ",".join(asked.topics), **_tags(asked.selection.tags)}
    if asked.selection.from_ms is not None:
        options["startingTimestamp"] = str(asked.selection.from_ms)
        options["startingOffsetsByTimestampStrategy"] = "latest"
    if asked.selection.until_ms is not None:
        options["endingTimestamp"] = str(asked.selection.until_ms)
    return options


def _of_ranges(cluster: ClusterAccess, ranges: Sequence[QueueRange], tags: Sequence[str]) -> dict[str, str]:
    """Options of a read of exactly these."""
    queues: dict[str, dict[str, list[int]]] = {}
    begins: dict[str, dict[str, dict[str, int]]] = {}
    ends: dict[str, dict[str, dict[str, int]]] = {}
    for one in ranges:
        topic, broker, queue_id = one.queue.topic, one.queue.broker_name, one.queue.queue_id
        queues.setdefault(topic, {}).setdefault(broker, []).append(queue_id)
        begins.setdefault(topic, {}).setdefault(broker, {})[str(queue_id)] = one.begin
        ends.setdefault(topic, {}).setdefault(broker, {})[str(queue_id)] = one.end
    return {
        **cluster.options(),
        "assign": json.dumps(queues),
        "startingOffsets": json.dumps(begins),
        "endingOffsets": json.dumps(ends),
        **_tags(tags),
    }


def _tags(tags: Sequence[str]) -> dict[str, str]:
    """Brokers leave messages with other tags out."""
    return {"tags": " || ".join(tags)} if tags else {}
