"""The `bolide` commands of administration with real Java clients in the groups: what they show and move is theirs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from bolide.cli.main import main
from tests.interop.stage import Stage
from tests.peers.clients import Consumer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

Bolide = Callable[..., Any]
COUNT = 8


@pytest.fixture
def bolide(stage: Stage, capfd: pytest.CaptureFixture[str]) -> Bolide:
    """Run a command with --json that ends with this code; gives what it told, or what it said when it failed."""

    def run(*words: str, code: int = 0) -> Any:
        capfd.readouterr()
        outcome = main([*words, "--json", "-n", stage.nameserver])
        shown = capfd.readouterr()
        assert outcome == code, shown.err
        return json.loads(shown.out) if code == 0 else shown.err

    return run


@pytest.fixture
def consumed(stage: Stage) -> tuple[str, str, Consumer]:
    """A topic, a group and its only member, which has consumed everything."""
    topic, group = stage.topic(queues=2), stage.name("group")
    consumer = stage.consume(topic, group, start="first")
    consumer.wait_queues(topic, 2)
    stage.produce(topic, COUNT).finish()
    consumer.wait_received(COUNT)
    return topic, group, consumer


def test_members_versions_subscriptions_and_lag_are_shown(
    stage: Stage, bolide: Bolide, consumed: tuple[str, str, Consumer]
) -> None:
    topic, group, consumer = consumed
    found = bolide("group", "describe", group)
    (member,) = found["members"]
    assert (member["client_id"], member["language"]) == (consumer.client_id, "JAVA")
    assert member["version"].split(".")[0] == stage.witness.version.split(".")[0]
    assert topic in [one["topic"] for one in found["subscriptions"]]
    assert found["differences"] == []
    wait_until(lambda: _behind(bolide, group, topic) == 0, PATIENCE_SECONDS, "its offsets are stored")
    consumer.stop()
    stage.produce(topic, COUNT).finish()
    wait_until(lambda: _behind(bolide, group, topic) == COUNT, PATIENCE_SECONDS, "the rest waits for it")
    (lag,) = [one for one in bolide("group", "lag", group) if one["topic"] == topic]
    assert lag["waits_ms"] > 0


def test_a_java_member_goes_on_where_its_group_was_moved(
    bolide: Bolide, consumed: tuple[str, str, Consumer]
) -> None:
    topic, group, consumer = consumed
    wait_until(lambda: _behind(bolide, group, topic) == 0, PATIENCE_SECONDS, "its offsets are stored")
    plan = bolide("group", "reset", group, "--to", "earliest", "--topic", topic, "--preview")
    assert (plan["again"], plan["skipped"]) == (COUNT, 0)
    bolide("group", "reset", group, "--to", "earliest", "--topic", topic, "--yes")
    _wait_deliveries(consumer, 2 * COUNT)
    assert sorted(consumer.bodies) == sorted(2 * consumer.bodies[:COUNT])


def test_a_java_listener_gets_a_message_directly_and_its_verdict_is_told(
    bolide: Bolide, consumed: tuple[str, str, Consumer]
) -> None:
    topic, group, consumer = consumed
    first = consumer.received[0]
    message = bolide("message", "at", topic, str(first.queue), str(first.offset))
    told = bolide("message", "consume", message["offset_id"], "--group", group)
    assert (told["member"], told["verdict"]) == (consumer.client_id, "CR_SUCCESS")
    _wait_deliveries(consumer, COUNT + 1)
    assert consumer.bodies[-1] == first.body
    wait_until(lambda: _behind(bolide, group, topic) == 0, PATIENCE_SECONDS, "its offsets are stored")
    (track,) = bolide("message", "track", message["offset_id"])
    assert (track["group"], track["state"], track["members"]) == (group, "CONSUMED", 1)


def _wait_deliveries(consumer: Consumer, count: int) -> None:
    wait_until(lambda: len(consumer.bodies) >= count, PATIENCE_SECONDS, "nothing comes once more")


def _behind(bolide: Bolide, group: str, topic: str) -> int:
    lags = [one["behind"] for one in bolide("group", "lag", group) if one["topic"] == topic]
    return sum(lags) if lags else -1
