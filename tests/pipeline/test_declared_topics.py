"""A declared pipeline from a topic through SQL into Parquet, another topic and a quarantine: every row once."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer
from bolide.net.clock import SystemClock
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import Definition
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.run import Stop, Watch, run
from bolide.pipeline.declared.status import PipelineStatus, pipeline_status
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS

pytestmark = pytest.mark.needs("java")

SHOP = """\
    name: shop
    nameserver: NAMESERVER
    checkpoint: cp
    sources:
      bought:
        topic: declared-bought
        options: {startingOffsets: earliest, maxOffsetsPerTrigger: 40}
    steps:
      parsed:
        sql: |
          SELECT msgId, amount,
            CASE amount WHEN -5 THEN X'' WHEN -4 THEN NULL WHEN -3 THEN repeat('x', 4194305) ELSE body END AS body
          FROM (SELECT *, cast(get_json_object(cast(body AS string), '$.amount') AS int) AS amount FROM bought)
        expect:
          positive: {condition: amount > 0, action: quarantine}
      receipts:
        sql: SELECT cast(amount AS string) AS body, 'RECEIPT' AS tags, array(msgId) AS keys FROM parsed
    sinks:
      archive: {from: parsed, path: archive}
      answers: {from: receipts, topic: declared-receipts}
    quarantine: {topic: declared-bad}
"""


def buy(nameserver: str, amounts: range) -> None:
    with Producer(nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        for amount in amounts:
            producer.send(Message("declared-bought", json.dumps({"amount": amount}).encode()))


def status(definition: Definition) -> PipelineStatus:
    return asyncio.run(pipeline_status(definition, Checkpoint.of(definition)))


def bodies(spark: SparkSession, nameserver: str, topic: str) -> list[str]:
    options = {"nameserver": nameserver, "subscribe": topic}
    rows = spark.read.format("rocketmq").options(**options).load().select("body").collect()
    return sorted(bytes(row.body).decode() for row in rows)


def ids_of(spark: SparkSession, nameserver: str, amounts: range) -> set[str]:
    options = {"nameserver": nameserver, "subscribe": "declared-bought"}
    rows = spark.read.format("rocketmq").options(**options).load().select("msgId", "body").collect()
    return {row.msgId for row in rows if json.loads(bytes(row.body))["amount"] in amounts}


def test_every_message_is_once_in_each_sink_over_a_restart(
    tmp_path: Path, spark: SparkSession, server: EmbeddedServer
) -> None:
    """Over several batches, because one takes 40 messages at most; what is not positive only in the quarantine."""
    file = tmp_path / "shop.yaml"
    file.write_text(dedent(SHOP).replace("NAMESERVER", server.nameserver))
    definition = load(file).definition
    assert definition is not None
    buy(server.nameserver, range(-5, 51))
    checkpoint = Checkpoint.of(definition)
    first = run(definition, spark, checkpoint, now_ms=SystemClock().now_ms, once=True)
    assert {query.name: query.rows for query in first}["archive"] == 56
    assert all(query.behind == 0 for query in first)
    buy(server.nameserver, range(51, 61))
    assert {query.name: query.behind for query in status(definition).queries}["archive"] == 10
    run(definition, spark, checkpoint, now_ms=SystemClock().now_ms, once=True)

    archived = spark.read.parquet(str(tmp_path / "archive")).select("amount").collect()
    assert sorted(row.amount for row in archived) == list(range(1, 61))
    assert bodies(spark, server.nameserver, "declared-receipts") == sorted(
        str(number) for number in range(1, 61)
    )
    bad = [json.loads(body) for body in bodies(spark, server.nameserver, "declared-bad")]
    assert all(
        len(one.pop("msgId")) == 32 for one in bad if one["amount"] < -2
    )  # no message can have their body
    assert sorted(bad, key=lambda one: int(one["amount"])) == [
        {"amount": -5, "bodyLength": 0},
        {"amount": -4},
        {"amount": -3, "bodyLength": 4194305},
        *({"amount": amount} for amount in range(-2, 1)),
    ]
    options = {"nameserver": server.nameserver, "subscribe": "declared-bad"}
    put_aside = spark.read.format("rocketmq").options(**options).load().select("properties").collect()
    assert {dict(row.properties)["fromMessage"] for row in put_aside} == ids_of(
        spark, server.nameserver, range(-5, 1)
    )
    assert all(dict(row.properties)["failed"] == "positive" for row in put_aside)
    found = status(definition)
    assert found.state == "finished"
    assert [query.behind for query in found.queries] == [0, 0, 0]
    assert all(query.lags for query in found.queries)


JOINED = """\
    name: joined
    nameserver: NAMESERVER
    checkpoint: cp
    trigger: 10 ms
    sources:
      rows: {format: json, path: in, schema: "id long"}
      sent: {topic: declared-names, batch: true, options: {endingOffsets: latest}}
      written: {format: json, path: names, schema: "id long, name string", batch: true}
    steps:
      named:
        sql: |
          SELECT rows.id, cast(body AS string) AS sent, name AS written FROM rows
          LEFT JOIN sent ON tags = cast(rows.id AS string) LEFT JOIN written ON written.id = rows.id
    sinks:
      out: {from: named, path: out}
"""


def test_a_table_is_what_it_was_when_the_run_began_and_the_next_run_sees_the_rest(
    tmp_path: Path, spark: SparkSession, server: EmbeddedServer
) -> None:
    def write(place: str, number: int) -> None:
        new = tmp_path / "new"
        new.write_text(json.dumps({"id": number, "name": f"name {number}"}))
        (tmp_path / place).parent.mkdir(exist_ok=True)
        new.rename(tmp_path / place)

    def name(number: int) -> None:
        write(f"names/{number}.json", number)
        with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
            producer.send(Message("declared-names", b"name %d" % number, tags=str(number)))

    def after_a_batch(query: str, report: Mapping[str, Any]) -> None:
        if report["numInputRows"] and report["batchId"] == 0:
            name(2)
            write("in/second.json", 2)
        elif report["numInputRows"]:
            stop.ask()

    file = tmp_path / "joined.yaml"
    file.write_text(dedent(JOINED).replace("NAMESERVER", server.nameserver))
    definition = load(file).definition
    assert definition is not None
    name(1)
    write("in/first.json", 1)
    checkpoint, stop, now_ms = Checkpoint.of(definition), Stop(), SystemClock().now_ms
    run(definition, spark, checkpoint, now_ms=now_ms, stop=stop, watch=Watch(batch=after_a_batch))
    write("in/third.json", 2)
    run(definition, spark, checkpoint, now_ms=now_ms, once=True)
    found = spark.read.parquet(str(tmp_path / "out")).collect()
    assert {(row.id, row.sent, row.written) for row in found} == {
        (1, "name 1", "name 1"),
        (2, None, None),
        (2, "name 2", "name 2"),
    }
