"""`bolide pipeline dedup` and `join` over topics: what comes out is there once, over runs that follow each other."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer
from bolide.net.clock import SystemClock
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.recipes import Asked, dedup_recipe, definition_of, join_recipe
from bolide.pipeline.declared.run import PipelineFailed, run
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS
from tests.unit.pipeline.test_redrive import plant

pytestmark = pytest.mark.needs("java")


def send(server: EmbeddedServer, topic: str, *messages: tuple[str, str | None]) -> None:
    """Bodies and keys."""
    with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        for body, key in messages:
            keys = [] if key is None else [key]
            producer.send(Message(topic, body.encode(), tags="T", keys=keys, properties={"city": "Köln"}))


def rows(
    spark: SparkSession, server: EmbeddedServer, topic: str
) -> list[tuple[str, str, tuple[str, ...], str]]:
    frame = spark.read.format("rocketmq").options(nameserver=server.nameserver, subscribe=topic).load()
    found = [
        (bytes(row.body).decode(), row.tags, tuple(row.keys), row.properties.get("city"))
        for row in frame.select("body", "tags", "keys", "properties").collect()
    ]
    return sorted(found)


def test_the_command_drops_duplicates_of_a_topic_and_its_definition_goes_on_from_there(
    tmp_path: Path, spark: SparkSession, server: EmbeddedServer
) -> None:
    """As users run it, in a process of its own; then the same pipeline in this one.  What has no key is kept."""
    send(server, "dup-orders", ("a", "1"), ("a again", "1"), ("b", "2"), ("no key", None), ("no key", None))
    words = ["pipeline", "dedup", "dup-orders", "--to", "once-orders", "--by", "key", "--within", "1h"]
    words += ["--once", "--checkpoint", "cp", "-n", server.nameserver]
    words += ["--spark", "spark.sql.shuffle.partitions=2", "--master", "local[2]"]
    program = [sys.executable, "-m", "bolide.cli.main", *words]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "out: 5 rows in 1 batch" in done.stderr
    first = rows(spark, server, "once-orders")
    send(server, "dup-orders", ("b again", "2"), ("c", "3"))
    asked = Asked(nameserver=server.nameserver, within="1h", to_topic="once-orders")
    definition = definition_of(dedup_recipe("dup-orders", "key", asked), tmp_path)
    run(definition, spark, Checkpoint(str(tmp_path / "cp")), now_ms=SystemClock().now_ms, once=True)
    found = rows(spark, server, "once-orders")
    assert sorted(keys for _, _, keys, _ in found) == [(), (), ("1",), ("2",), ("3",)]
    assert {(tags, city) for _, tags, _, city in found} == {("T", "Köln")}
    assert set(first) < set(found)


def test_pairs_of_two_topics_become_messages_of_a_third(
    tmp_path: Path, spark: SparkSession, server: EmbeddedServer
) -> None:
    send(server, "join-left", ("order 1", "1"), ("order 2", "2"), ("order", None))
    send(server, "join-right", ("payment", None), ("payment 2", "2"))
    asked = Asked(nameserver=server.nameserver, within="1 hour", to_topic="join-both")
    recipe = join_recipe("join-left", "join-right", "key", "inner", None, asked)
    definition = definition_of(recipe, tmp_path)
    checkpoint, now_ms = Checkpoint(str(tmp_path / "cp")), SystemClock().now_ms
    run(definition, spark, checkpoint, now_ms=now_ms, once=True)
    assert [keys for _, _, keys, _ in rows(spark, server, "join-both")] == [("2",)]
    send(server, "join-right", ("payment 1", "1"))
    run(definition, spark, checkpoint, now_ms=now_ms, once=True)
    pairs = [json.loads(body) for body, *_ in rows(spark, server, "join-both")]
    assert sorted((pair["join_left"]["body"], pair["join_right"]["body"]) for pair in pairs) == [
        ("order 1", "payment 1"),
        ("order 2", "payment 2"),
    ]
    assert pairs[0]["join_left"].keys() == {"body", "tags", "keys", "msgId", "storeTimestamp"}


def test_a_message_that_cannot_be_sent_again_ends_a_copy_until_it_is_to_be_left_out(
    tmp_path: Path, spark: SparkSession, server: EmbeddedServer
) -> None:
    """A client of others has stored it.  What was said the first time is no bar to going on."""
    send(server, "odd-orders", ("before", "1"))
    asyncio.run(plant(server, "TAGS\x01A B\x02", topic="odd-orders"))
    send(server, "odd-orders", ("behind", "2"))
    asked = Asked(nameserver=server.nameserver, within="1h", to_topic="even-orders")
    checkpoint, now_ms = Checkpoint(str(tmp_path / "cp")), SystemClock().now_ms
    definition = definition_of(dedup_recipe("odd-orders", "id", asked), tmp_path)
    with pytest.raises(PipelineFailed, match="badRows=skip"):
        run(definition, spark, checkpoint, now_ms=now_ms, once=True)
    definition = definition_of(dedup_recipe("odd-orders", "id", replace(asked, skip_bad_rows=True)), tmp_path)
    run(definition, spark, checkpoint, now_ms=now_ms, once=True)
    assert [body for body, *_ in rows(spark, server, "even-orders")] == ["before", "behind"]
