"""Options of docs/spark.md that no other file shows at work in a real Spark."""

import json
from functools import partial

import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer, PullConsumer, PushConsumer, RetryLater
from bolide.model.errors import RouteNotFound
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import ORDERS
from tests.pipeline.sink_query import stored
from tests.pipeline.test_spark import queues_of, read

pytestmark = pytest.mark.needs("java")


def test_columns_are_named_without_their_types(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = read(spark, server.nameserver, columns="queueOffset, body")
    assert frame.columns == ["queueOffset", "body"]
    assert {row.body for row in frame.collect()} >= {b"order 0", b"order %d" % (ORDERS - 1)}


def test_times_by_queue_bound_a_read(spark: SparkSession, server: EmbeddedServer) -> None:
    """What was stored before the middle of each queue, and from there on, is everything."""
    times: dict[str, int] = {}
    with PullConsumer(server.nameserver) as consumer:
        for queue, end in queues_of(server).items():
            middle = consumer.pull(queue, end // 2).messages[0]
            times[str(queue.queue_id)] = middle.store_timestamp_ms
    text = json.dumps({"orders": {"broker-a": times}})
    before = read(spark, server.nameserver, endingOffsetsByTimestamp=text)
    after = read(spark, server.nameserver, startingOffsetsByTimestamp=text)
    places = [{(row.queueId, row.queueOffset) for row in frame.collect()} for frame in (before, after)]
    assert all(places)
    assert not places[0] & places[1]
    assert len(places[0] | places[1]) == ORDERS + 1


def test_small_pulls_give_the_same_rows(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = read(spark, server.nameserver, "body binary", maxBytesPerPull="2000")
    assert sorted(row.body for row in frame.collect()) == sorted(
        [b"large " * 2000, *(b"order %d" % at for at in range(ORDERS))]
    )


def test_what_a_group_sent_back_and_what_it_gave_up_are_read_by_its_name(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        producer.send(Message("trouble", b"again", tags="again"))
        producer.send(Message("trouble", b"never", tags="never"))

    def fail(messages: list[StoredMessage]) -> None:
        raise RetryLater("not now", delay_level=1) if messages[0].tags == "again" else ValueError("no")

    def rows(option: str, group: str) -> list[bytes]:
        frame = spark.read.format("rocketmq").schema("body binary").option("nameserver", server.nameserver)
        return [row.body for row in frame.option(option, group).load().collect()]

    for group, retries, tags in (("patient", 16, "again"), ("strict", 0, "never")):
        with PushConsumer(
            server.nameserver, group=group, listener=fail, start_from="first", attempts_max=retries
        ) as consumer:
            consumer.subscribe("trouble", tags)
            topic = f"%RETRY%{group}" if retries else f"%DLQ%{group}"
            wait_until(partial(has_any, server, topic), PATIENCE_SECONDS, f"nothing comes to {topic}")
    assert set(rows("retryOf", "patient")) == {b"again"}
    assert rows("dlqOf", "strict") == [b"never"]


def has_any(server: EmbeddedServer, topic: str) -> bool:
    try:
        return stored(server.nameserver, topic) > 0
    except RouteNotFound:
        return False  # it comes into being with its first message
