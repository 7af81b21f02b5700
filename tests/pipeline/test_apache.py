"""The same source on the original's brokers, which give 32 messages per pull."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bolide import PullConsumer
from bolide.pipeline.schema import whole_schema
from bolide.pipeline.stream import RocketMQStreamReader
from tests.peers import frames, java
from tests.peers.apache import Apache
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import ORDERS, fill, started

pytestmark = pytest.mark.needs("java", "mvn")


@pytest.fixture(scope="module", params=java.VERSIONS)
def apache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Apache(request.param), tmp_path_factory.mktemp("apache")).start()
    fill(server.nameserver)
    wait_until(lambda: is_readable(server), PATIENCE_SECONDS, "the original does not show all messages")
    yield server
    server.kill()  # its orderly stop takes ten seconds and more


def is_readable(apache: Together) -> bool:
    """The original tells readers and its name server a moment after it has acknowledged."""
    with frames.Connection(apache.nameserver) as connection:
        has_route = connection.ask(frames.GET_ROUTE, {"topic": "orders"}).code == frames.SUCCESS
    return has_route and frames.readable(apache.broker, "orders", queues=4) == ORDERS + 1


def test_a_topic_on_the_original_is_read_whole(spark: SparkSession, apache: Together) -> None:
    orders = spark.read.format("rocketmq").options(nameserver=apache.nameserver, subscribe="orders")
    rows = orders.load().collect()
    assert len(rows) == ORDERS + 1
    assert {row.body for row in rows} == {b"large " * 2000, *(b"order %d" % at for at in range(ORDERS))}
    paid = orders.option("tags", "paid").load().select("tags", "body").collect()
    assert len(paid) == ORDERS // 3
    assert {row.tags for row in paid} == {"paid"}


def test_bounds_by_time_are_exact_on_the_original(spark: SparkSession, apache: Together) -> None:
    """Its older brokers name the nearest message instead, and any one of those stored in the same millisecond."""

    def found(**bound: str) -> set[tuple[int, int, int]]:
        orders = spark.read.format("rocketmq").options(nameserver=apache.nameserver, subscribe="orders")
        rows = orders.options(columns="queueId,queueOffset,storeTimestamp", **bound).load()
        return {
            tuple(row)
            for row in rows.selectExpr("queueId", "queueOffset", "unix_millis(storeTimestamp)").collect()
        }

    every = found()
    times = sorted(stored for _, _, stored in every)
    for moment in (times[0], times[len(times) // 2], times[len(times) // 2] + 1, times[-1] + 60_000):
        since = found(startingTimestamp=str(moment), startingOffsetsByTimestampStrategy="latest")
        assert since == {row for row in every if row[2] >= moment}
        assert found(endingTimestamp=str(moment)) == {row for row in every if row[2] < moment}


def test_a_stream_on_the_original_goes_to_files_once(
    spark: SparkSession, apache: Together, tmp_path: Path
) -> None:
    options = {"nameserver": apache.nameserver, "subscribePattern": "orders", "startingOffsets": "earliest"}
    frame = spark.readStream.format("rocketmq").schema("body binary").options(**options).load()
    writing = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = started(lambda: writing.trigger(availableNow=True).start(str(tmp_path / "rows")))
    assert query.awaitTermination(PATIENCE_SECONDS)
    assert spark.read.parquet(str(tmp_path / "rows")).distinct().count() == ORDERS + 1


def read_all(apache: Together, **options: str) -> list[dict[str, Any]]:
    """A stream as Spark reads it, without one: two batches of which the second has nothing."""
    given = {"nameserver": apache.nameserver, "subscribe": "orders", "startingOffsets": "earliest"} | options
    reader = RocketMQStreamReader(given, whole_schema())
    start = reader.initialOffset()
    end = json.loads(json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit())))
    partitions = reader.partitions(start, end)
    assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
    reader.stop()
    return [row for one in partitions for batch in reader.read(one) for row in batch.to_pylist()]


def test_the_original_judges_sql_and_shows_the_progress_of_a_group(apache: Together) -> None:
    rows = read_all(apache, sql="city = 'Köln' AND TAGS = 'paid'", consumerGroup="etl")
    assert len(rows) == ORDERS // 3
    with PullConsumer(apache.nameserver, group="etl") as consumer:
        for queue in consumer.queues("orders"):
            assert int(consumer.committed_offset(queue) or 0) == int(consumer.max_offset(queue))


def test_limits_and_keys_hold_on_the_original(apache: Together) -> None:
    assert len(read_all(apache, keys="k7,k9")) == 2
    assert 0 < len(read_limited(apache, maxBytesPerTrigger="50000")) < ORDERS
    assert len(read_limited(apache, maxOffsetsPerTrigger="100")) == 100


def read_limited(apache: Together, **options: str) -> list[int]:
    given = {"nameserver": apache.nameserver, "subscribe": "orders", "startingOffsets": "earliest"} | options
    reader = RocketMQStreamReader(given, whole_schema())
    start = reader.initialOffset()
    partitions = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
    reader.stop()
    return [
        row["queueOffset"] for one in partitions for batch in reader.read(one) for row in batch.to_pylist()
    ]


def test_rows_are_written_to_the_original(spark: SparkSession, apache: Together, tmp_path: Path) -> None:
    """Batch and stream; its brokers keep no account of batches, so a stream is written at least once."""
    frame = spark.range(3000).selectExpr(
        "cast(id as string) as body",
        "'paid' as tags",
        "array(concat('k', id)) as keys",
        "map('n', 'ö') as properties",
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "lines.txt").write_text("".join(f"{at}\n" for at in range(3000, 3500)))
    frame.write.format("rocketmq").mode("append").options(
        nameserver=apache.nameserver, topic="w-apache"
    ).save()
    lines = spark.readStream.text(str(tmp_path / "in")).selectExpr("value as body", "'streamed' as tags")
    query = (
        lines.writeStream.format("rocketmq")
        .options(nameserver=apache.nameserver, topic="w-apache", checkpointLocation=str(tmp_path / "cp"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(PATIENCE_SECONDS)
    wait_until(
        lambda: frames.readable(apache.broker, "w-apache", queues=4) == 3500,
        PATIENCE_SECONDS,
        "not all are readable",
    )
    rows = (
        spark.read.format("rocketmq")
        .options(nameserver=apache.nameserver, subscribe="w-apache")
        .load()
        .collect()
    )
    assert sorted(int(row.body) for row in rows) == list(range(3500))
    one = next(row for row in rows if row.body == b"7")
    assert (one.tags, one.keys, one.properties["n"]) == ("paid", ["k7"], "ö")
    assert len({row.msgId for row in rows}) == 3500
