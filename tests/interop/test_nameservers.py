"""Two name servers that know nothing of each other: one may be down at any time and nobody notices."""

from pathlib import Path

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import frames
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

REGISTER_SECONDS = 25


def test_one_name_server_is_enough_whichever_is_down(kind: ServerKind, witness: Witness, home: Path) -> None:
    """The first is down while everything starts, comes up, and then the second, used until now, is killed.

    The 5.5.0 client itself fails calls until it has found a name server that is up, so failures before a
    producer's first acknowledged message are its own; from then on there must be none.
    """
    first = NameServer(kind, home / "first")
    second = NameServer(kind, home / "second").start()
    broker = Broker(kind, home / "broker", "broker-a", [first, second]).start()
    stage = Stage(witness, f"{first.address};{second.address}", second.address)
    try:
        topic = stage.topic()
        consumer = stage.consume(topic, stage.name("group"), poll=1000)
        production = stage.produce(topic, rate=100, poll=1000)
        production.wait_sent(100)

        first.start()
        wait_until(
            lambda: frames.knows_broker(first.address, "broker-a"),
            REGISTER_SECONDS,
            "the broker registers with a name server that came up late",
        )
        second.kill()
        production.wait_sent(len(production.sent) + 300)
        sent = production.stop(first_contact_may_fail=True).bodies

        late = stage.produce(topic, 50, rate=10).finish(first_contact_may_fail=True).bodies
        newcomer = stage.consume(topic, stage.name("newcomer"))
        for reader in (consumer, newcomer):
            reader.wait_received(len(sent) + len(late), seconds=60)
            ledger.assert_each_once([*sent, *late], reader.bodies)
    finally:
        stage.close()
        for part in (broker, first, second):
            part.stop()
