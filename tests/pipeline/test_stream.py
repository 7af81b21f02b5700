"""`spark.readStream.format("rocketmq")` in a real Spark, on a real server."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bolide import Message, Producer, PullConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import TopicChange, create_topic, delete_topic, update_topic
from bolide.model.topic import TopicConfig
from bolide.testing import EmbeddedServer
from bolide.wire.codes import RequestCode
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import started

pytestmark = pytest.mark.needs("java")

T = TypeVar("T")

QUICK_TO_DELETE: dict[str, str | int] = {
    "mappedFileSizeCommitLog": 256 * 1024,
    "mappedFileSizeConsumeQueue": 2000,
    "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24)),
    "cleanResourceInterval": 20,
    "flushIntervalCommitLog": 10,
    "deleteCommitLogFilesInterval": 0,
}
EVERYTHING_IS_OLD: tuple[RequestCode, dict[str, str], bytes] = (
    RequestCode.UPDATE_BROKER_CONFIG,
    {},
    b"fileReservedTime=0",
)


@pytest.fixture(autouse=True)
def no_query_is_left(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()


def stream(spark: SparkSession, server: EmbeddedServer, **options: str) -> DataFrame:
    given = {"nameserver": server.nameserver, "startingOffsets": "earliest"} | options
    return (
        spark.readStream.format("rocketmq")
        .schema("queueId int, queueOffset long, body binary")
        .options(**given)
        .load()
    )


def start(frame: DataFrame, root: Path, **trigger: bool | str) -> StreamingQuery:
    writing = frame.writeStream.format("parquet").option("checkpointLocation", str(root / "checkpoint"))
    return started(lambda: writing.trigger(**trigger).start(str(root / "rows")))  # type: ignore[arg-type]


def drain(frame: DataFrame, root: Path) -> StreamingQuery:
    """Run to the end of what is there, into Parquet."""
    query = start(frame, root, availableNow=True)
    assert query.awaitTermination(PATIENCE_SECONDS)
    return query


def send(server: EmbeddedServer, topic: str, numbers: range) -> None:
    with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        for number in numbers:
            tags = "even" if number % 2 == 0 else "odd"
            producer.send(
                Message(topic, b"%d" % number, keys=[f"k{number}"], tags=tags, properties={"n": str(number)})
            )


def found(spark: SparkSession, root: Path) -> list[int]:
    rows = spark.read.schema("body binary").parquet(str(root / "rows")).collect()
    return sorted(int(row.body) for row in rows)


def ask(server: EmbeddedServer, question: Callable[[AdminConnection], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with AdminConnection(server.nameserver) as servers:
            return await question(servers)

    return asyncio.run(asked())


def said(query: StreamingQuery) -> str:
    with pytest.raises(PySparkException) as caught:
        query.awaitTermination(PATIENCE_SECONDS)
    text = str(caught.value)
    assert "Traceback" not in text
    return text


def test_a_stream_goes_on_from_its_checkpoint_in_batches_of_the_size_it_may_have(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """A restart with AvailableNow reads what has come, in as many batches as it takes; its group shows its progress."""
    options = {"subscribe": "flow", "maxOffsetsPerTrigger": "40", "consumerGroup": "etl"}
    send(server, "flow", range(100))
    query = drain(stream(spark, server, **options), tmp_path)
    assert found(spark, tmp_path) == list(range(100))
    assert [one.numInputRows for one in query.recentProgress if one.numInputRows] == [40, 40, 20]
    send(server, "flow", range(100, 130))
    query = drain(stream(spark, server, **options), tmp_path)
    assert found(spark, tmp_path) == list(range(130))
    assert [one.numInputRows for one in query.recentProgress if one.numInputRows] == [30]
    with PullConsumer(server.nameserver, group="etl") as consumer:
        for queue in consumer.queues("flow"):
            assert int(consumer.committed_offset(queue) or 0) == int(consumer.max_offset(queue))


def test_a_first_batch_that_is_run_again_is_the_one_that_was_planned(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """Spark asks again where the stream begins, which may be another place by now."""
    send(server, "first", range(20))
    drain(stream(spark, server, subscribe="first"), tmp_path)
    for committed in (tmp_path / "checkpoint" / "commits").iterdir():
        committed.unlink()
    shutil.rmtree(tmp_path / "rows")
    drain(stream(spark, server, subscribe="first", startingOffsets="latest"), tmp_path)
    assert found(spark, tmp_path) == list(range(20))
    send(server, "first", range(20, 25))
    drain(stream(spark, server, subscribe="first", startingOffsets="latest"), tmp_path)
    assert found(spark, tmp_path) == list(range(25))


def test_a_running_stream_reads_queues_that_are_added_and_lives_through_a_restart_of_the_broker(
    spark: SparkSession, tmp_path: Path
) -> None:
    with EmbeddedServer() as server:
        ask(server, lambda servers: create_topic(servers, TopicConfig("wide", 1, 1)))
        send(server, "wide", range(10))
        query = start(stream(spark, server, subscribe="wide"), tmp_path, processingTime="100 milliseconds")
        until(lambda: found(spark, tmp_path) == list(range(10)), query)
        change = TopicChange(read_queues=4, write_queues=4)
        ask(server, lambda servers: update_topic(servers, "wide", change))
        send(server, "wide", range(10, 50))
        until(lambda: found(spark, tmp_path) == list(range(50)), query)
        server.stop()
        server.start()
        send(server, "wide", range(50, 60))
        until(lambda: found(spark, tmp_path) == list(range(60)), query)
        until(lambda: latest_of(query, "wide") == 60, query)  # told behind the batch
        query.stop()
    assert {row.queueId for row in spark.read.parquet(str(tmp_path / "rows")).collect()} == {0, 1, 2, 3}


def latest_of(query: StreamingQuery, topic: str) -> int:
    """Messages of a topic that a query's last report knows of."""
    progress = query.lastProgress
    latest = json.loads((progress and progress.sources[0].latestOffset) or "{}")
    return sum(place["offset"] for place in latest.get(topic, {}).get("broker-a", {}).values())


def until(is_so: Callable[[], bool], query: StreamingQuery) -> None:
    def checked() -> bool:
        if not query.isActive:
            raise AssertionError(query.exception())
        return is_so()

    wait_until(checked, PATIENCE_SECONDS, "the stream does not get there")


def test_patterns_tags_sql_and_keys_choose_messages(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    send(server, "part-1", range(10))
    send(server, "part-2", range(10, 20))
    choices: list[tuple[dict[str, str], list[int]]] = [
        ({"subscribePattern": "part-.*"}, list(range(20))),
        ({"subscribePattern": "part-.*", "tags": "even"}, list(range(0, 20, 2))),
        ({"subscribe": "part-1,part-2", "sql": "n > 7 AND TAGS = 'odd'"}, [9, 11, 13, 15, 17, 19]),
        ({"topic": "part-2", "keys": "k3, k13"}, [13]),
    ]
    for number, (options, wanted) in enumerate(choices):
        drain(stream(spark, server, **options), tmp_path / str(number))
        assert found(spark, tmp_path / str(number)) == wanted, options


def test_a_topic_that_was_made_anew_stops_the_stream_and_says_what_to_do(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    send(server, "again", range(20))
    drain(stream(spark, server, subscribe="again"), tmp_path)
    ask(server, lambda servers: delete_topic(servers, "again"))
    ask(server, lambda servers: create_topic(servers, TopicConfig("again", 4, 4)))
    send(server, "again", range(20, 60))
    text = said(start(stream(spark, server, subscribe="again"), tmp_path, availableNow=True))
    assert "QueueRecreated" in text
    assert "another checkpointLocation" in text
    drain(stream(spark, server, subscribe="again", failOnDataLoss="false"), tmp_path)
    assert found(spark, tmp_path) == list(range(60))


def test_what_a_stream_cannot_take_is_said_when_it_starts(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    frame = stream(spark, server, subscribe="orders", endingOffsets="latest")
    assert "the option endingOffsets is for batch reads (spark.read) only" in said(
        start(frame, tmp_path / "1", availableNow=True)
    )
    frame = stream(spark, server, subscribe="nothing-there")
    assert "no broker has the topic 'nothing-there'" in said(start(frame, tmp_path / "2", availableNow=True))


def test_messages_that_expire_under_a_running_stream_end_it_and_those_left_can_be_read(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A minimum that is never reached holds the stream back until what it has not read is gone."""
    with EmbeddedServer(settings=QUICK_TO_DELETE) as server:
        send(server, "short-lived", range(20))
        waiting = stream(
            spark, server, subscribe="short-lived", minOffsetsPerTrigger="100000", maxTriggerDelay="1h"
        )
        query = start(waiting, tmp_path, processingTime="100 milliseconds")
        until(lambda: found(spark, tmp_path) == list(range(20)), query)
        with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
            for number in range(20, 500):
                producer.send(Message("short-lived", b"%-2000d" % number))
        ask(server, lambda servers: servers.ask(server.broker, *EVERYTHING_IS_OLD))
        text = said(query)
        assert "OffsetsExpired" in text
        assert "fileReservedTime" in text
        drain(stream(spark, server, subscribe="short-lived", failOnDataLoss="false"), tmp_path)
        rows = found(spark, tmp_path)
        assert rows[:20] == list(range(20))
        assert (rows[20] > 20, rows[-1]) == (True, 499)
        assert len(set(rows)) == len(rows)


def test_a_stream_waits_for_its_minimum_but_not_for_longer_than_it_may(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    send(server, "few", range(5))
    options = {"subscribe": "few", "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "2s"}
    query = start(stream(spark, server, **options), tmp_path, processingTime="100 milliseconds")
    until(lambda: found(spark, tmp_path) == list(range(5)), query)
    send(server, "few", range(5, 8))
    until(lambda: found(spark, tmp_path) == list(range(8)), query)
    until(lambda: [one.numInputRows for one in query.recentProgress if one.numInputRows] == [5, 3], query)
