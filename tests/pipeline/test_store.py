"""The format `rocketmq-store` in a real Spark: the rows of a read through the broker, from its files alone."""

import asyncio
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

from bolide import Message, Producer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import delete_topic
from bolide.model.names import HALF_TOPIC
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import ORDERS, fill
from tests.pipeline.store_rows import by_place, store_read

pytestmark = pytest.mark.needs("java")

MANY = 3000
SEGMENT_BYTES = 512 * 1024


def broker_read(spark: SparkSession, server: EmbeddedServer, topic: str) -> DataFrame:
    return spark.read.format("rocketmq").options(nameserver=server.nameserver, subscribe=topic).load()


def test_a_live_store_gives_the_rows_that_its_broker_gives(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    found = store_read(spark, server.data_dir, topic="orders")
    assert found.schema == broker_read(spark, server, "orders").schema
    rows = by_place(found)
    assert len(rows) == ORDERS + 1
    assert rows == by_place(broker_read(spark, server, "orders"))


def test_parts_of_a_segment_are_read_by_tasks_of_their_own(spark: SparkSession) -> None:
    """On a server of its own: where a topic is little of the log, its entries are followed instead."""
    with EmbeddedServer() as server:
        fill(server.nameserver)
        found = store_read(spark, server.data_dir, topic="orders", minPartitions="4")
        assert found.rdd.getNumPartitions() >= 4
        assert by_place(found) == by_place(broker_read(spark, server, "orders"))


def test_tags_keys_times_and_columns_choose(spark: SparkSession, server: EmbeddedServer) -> None:
    paid = store_read(
        spark, server.data_dir, topic="orders", tags="paid || large", columns="tags,queueoffset"
    )
    assert paid.columns == ["tags", "queueOffset"]
    assert paid.count() == ORDERS // 3 + 1
    keyed = store_read(spark, server.data_dir, topic="orders", keys="k7, k2999").collect()
    assert sorted(row.body for row in keyed) == [b"order 2999", b"order 7"]
    rows = sorted(store_read(spark, server.data_dir, topic="orders").collect(), key=lambda row: row.logOffset)
    middle_ms = round(rows[len(rows) // 2].storeTimestamp.timestamp() * 1000)
    later = store_read(spark, server.data_dir, topic="orders", startingTimestamp=str(middle_ms))
    before = store_read(spark, server.data_dir, topic="orders", endingTimestamp=str(middle_ms))
    assert later.count() + before.count() == len(rows)
    assert later.agg({"storeTimestamp": "min"}).collect()[0][0] == rows[len(rows) // 2].storeTimestamp


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store with a topic of many messages, one of few, one that was deleted, and one that came after its deletion."""
    home = tmp_path_factory.mktemp("stopped")
    settings = {"mappedFileSizeCommitLog": SEGMENT_BYTES}
    with EmbeddedServer(data_dir=home / "data", settings=settings) as server, shop(server) as producer:
        for topic in ("gone", "again"):
            producer.send_batch([Message(topic, b"old %d" % number) for number in range(50)])
        asyncio.run(delete(server, "gone", "again"))
        for start in range(0, MANY, 100):
            numbers = range(start, start + 100)
            producer.send_batch([Message("many", b"m%d" % number + bytes(100)) for number in numbers])
            producer.send(Message("few", b"f%d" % start))
        producer.send(Message("again", b"new"))
    yield home / "data"
    shutil.rmtree(home)


def shop(server: EmbeddedServer) -> Producer:
    return Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS)


async def delete(server: EmbeddedServer, *topics: str) -> None:
    async with AdminConnection(server.nameserver) as connection:
        for topic in topics:
            await delete_topic(connection, topic)


def bodies(frame: DataFrame) -> list[bytes]:
    return sorted(row.body for row in frame.collect())


def test_a_stopped_store_needs_no_broker_and_shows_no_deleted_topic(
    spark: SparkSession, stopped: Path
) -> None:
    found = store_read(spark, stopped).groupBy("topic").count().collect()
    assert {row.topic: row["count"] for row in found} == {"many": MANY, "few": MANY // 100, "again": 1}
    assert bodies(store_read(spark, stopped, topic="again")) == [b"new"]
    assert store_read(spark, stopped, subscribePattern="ma.*").count() == MANY


def test_few_messages_among_many_are_found_by_their_queues(spark: SparkSession, stopped: Path) -> None:
    few = store_read(spark, stopped, topic="few")
    assert bodies(few) == sorted(b"f%d" % start for start in range(0, MANY, 100))
    assert few.rdd.getNumPartitions() == 1  # nothing of the rest was worth a task


def test_the_broker_s_own_topics_are_read_by_who_says_so(spark: SparkSession, stopped: Path) -> None:
    with pytest.raises(AnalysisException, match="includeSystemTopics=true"):
        store_read(spark, stopped, topic=HALF_TOPIC)
    assert store_read(spark, stopped, includeSystemTopics="true").count() >= MANY


def test_a_damaged_record_goes_to_quarantine_and_the_others_are_read(
    spark: SparkSession, stopped: Path, tmp_path: Path
) -> None:
    sound = sorted(store_read(spark, stopped, topic="many").collect(), key=lambda row: row.logOffset)
    copy = tmp_path / "copy"
    shutil.copytree(stopped, copy)
    wrong_body, wrong_size = sound[700], sound[1500]
    damage(copy, wrong_body.logOffset + 100, b"!")
    damage(copy, wrong_size.logOffset, b"\x7f")
    rows = store_read(spark, copy, topic="many").collect()
    bad = {row.logOffset: row for row in rows if row.bodyError is not None}
    assert set(bad) == {wrong_body.logOffset, wrong_size.logOffset}
    assert bad[wrong_body.logOffset].queueOffset == wrong_body.queueOffset
    assert bad[wrong_body.logOffset].bodyError == "a checksum does not match"
    assert (bad[wrong_size.logOffset].topic, bad[wrong_size.logOffset].body[:1]) == (None, b"\x7f")
    assert by_order(rows, without=set(bad)) == by_order(sound, without=set(bad))
    assert store_read(spark, copy, topic="many", badBodies="skip").count() == MANY - 2
    with pytest.raises(PySparkException, match="badBodies=deliver hands its bytes out"):
        store_read(spark, copy, topic="many", badBodies="fail").collect()


def by_order(rows: list[Row], without: set[int]) -> list[Row]:
    return sorted((row for row in rows if row.logOffset not in without), key=lambda row: row.logOffset)


def damage(store: Path, place: int, data: bytes) -> None:
    base = place - place % SEGMENT_BYTES
    (segment,) = store.rglob(f"commitlog/{base:020d}")
    with segment.open("r+b") as file:
        file.seek(place - base)
        file.write(data)


def test_a_store_under_load_is_read_up_to_a_whole_message_and_a_frame_does_not_grow(
    spark: SparkSession,
) -> None:
    with EmbeddedServer(settings={"mappedFileSizeCommitLog": 1024 * 1024}) as server:
        fill(server.nameserver)
        over = threading.Event()
        sent = 0

        def load() -> None:
            nonlocal sent
            with shop(server) as producer:
                while not over.is_set():
                    producer.send_batch(
                        [Message("load", b"%d" % (sent + at) + bytes(300)) for at in range(50)]
                    )
                    sent += 50

        thread = threading.Thread(target=load)
        thread.start()
        try:
            wait_until(lambda: sent >= 1000, PATIENCE_SECONDS, "nothing was sent")
            for _ in range(3):
                known = sent
                found = store_read(spark, server.data_dir, topic="load")
                rows = found.collect()
                assert [row.bodyError for row in rows if row.bodyError is not None] == []
                assert len({row.body for row in rows}) == len(rows) >= known
                assert found.count() == len(rows)
                wait_until(lambda now=sent: sent > now + 200, PATIENCE_SECONDS, "the load has stopped")  # type: ignore[misc]
        finally:
            over.set()
            thread.join()


def test_what_is_wrong_is_said_with_what_to_do(spark: SparkSession, tmp_path: Path, stopped: Path) -> None:
    with pytest.raises(AnalysisException, match="path is missing"):
        spark.read.format("rocketmq-store").load()
    with pytest.raises(AnalysisException, match="did you mean includeSystemTopics"):
        store_read(spark, tmp_path, includeSystemTopic="true")
    with pytest.raises(AnalysisException, match="did you mean queueOffset"):
        store_read(spark, tmp_path, columns="queueOfset")
    with pytest.raises(PySparkException, match="is no store directory"):
        store_read(spark, tmp_path).collect()
    with pytest.raises(PySparkException, match="has no topic nowhere"):
        store_read(spark, stopped, topic="nowhere").collect()
