"""consumerFilter.json goes from our broker to the original and back, and each takes over what the other knew."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bolide.model import java_json
from tests.peers import frames, java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind

pytestmark = pytest.mark.needs("java", "mvn")

HEART_BEAT = 34
EXPRESSION = "price > 100 AND region IN ('de', 'fr')"


@pytest.fixture
def nameserver(home: Path) -> Iterator[NameServer]:
    nameserver = NameServer(Bolide(), home / "nameserver").start()
    yield nameserver
    nameserver.stop()


def kept_filter(broker: Broker) -> dict[str, Any]:
    path = broker.home / "store" / "config" / "consumerFilter.json"
    found = java_json.loads(path.read_bytes())["filterDataByTopic"]["Orders"]["groupFilterData"]
    kept: dict[str, Any] = found["billing"]
    return kept


def subscribe(address: str) -> frames.Connection:
    """A member of a group that filters by SQL, which is there until the connection is closed."""
    subscription = {"topic": "Orders", "subString": EXPRESSION, "expressionType": "SQL92", "subVersion": 1}
    group = {
        "groupName": "billing",
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": [{**subscription, "tagsSet": [], "codeSet": []}],
    }
    connection = frames.Connection(address)
    connection.ask(HEART_BEAT, body=json.dumps({"clientID": "a@1", "consumerDataSet": [group]}).encode())
    return connection


@pytest.mark.parametrize("version", java.VERSIONS)
def test_a_subscription_keeps_its_birth_through_a_change_of_broker_and_back(
    version: str, nameserver: NameServer, home: Path
) -> None:
    def serve(kind: ServerKind) -> Broker:
        settings = {"enablePropertyFilter": "true"}
        return Broker(kind, home / "broker", "broker-a", [nameserver], settings).start()

    broker = serve(Bolide())
    with subscribe(broker.address):
        broker.stop()
    first = kept_filter(broker)
    assert (first["expression"], first["expressionType"]) == (EXPRESSION, "SQL92")
    for kind in (Apache(version), Bolide()):
        broker = serve(kind)
        with subscribe(broker.address):  # so that a file that was not taken over would have another birth
            broker.stop()
        kept = kept_filter(broker)
        assert {**kept, "dead": None, "deadTime": None} == {**first, "dead": None, "deadTime": None}, (
            kind.name
        )
