"""`spark.read.format("rocketmq")` in a real Spark, on a real server."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from bolide import Message, Producer, PullConsumer
from bolide.model.offsets import MessageQueue
from bolide.pipeline.schema import whole_schema
from bolide.testing import EmbeddedServer
from tests.pipeline.conftest import ORDERS

pytestmark = pytest.mark.needs("java")


def read(spark: SparkSession, nameserver: str, schema: str | None = None, **options: str) -> DataFrame:
    reader = spark.read.format("rocketmq").options(nameserver=nameserver, subscribe="orders")
    return (reader if schema is None else reader.schema(schema)).options(**options).load()


def queues_of(server: EmbeddedServer) -> Mapping[MessageQueue, int]:
    """Queue to the offset where it ends."""
    with PullConsumer(server.nameserver) as consumer:
        return {queue: consumer.max_offset(queue) for queue in consumer.queues("orders")}


def test_a_topic_is_a_table_with_every_message_once(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = read(spark, server.nameserver)
    assert frame.schema == whole_schema()
    rows = frame.collect()
    assert len(rows) == ORDERS + 1
    assert {row.body for row in rows} == {b"large " * 2000, *(b"order %d" % at for at in range(ORDERS))}
    row = next(row for row in rows if row.body == b"order 1500")
    assert (row.topic, row.brokerName, row.tags, row.keys) == ("orders", "broker-a", "paid", ["k1500", "all"])
    assert (row.properties["city"], row.properties["TAGS"]) == ("Köln", "paid")
    assert row.properties["UNIQ_KEY"] == row.msgId
    assert row.storeHost == server.broker
    assert 0 <= (row.storeTimestamp - row.bornTimestamp).total_seconds() < 60
    places = sorted((row.queueId, row.queueOffset) for row in rows)
    assert places == [(queue.queue_id, at) for queue, end in queues_of(server).items() for at in range(end)]


def test_sql_over_a_topic_goes_to_parquet(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    read(spark, server.nameserver).createOrReplaceTempView("orders")
    counts = spark.sql("SELECT tags, count(*) AS messages FROM orders GROUP BY tags")
    counts.write.parquet(str(tmp_path / "counts"))
    written = spark.read.parquet(str(tmp_path / "counts")).collect()
    assert {row.tags: row.messages for row in written} == {
        "large": 1,
        "paid": ORDERS // 3,
        "open": ORDERS - ORDERS // 3,
    }


def test_a_schema_chooses_columns(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = read(spark, server.nameserver, "queueOffset long, keys array<string>", tags="paid || large")
    assert frame.columns == ["queueOffset", "keys"]
    rows = frame.collect()
    assert len(rows) == ORDERS // 3 + 1
    assert {len(row.keys) for row in rows} == {0, 2}


def test_offsets_bound_a_read_and_min_partitions_split_it(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    ends = queues_of(server)
    start = dict.fromkeys(ends, 5)
    frame = read(
        spark,
        server.nameserver,
        startingOffsets=offsets_text(start),
        endingOffsets=offsets_text(dict.fromkeys(ends, 25)),
        minPartitions="8",
    )
    assert frame.rdd.getNumPartitions() == 8
    found = sorted((row.queueId, row.queueOffset) for row in frame.collect())
    assert found == [(queue.queue_id, at) for queue in ends for at in range(5, 25)]


def test_timestamps_bound_a_read(spark: SparkSession, server: EmbeddedServer) -> None:
    with PullConsumer(server.nameserver) as consumer:
        queue = consumer.queues("orders")[0]
        middle = consumer.pull(queue, queues_of(server)[queue] // 2).messages[0].store_timestamp_ms
    before = read(spark, server.nameserver, endingTimestamp=str(middle)).count()
    after = read(spark, server.nameserver, startingTimestamp=str(middle)).count()
    assert before > 0
    assert after > 0
    assert before + after == ORDERS + 1


def test_a_frame_keeps_its_ends_and_a_new_one_sees_more(spark: SparkSession, server: EmbeddedServer) -> None:
    def load() -> DataFrame:
        return read(spark, server.nameserver, "body binary", subscribe="growing")

    with Producer(server.nameserver, group="shop") as producer:
        producer.send(Message("growing", b"1"))
        frame = load()
        producer.send(Message("growing", b"2"))
        assert frame.count() == 2
        producer.send(Message("growing", b"3"))
        assert frame.count() == len(frame.collect()) == 2
        assert load().count() == 3


def test_recreated_is_an_error_or_a_shorter_read(spark: SparkSession, server: EmbeddedServer) -> None:
    beyond = offsets_text({queue: end + 7 for queue, end in queues_of(server).items()})
    with pytest.raises(PySparkException, match="QueueRecreated: orders@broker-a:0"):
        read(spark, server.nameserver, endingOffsets=beyond).count()
    frame = read(spark, server.nameserver, endingOffsets=beyond, failOnDataLoss="false")
    assert frame.count() == ORDERS + 1


def test_what_is_wrong_is_said_before_anything_is_read(spark: SparkSession, server: EmbeddedServer) -> None:
    with pytest.raises(AnalysisException, match="did you mean startingOffsets"):
        read(spark, server.nameserver, startingOfsets="earliest").count()
    with pytest.raises(AnalysisException, match="no column 'value'"):
        read(spark, server.nameserver, "value binary").count()
    with pytest.raises(PySparkException, match="no broker has the topic 'nothing'"):
        read(spark, server.nameserver, subscribe="nothing").count()


def offsets_text(offsets: Mapping[MessageQueue, int]) -> str:
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for queue, offset in offsets.items():
        tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = offset
    return json.dumps(tree)
