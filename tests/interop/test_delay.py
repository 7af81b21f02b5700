"""Delayed messages of real Java clients: how long they wait, and where they are when the broker is another one."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.clients import Consumer
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

LEVELS = {"messageDelayLevel": "1s 2s 4s 1h"}
DELAYS_MS = {1: 1000, 2: 2000, 3: 4000}
COUNT = 60


def waits(consumer: Consumer) -> list[dict[str, Any]]:
    """Each message that it got: `level`, and the milliseconds that it `waited` from its birth to its delivery."""
    return consumer.witness.events(consumer.name, "message")


def assert_none_was_early(consumer: Consumer) -> None:
    early = [event for event in waits(consumer) if event["waited"] < DELAYS_MS.get(event["level"], 0)]
    assert not early, early[0]


@pytest.fixture(scope="module")
def broker(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    home = tmp_path_factory.mktemp("delay")
    nameserver = NameServer(kind, home / "nameserver").start()
    broker = Broker(kind, home / "broker", "broker-a", [nameserver], LEVELS).start()
    yield broker
    broker.stop()
    nameserver.stop()


@pytest.fixture
def stage(witness: Witness, broker: Broker) -> Iterator[Stage]:
    stage = Stage(witness, broker.nameservers[0].address)
    yield stage
    stage.close()


def test_delayed_messages_come_once_to_the_queue_they_were_sent_to_and_never_early(stage: Stage) -> None:
    """DE-01, DE-04: beside messages that wait for nothing.  What comes still has its level."""
    topic = stage.topic()
    consumer = stage.consume(topic, stage.name("group"))
    late = stage.produce(topic, COUNT, levels=[1, 2, 3], tags=["red", "green"], keys=True)
    prompt = stage.produce(topic, COUNT)
    sent = [*late.finish().sent, *prompt.finish().sent]
    consumer.wait_received(2 * COUNT)
    assert_none_was_early(consumer)
    ledger.assert_each_once([one.body for one in sent], consumer.bodies)
    ledger.assert_intact(consumer.received)
    ledger.assert_queues_have_no_holes(consumer.received)
    queues = {one.body: one.queue for one in sent}
    assert {message.body: message.queue for message in consumer.received} == queues
    assert Counter(event["level"] for event in waits(consumer)) == {0: COUNT, 1: 20, 2: 20, 3: 20}
    assert {message.tags for message in consumer.received} == {"red", "green", None}


def test_a_level_above_the_highest_waits_as_long_as_the_highest(stage: Stage) -> None:
    """DE-03: the highest is an hour, so both are looked for where they wait."""
    topic = stage.topic()
    sent = stage.produce(topic, 2, levels=[4, 99]).finish().sent
    assert [one.status for one in sent] == ["SEND_OK"] * 2
    assert sent[1].offset == sent[0].offset + 1
    assert [row["max"] for row in stage.offsets(topic)] == [0] * 4


def test_what_waits_survives_a_kill(stage: Stage, broker: Broker) -> None:
    """DE-01: messages that come while the broker is down come when it is back."""
    topic = stage.topic()
    bodies = stage.produce(topic, COUNT, levels=[2, 3]).finish().bodies
    broker.kill()
    broker.start()
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    assert_none_was_early(consumer)
    ledger.assert_each_once(bodies, consumer.bodies)


# ---- a store that changes hands


@pytest.fixture
def store_stage(witness: Witness, tmp_path: Path) -> Iterator[tuple[Stage, Callable[[ServerKind], Broker]]]:
    """Clients, and a way to have one directory served by whomever."""
    nameserver = NameServer(Bolide(), tmp_path / "nameserver").start()
    served: list[Broker] = []

    def serve(kind: ServerKind) -> Broker:
        served.append(Broker(kind, tmp_path / "broker", "broker-a", [nameserver], LEVELS).start())
        return served[-1]

    stage = Stage(witness, nameserver.address)
    yield stage, serve
    stage.close()
    for broker in served:
        broker.kill()
    nameserver.stop()


def test_delayed_messages_that_wait_come_from_the_next_broker_as_promised(
    witness: Witness, store_stage: tuple[Stage, Callable[[ServerKind], Broker]]
) -> None:
    """Of levels that were configured, some delivered before and some waiting, from the original to ours and back.

    When it is killed the original has not written what it has delivered: we find it in its log.
    """
    stage, serve = store_stage
    original, ours = Apache(witness.version), Bolide()
    broker = serve(original)
    topic = stage.topic()
    sent = stage.produce(topic, 10, levels=[1]).finish().bodies
    wait_until(
        lambda: sum(row["max"] for row in stage.offsets(topic)) == 10, PATIENCE_SECONDS, "none was delivered"
    )
    for way, following in ((Broker.kill, ours), (Broker.stop, original)):
        sent += stage.produce(topic, COUNT, levels=[2, 3]).finish(first_contact_may_fail=True).bodies
        way(broker)
        broker = serve(following)
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(len(sent))
    assert_none_was_early(consumer)
    ledger.assert_each_once(sent, consumer.bodies)
    ledger.assert_queues_have_no_holes(consumer.received)
