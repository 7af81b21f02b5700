"""`spark.read.format("rocketmq")` in a real Spark, on a real server."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from bolide import Message, Producer, PullConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import create_topic
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.pipeline.schema import whole_schema
from bolide.testing import EmbeddedServer
from tests.peers import frames
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


def test_recreated_is_a_shorter_read_if_the_user_says_so(spark: SparkSession, server: EmbeddedServer) -> None:
    beyond = offsets_text({queue: end + 7 for queue, end in queues_of(server).items()})
    frame = read(spark, server.nameserver, endingOffsets=beyond, failOnDataLoss="false")
    assert frame.count() == ORDERS + 1


# ---- nothing to read -------------------------------------------------------------------------------------------


def test_a_topic_without_messages_is_an_empty_table(spark: SparkSession, server: EmbeddedServer) -> None:
    async def create() -> None:
        async with AdminConnection(server.nameserver) as servers:
            await create_topic(servers, TopicConfig("empty", 4, 4))

    asyncio.run(create())
    frame = read(spark, server.nameserver, subscribe="empty", minPartitions="8")
    assert (frame.schema, frame.collect(), frame.count()) == (whole_schema(), [], 0)
    assert read(spark, server.nameserver, subscribe="empty,orders").count() == ORDERS + 1
    few = read(spark, server.nameserver, "body binary", subscribe="empty")
    assert (few.columns, few.collect()) == (["body"], [])


def test_a_range_with_nothing_in_it_is_an_empty_table(spark: SparkSession, server: EmbeddedServer) -> None:
    ends = offsets_text(queues_of(server))
    beginning = offsets_text(dict.fromkeys(queues_of(server), 0))
    late, early = "9" * 15, "1"
    latest = {"startingOffsetsByTimestampStrategy": "latest"}
    ranges: list[dict[str, str]] = [
        {"startingTimestamp": late} | latest,
        {"startingTimestamp": late, "endingTimestamp": late} | latest,
        {"startingTimestamp": late, "endingOffsets": beginning} | latest,
        {"endingTimestamp": early},
        {"startingOffsets": ends},
        {"startingOffsets": ends, "endingOffsets": ends},
        {"startingOffsets": ends, "endingTimestamp": early},
        {"endingOffsets": beginning},
        {"tags": "nobody"},
    ]
    for options in ranges:
        frame = read(spark, server.nameserver, "queueOffset long, body binary", **options)
        assert frame.collect() == [], options


# ---- messages that are not as they should be -------------------------------------------------------------------


def test_a_body_that_does_not_unpack_costs_nobody_theirs(spark: SparkSession, server: EmbeddedServer) -> None:
    with frames.Connection(server.broker) as connection:
        for body, sys_flag in ((b"before", "0"), (b"never packed", "1"), (b"after", "0")):
            fields = frames.send_fields("spoiled", queues=1) | {"f": sys_flag}
            assert connection.ask(frames.SEND_MESSAGE_V2, fields, body).code == frames.SUCCESS
    rows = read(spark, server.nameserver, subscribe="spoiled").orderBy("queueOffset").collect()
    assert [row.body for row in rows] == [b"before", b"never packed", b"after"]
    assert [row.bodyError is None for row in rows] == [True, False, True]
    assert read(spark, server.nameserver, subscribe="spoiled", badBodies="skip").count() == 2
    with pytest.raises(PySparkException) as caught:
        read(spark, server.nameserver, subscribe="spoiled", badBodies="fail").count()
    text = said(caught.value)
    assert "BadBody: spoiled@broker-a:0: the message at offset 1: the body does not unpack" in text


# ---- what is wrong is said, at the first moment and in few words -------------------------------------------------


def said(error: PySparkException) -> str:
    """What a user reads, if it is short."""
    text = str(error)
    assert "Traceback" not in text
    assert 'File "' not in text
    assert len(text.splitlines()) <= 8, text
    return text


def test_wrong_options_are_all_said_by_load(spark: SparkSession) -> None:
    reader = spark.read.format("rocketmq").options(
        nameserver="nowhere", startingOfsets="earliest", minPartitions="0"
    )
    with pytest.raises(AnalysisException) as caught:
        reader.load("orders")
    text = said(caught.value)
    for part in (
        "5 things are wrong",
        "there is no option 'path': it is called subscribe here",
        "there is no option 'startingofsets': did you mean startingOffsets?",
        "minPartitions is a number from 1 to 100000, not '0'",
        "'nowhere'",
    ):
        assert part in text


def test_what_only_the_cluster_knows_is_said_by_the_first_action(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    with pytest.raises(PySparkException) as caught:
        read(spark, server.nameserver, subscribe="nothing").count()
    assert "no broker has the topic 'nothing'" in said(caught.value)
    with pytest.raises(PySparkException) as caught:
        read(spark, "127.0.0.1:1").count()
    assert "no name server answers" in said(caught.value)
    beyond = offsets_text({queue: end + 7 for queue, end in queues_of(server).items()})
    with pytest.raises(PySparkException) as caught:
        read(spark, server.nameserver, endingOffsets=beyond).count()
    assert "QueueRecreated: orders@broker-a:0" in said(caught.value)


def test_with_columns_of_ones_own_options_are_checked_by_the_first_action(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    """Spark does not ask the source for anything before."""
    with pytest.raises(AnalysisException) as caught:
        read(spark, server.nameserver, "body binary", startingOfsets="earliest").count()
    assert "did you mean startingOffsets" in said(caught.value)
    with pytest.raises(AnalysisException) as caught:
        read(spark, server.nameserver, "body binary", columns="tags").count()
    assert "a schema and the option columns contradict each other" in said(caught.value)
    with pytest.raises(AnalysisException) as caught:
        read(spark, server.nameserver, "value binary").count()
    assert "no column 'value'" in said(caught.value)


def offsets_text(offsets: Mapping[MessageQueue, int]) -> str:
    tree: dict[str, dict[str, dict[str, int]]] = {}
    for queue, offset in offsets.items():
        tree.setdefault(queue.topic, {}).setdefault(queue.broker_name, {})[str(queue.queue_id)] = offset
    return json.dumps(tree)


# ---- more ways to say what is wanted -----------------------------------------------------------------------------


def test_patterns_and_assigned_queues_choose_what_is_read(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    reader = spark.read.format("rocketmq").schema("queueId int").option("nameserver", server.nameserver)
    assert reader.option("subscribePattern", "or[d]ers").load().count() == ORDERS + 1
    reader = spark.read.format("rocketmq").schema("queueId int").option("nameserver", server.nameserver)
    rows = reader.option("assign", '{"orders": {"broker-a": [1, 3]}}').load().collect()
    assert {row.queueId for row in rows} == {1, 3}
    with pytest.raises(PySparkException) as caught:
        reader.option("assign", '{"orders": [1, 77]}').load().count()
    assert "assign names queues that are not there: orders@:77" in said(caught.value)


def test_sql_and_keys_choose_messages(spark: SparkSession, server: EmbeddedServer) -> None:
    chosen = read(spark, server.nameserver, "body binary", sql="city = 'Köln' AND TAGS IN ('paid')")
    assert chosen.count() == ORDERS // 3
    chosen = read(spark, server.nameserver, "body binary", keys="k7,k8")
    assert sorted(row.body for row in chosen.collect()) == [b"order 7", b"order 8"]


def test_a_job_of_kafka_s_finds_its_columns(spark: SparkSession, server: EmbeddedServer) -> None:
    frame = kafka_read(spark, server)
    assert frame.columns == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    row = frame.where("key = cast('k7 all' AS binary)").collect()[0]
    assert (row.value, row.topic, row.timestampType) == (b"order 7", "orders", 1)
    assert {header.key: header.value for header in row.headers}["city"] == "Köln".encode()


def kafka_read(spark: SparkSession, server: EmbeddedServer) -> DataFrame:
    options = {
        "nameserver": server.nameserver,
        "subscribe": "orders",
        "schema": "kafka",
        "includeHeaders": "true",
    }
    return spark.read.format("rocketmq").options(**options).load()


# ---- a session that pushes filters -------------------------------------------------------------------------------


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield spark
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_filters_narrow_a_read_that_takes_them(pushing: SparkSession, server: EmbeddedServer) -> None:
    def load() -> DataFrame:
        columns = "queueId int, queueOffset long, tags string, storeTimestamp timestamp"
        return read(pushing, server.nameserver, columns, pushFilters="true")

    one = load().where("queueId = 2 AND queueOffset >= 10 AND queueOffset < 30")
    assert one.rdd.getNumPartitions() == 1
    assert sorted(row.queueOffset for row in one.collect()) == list(range(10, 30))
    paid = load().where("tags = 'paid' AND storeTimestamp > '2020-01-01'")
    assert paid.count() == ORDERS // 3
    assert load().where("storeTimestamp > '2999-01-01'").collect() == []
    assert load().count() == ORDERS + 1


def test_a_frame_is_whole_again_after_a_query_with_filters(
    pushing: SparkSession, server: EmbeddedServer
) -> None:
    orders = read(pushing, server.nameserver)
    assert orders.where("tags = 'paid'").count() == ORDERS // 3
    assert orders.count() == ORDERS + 1
    assert orders.where("tags = 'open'").count() == ORDERS - ORDERS // 3


def test_a_query_may_use_a_frame_twice_with_other_filters(
    pushing: SparkSession, server: EmbeddedServer
) -> None:
    ends = {queue.queue_id: end for queue, end in queues_of(server).items()}
    orders = read(pushing, server.nameserver, "queueId int, queueOffset long")
    first, second = orders.where("queueId = 0"), orders.where("queueId = 1")
    assert first.union(second).count() == ends[0] + ends[1]
    pairs = first.join(second.withColumnRenamed("queueId", "other"), "queueOffset")
    assert pairs.count() == min(ends[0], ends[1])
    assert orders.join(second.select("queueOffset"), "queueOffset").count() == sum(
        min(end, ends[1]) for end in ends.values()
    )


def test_tasks_have_no_more_than_they_may(spark: SparkSession, server: EmbeddedServer) -> None:
    longest = max(queues_of(server).values())
    frame = read(spark, server.nameserver, "body binary", maxRecordsPerPartition=str(longest // 2 + 1))
    assert frame.rdd.getNumPartitions() >= 8
    assert frame.count() == ORDERS + 1
    frame = read(spark, server.nameserver, "body binary", maxBytesPerPartition="65536")
    assert frame.rdd.getNumPartitions() > 4
