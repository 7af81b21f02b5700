"""`writeStream.format("rocketmq")`: every batch is stored once, although the driver, a worker or the broker dies."""

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bolide import Message, Producer
from bolide.admin.topics import create_topic
from bolide.model.topic import TopicConfig
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.pipeline import sink_query
from tests.pipeline.test_stream import ask, send
from tests.pipeline.test_write import bodies, stored

pytestmark = pytest.mark.needs("java")

ROOT = Path(__file__).parents[2]
LINES = 5000


def start(frame: DataFrame, nameserver: str, checkpoint: Path, **options: str) -> StreamingQuery:
    return (
        frame.writeStream.format("rocketmq")
        .options(nameserver=nameserver, checkpointLocation=str(checkpoint), **options)
        .trigger(availableNow=True)
        .start()
    )


def lines(folder: Path, name: str, begin: int, end: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(f"{at} {'x' * 200}\n" for at in range(begin, end)))


def numbers(nameserver: str, topic: str) -> Counter[int]:
    return Counter(int(message.body.split()[0]) for message in stored(nameserver, topic))


def test_a_batch_that_was_not_committed_is_not_stored_again(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """The driver died after the sink was done: Spark runs the batch once more.  In another order, after a shuffle."""
    lines(tmp_path / "in", "a.txt", 0, 3000)
    frame = (
        spark.readStream.text(str(tmp_path / "in")).repartition(2).selectExpr("value as body", "'t' as tags")
    )
    assert start(frame, server.nameserver, tmp_path / "cp", topic="ws-again").awaitTermination(
        PATIENCE_SECONDS
    )
    assert numbers(server.nameserver, "ws-again") == Counter(range(3000))
    for committed in (tmp_path / "cp" / "commits").iterdir():
        committed.unlink()
    lines(tmp_path / "in", "b.txt", 3000, 3100)
    assert start(frame, server.nameserver, tmp_path / "cp", topic="ws-again").awaitTermination(
        PATIENCE_SECONDS
    )
    assert numbers(server.nameserver, "ws-again") == Counter(range(3100))


def test_a_first_batch_of_a_topic_is_stored_once_wherever_the_topic_would_begin_now(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """As after a retention meanwhile: a queue with fewer parts would give those of the next one other numbers."""
    ask(server, lambda servers: create_topic(servers, TopicConfig("ws-source", 2, 2)))
    send(server, "ws-source", range(60))
    later = '{"ws-source": {"broker-a": {"0": 25, "1": 0}}}'
    for begin in ("earliest", later):
        source = spark.readStream.format("rocketmq").options(
            nameserver=server.nameserver,
            subscribe="ws-source",
            startingOffsets=begin,
            maxRecordsPerPartition="10",
        )
        frame = source.load().select("body")
        query = start(frame, server.nameserver, tmp_path / "cp", topic="ws-copy")
        assert query.awaitTermination(PATIENCE_SECONDS)
        assert numbers(server.nameserver, "ws-copy") == Counter(range(60))
        for committed in (tmp_path / "cp" / "commits").iterdir():
            committed.unlink()


def test_at_least_once_if_the_user_says_so(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    lines(tmp_path / "in", "a.txt", 0, 10)
    frame = spark.readStream.text(str(tmp_path / "in")).selectExpr("value as body", "'ws-loose' as topic")
    for _ in range(2):
        query = start(frame, server.nameserver, tmp_path / "cp", idempotent="false")
        assert query.awaitTermination(PATIENCE_SECONDS)
        for committed in (tmp_path / "cp" / "commits").iterdir():
            committed.unlink()
    assert numbers(server.nameserver, "ws-loose") == Counter(range(10)) + Counter(range(10))


def test_a_stream_goes_from_topic_to_topic(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    orders = spark.readStream.format("rocketmq").options(
        nameserver=server.nameserver, subscribe="orders", startingOffsets="earliest"
    )
    paid = orders.load().where("tags = 'paid'").select("body", "tags", "keys", "properties")
    assert start(paid, server.nameserver, tmp_path / "cp", topic="ws-paid").awaitTermination(PATIENCE_SECONDS)
    found = stored(server.nameserver, "ws-paid")
    assert bodies(found) == Counter(b"order %d" % at for at in range(0, 3000, 3))
    assert {message.tags for message in found} == {"paid"}


def test_killed_workers_drivers_and_brokers_lose_and_double_nothing(tmp_path: Path) -> None:
    lines(tmp_path / "in", "a.txt", 0, LINES)
    lines(tmp_path / "in", "b.txt", LINES, 2 * LINES)
    with EmbeddedServer() as server:
        with Producer(server.nameserver, group="tests") as producer:
            producer.send(Message("sink", b"-1 somebody else's"))
        log = run_query(server, tmp_path, "kill")
        assert "DONE" not in log
        found = numbers(server.nameserver, "sink")
        assert LINES < found.total() < 2 * LINES, log
        restarts = threading.Thread(target=restart_when_more, args=(server, found.total()))
        restarts.start()
        log = run_query(server, tmp_path)
        restarts.join(PATIENCE_SECONDS)
        assert "DONE" in log, log
        assert numbers(server.nameserver, "sink") == Counter(range(-1, 2 * LINES))


def run_query(server: EmbeddedServer, folder: Path, *kill: str) -> str:
    """What it says until it ends, or dies."""
    places = [str(folder / "in"), str(folder / "cp")]
    command = [sys.executable, str(sink_query.__file__), server.nameserver, *places, "sink", *kill]
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=5 * PATIENCE_SECONDS,
        check=False,
    )
    return ended.stdout.decode()


def restart_when_more(server: EmbeddedServer, count: int) -> None:
    wait_until(
        lambda: sink_query.stored(server.nameserver, "sink") > count,
        3 * PATIENCE_SECONDS,
        "nothing more is stored",
    )
    server.stop()
    server.start()
