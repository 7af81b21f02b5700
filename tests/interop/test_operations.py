"""What operators do to a live cluster: shrink a topic, take a broker out for maintenance and bring it back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.clients import Production, wait_received
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

LAST = 100


def test_a_topic_shrinks_from_16_queues_to_8_under_load_and_nothing_is_lost(stage: Stage) -> None:
    """TP-05."""
    topic, group = stage.topic(queues=16), stage.name("group")
    members = [stage.consume(topic, group) for _ in range(2)]
    for member in members:
        member.wait_queues(topic, 8)
    production = stage.produce(topic, rate=300, threads=2)
    wait_until(
        lambda: {s.queue for s in production.sent} == set(range(16)), PATIENCE_SECONDS, "few queues in use"
    )

    stage.update_topic(topic, read=16, write=8)
    wait_until(lambda: _has_left_old_queues(production), PATIENCE_SECONDS, "still writes to old queues")
    old = {s.body for s in production.sent if s.queue >= 8}
    wait_until(
        lambda: old <= {b for m in members for b in m.bodies}, PATIENCE_SECONDS, "old queues hold messages"
    )
    stage.update_topic(topic, read=8, write=8)

    production.wait_sent(len(production.sent) + 3 * LAST)
    sent = production.stop().bodies
    wait_received(members, len(sent))
    ledger.assert_nothing_lost(sent, [body for member in members for body in member.bodies])


def _has_left_old_queues(production: Production) -> bool:
    """The newest messages went to the queues that stay, and no earlier one is still on its way."""
    sent = production.sent
    newest = sent[-LAST:]
    answered = {ledger.number(s.body) for s in sent}
    on_its_way = set(range(min(ledger.number(s.body) for s in newest))) - answered
    return not on_its_way and max(s.queue for s in newest) < 8


@pytest.fixture(scope="module")
def pair(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    """Two brokers with one name server."""
    home: Path = tmp_path_factory.mktemp("pair")
    nameserver = NameServer(kind, home / "nameserver").start()
    brokers = tuple(Broker(kind, home / name, name, [nameserver]) for name in ("broker-a", "broker-b"))
    for broker in brokers:
        broker.start()
    yield brokers[0], brokers[1]
    for broker in brokers:
        broker.stop()
    nameserver.stop()


def test_producers_leave_a_drained_broker_without_an_error_and_come_back(
    pair: tuple[Broker, Broker], witness: Witness
) -> None:
    """TP-07."""
    drained, other = pair
    stage = Stage(witness, drained.nameservers[0].address)
    try:
        topic = stage.topic()
        consumer = stage.consume(topic, stage.name("group"))
        production = stage.produce(topic, rate=200)
        _wait_last_brokers(production, {drained.name, other.name})

        stage.admin(f"updateBrokerConfig -b {drained.address} -k brokerPermission -v 4")
        _wait_last_brokers(production, {other.name})
        drained_bodies = {s.body for s in production.sent if s.broker == drained.name}
        wait_until(
            lambda: drained_bodies <= set(consumer.bodies),
            PATIENCE_SECONDS,
            "the drained broker holds messages",
        )

        stage.admin(f"updateBrokerConfig -b {drained.address} -k brokerPermission -v 6")
        _wait_last_brokers(production, {drained.name, other.name})
        sent = production.stop().bodies
        wait_received([consumer], len(sent))
        ledger.assert_each_once(sent, consumer.bodies)
    finally:
        stage.close()


def _wait_last_brokers(production: Production, brokers: set[str]) -> None:
    """Until the newest messages went to exactly these brokers."""
    wait_until(
        lambda: len(production.sent) > LAST and {s.broker for s in production.sent[-LAST:]} == brokers,
        PATIENCE_SECONDS,
        lambda: f"the last messages went to {sorted({s.broker for s in production.sent[-LAST:]})}",
    )
