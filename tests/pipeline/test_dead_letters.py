"""`bolide pipeline dlq` with a real Spark and a real server: from letters that died to a consumer that gets them."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer, PushConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import delete_topic
from bolide.model.errors import RouteNotFound
from bolide.pipeline.dead_letters.letters import with_causes
from bolide.pipeline.dead_letters.plan import TAG_SHOWN, letters_of
from bolide.pipeline.dead_letters.report import DAY_MS, HOUR_MS, report
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import Bolide
from tests.pipeline.test_write import stored

pytestmark = pytest.mark.needs("java")


def bury(server: EmbeddedServer, topic: str, group: str, tags: list[str]) -> None:
    def fail(messages: list[StoredMessage]) -> None:
        raise ValueError("as tests want it")

    def dead() -> int:
        try:
            return len(stored(server.nameserver, f"%DLQ%{group}"))
        except RouteNotFound:  # no letter yet, so no topic
            return 0

    with Producer(server.nameserver, group="tests") as producer:
        for number, tag in enumerate(tags):
            body = json.dumps({"number": number, "version": number % 2}).encode()
            producer.send(Message(topic, body, tag, [f"k{number}"]))
    with PushConsumer(
        server.nameserver, group=group, listener=fail, start_from="first", attempts_max=0
    ) as consumer:
        consumer.subscribe(topic)
        wait_until(lambda: dead() == len(tags), PATIENCE_SECONDS, "all are dead")


def test_a_report_a_plan_a_redrive_and_the_consumer_gets_them(
    bolide: Bolide, server: EmbeddedServer, tmp_path: Path
) -> None:
    bury(server, "dl-orders", "dl-billing", ["paid"] * 6 + ["open"] * 3)
    told = bolide("dlq", "report", "dl-billing", "--json")
    assert told["letters"] == 9
    causes = {one["tag"]: one for one in told["causes"]}
    assert {tag: one["letters"] for tag, one in causes.items()} == {"paid": 6, "open": 3}
    paid = causes["paid"]
    assert (paid["topic"], paid["last_host"], paid["attempts"]) == ("dl-orders", "127.0.0.1", 1)
    assert paid["ages"] == {"< 1 h": 6, "< 1 d": 0, "< 7 d": 0, ">= 7 d": 0}
    assert (sum(paid["trend"]), sum(told["trend"])) == (6, 9)
    shown = bolide("dlq", "report", "%DLQ%dl-billing")
    assert paid["cause"] in shown
    assert "9 dead letters, by hour" in shown

    made = bolide("dlq", "plan", "dl-billing", "--cause", paid["cause"], "--output", "plan.json", "--json")
    assert (made["letters"], made["not_planned"]) == (6, 0)
    assert "is there already" in bolide("dlq", "plan", "dl-billing", "--output", "plan.json", code=1)
    assert "6 dead letters would go to dl-orders" in bolide("dlq", "redrive", "plan.json", "--preview")
    assert not (tmp_path / "plan.sent.jsonl").exists()

    got: Counter[bytes] = Counter()
    with PushConsumer(
        server.nameserver, group="dl-others", listener=lambda messages: got.update(m.body for m in messages)
    ) as consumer:
        consumer.subscribe("dl-orders")
        assert "say --yes" in bolide("dlq", "redrive", "plan.json", code=2)
        assert bolide("dlq", "redrive", "plan.json", "--rate", "1000", "--yes", "--json")["sent"] == 6
        expected = {json.dumps({"number": at, "version": at % 2}).encode() for at in range(6)}
        wait_until(lambda: got.keys() >= expected, PATIENCE_SECONDS, "the redriven ones are delivered")
    again = bolide("dlq", "redrive", "plan.json", "--yes", "--json")
    assert (again["sent"], again["sent_before"]) == (0, 6)
    assert len(stored(server.nameserver, "dl-orders")) == 9 + 6

    left = bolide("dlq", "plan", "dl-billing", "--not-in", "plan.json", "--output", "next.json", "--json")
    assert (left["letters"], left["not_planned"]) == (3, 0)
    tags = [letter["tag"] for letter in json.loads((tmp_path / "next.json").read_text())["letters"]]
    assert tags == ["open"] * 3
    refused = bolide("dlq", "plan", "dl-others", "--not-in", "plan.json", "--output", "x", code=2)
    assert "a plan of the group dl-billing, not of dl-others" in refused


def test_a_plan_is_chosen_by_tag_age_and_sql_and_says_when_nothing_is_left(
    bolide: Bolide, server: EmbeddedServer, tmp_path: Path
) -> None:
    bury(server, "dl-chosen", "dl-choosers", ["a", "b", "b", "c"])
    version = "get_json_object(cast(body AS string), '$.version')"
    by_version = {
        one["why"]: one for one in bolide("dlq", "report", "dl-choosers", "--by", version, "--json")["causes"]
    }
    assert {one["why"] for one in by_version.values()} == {"0", "1"}
    cause = next(
        one["cause"]
        for one in bolide("dlq", "report", "dl-choosers", "--by", version, "--json")["causes"]
        if one["tag"] == "b" and one["why"] == "1"
    )
    bolide("dlq", "plan", "dl-choosers", "--by", version, "--cause", cause, "--output", "by.json")
    bolide("dlq", "plan", "dl-choosers", "--tag", "b", "--tag", "c", "--output", "tags.json")
    bolide(
        "dlq",
        "plan",
        "dl-choosers",
        "--where",
        "attempts = 1 AND array_contains(keys, 'k0')",
        "--output",
        "sql.json",
    )
    counts = {
        name: len(json.loads((tmp_path / f"{name}.json").read_text())["letters"])
        for name in ("by", "tags", "sql")
    }
    assert counts == {"by": 1, "tags": 3, "sql": 1}
    assert "has no dead letters" in bolide(
        "dlq", "plan", "dl-choosers", "--older", "1h", "--output", "old.json", code=4
    )
    assert not (tmp_path / "old.json").exists()
    assert "--by is SQL" in bolide("dlq", "report", "dl-choosers", "--by", "nonsense", code=2)
    assert "--where is SQL" in bolide(
        "dlq", "plan", "dl-choosers", "--where", "nonsense", "--output", "x", code=2
    )
    assert "no dead letters" in bolide("dlq", "report", "dl-choosers", "--since", "1ms", code=4)
    assert "has a group 'dl-nobody'" in bolide("dlq", "report", "dl-nobody", code=4)


def test_letters_that_are_gone_are_named_and_the_code_says_it(
    bolide: Bolide, server: EmbeddedServer, tmp_path: Path
) -> None:
    bury(server, "dl-gone", "dl-gone-group", ["a", "b"])
    bolide("dlq", "plan", "dl-gone-group", "--output", "plan.json")
    tree = json.loads((tmp_path / "plan.json").read_text())
    tree["letters"][0]["offset"] = 777
    (tmp_path / "plan.json").write_text(json.dumps(tree))
    told = bolide("dlq", "redrive", "plan.json", "--yes", "--json", code=1)
    assert told["sent"] == 1
    (missing,) = told["missing"]
    assert (missing["offset"], missing["why"]) == (777, "it is not there any more: it has expired")


def deleted(server: EmbeddedServer, topic: str) -> None:
    async def delete() -> None:
        async with AdminConnection(server.nameserver) as servers:
            await delete_topic(servers, topic)

    asyncio.run(delete())


def test_letters_of_a_topic_that_was_made_anew_are_not_those_that_a_plan_has_sent(
    bolide: Bolide, server: EmbeddedServer, tmp_path: Path
) -> None:
    """They have the places of the old ones."""
    bury(server, "dl-anew", "dl-anew-group", ["a"] * 3)
    bolide("dlq", "plan", "dl-anew-group", "--output", "plan.json")
    bolide("dlq", "redrive", "plan.json", "--to", "dl-elsewhere", "--yes")
    words = ("dlq", "plan", "dl-anew-group", "--not-in", "plan.json", "--output")
    assert "3 dead letters left out: sent by a plan of --not-in" in bolide(*words, "none.json", code=4)
    deleted(server, "%DLQ%dl-anew-group")
    bury(server, "dl-anew", "dl-anew-group", ["b"] * 2)
    found = bolide(*words, "next.json", "--json")
    assert (found["letters"], found["sent_before"]) == (2, 0)
    places = [
        {
            (letter["broker"], letter["queue"], letter["offset"])
            for letter in json.loads(path.read_text())["letters"]
        }
        for path in (tmp_path / "plan.json", tmp_path / "next.json")
    ]
    assert places[0] > places[1]


def test_a_plan_names_topics_that_a_redrive_would_make(bolide: Bolide, server: EmbeddedServer) -> None:
    bury(server, "dl-lost", "dl-lost-group", ["a", "b"])
    assert "would make it" not in bolide("dlq", "plan", "dl-lost-group", "--output", "there.json")
    deleted(server, "dl-lost")
    told = bolide("dlq", "plan", "dl-lost-group", "--output", "lost.json")
    assert "no broker has the topic dl-lost, of which 2 dead letters of the plan say they were" in told


def test_a_plan_has_the_beginning_of_a_long_tag(spark: SparkSession) -> None:
    frame = spark.range(1).selectExpr(
        "'b' AS brokerName",
        "0 AS queueId",
        "id AS queueOffset",
        "'7F' AS msgId",
        "'orders' AS origin",
        "repeat('x', 30000) AS tag",
        "timestamp_millis(1) AS storeTimestamp",
    )
    (entry,) = letters_of(frame).entries
    assert entry["tag"] == "x" * TAG_SHOWN


def test_ages_and_trends_are_counted_by_when_letters_died(spark: SparkSession) -> None:
    """Of made rows, a letter an hour for three days, so that days are told."""
    now_ms = 1_800_000_000_000
    frame = spark.range(72).selectExpr(
        f"timestamp_millis({now_ms} - id * {HOUR_MS} - 1) AS storeTimestamp",
        "map('RETRY_TOPIC', 'orders', 'BOLIDE_ATTEMPTS', '(2 earlier); t 10.0.0.7:1 3; t [::1]:2 dead') AS properties",
        "'paid' AS tags",
        "5 AS reconsumeTimes",
        "cast(id AS string) AS msgId",
    )
    found = report(with_causes(frame), now_ms)
    (cause,) = found.causes
    assert (cause.topic, cause.tag, cause.last_host, cause.attempts) == ("orders", "paid", "[::1]", 5)
    assert cause.ages == {"< 1 h": 1, "< 1 d": 23, "< 7 d": 48, ">= 7 d": 0}
    assert (found.bin_ms, sum(found.trend), cause.example) == (DAY_MS, 72, "0")
    assert [number for number in found.trend if number] == [number for number in cause.trend if number]
