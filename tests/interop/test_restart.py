"""A broker that stops and starts again: messages and committed offsets are there, connected clients go on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 300


@pytest.fixture(scope="module")
def broker(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    home = tmp_path_factory.mktemp("restart")
    nameserver = NameServer(kind, home / "nameserver").start()
    broker = Broker(kind, home / "broker", "broker-a", [nameserver]).start()
    yield broker
    broker.stop()
    nameserver.stop()


@pytest.fixture
def stage(witness: Witness, broker: Broker) -> Iterator[Stage]:
    stage = Stage(witness, broker.nameservers[0].address)
    yield stage
    stage.close()


def test_messages_and_committed_offsets_survive_a_restart_and_live_clients_go_on(
    stage: Stage, broker: Broker
) -> None:
    """CF-04: One group stops before the restart, one lives through it, one comes only after it."""
    topic, stopped_group = stage.topic(), stage.name("stopped")
    living = stage.consume(topic, stage.name("living"))
    before = stage.produce(topic, COUNT).finish().bodies
    reader = stage.consume(topic, stopped_group)
    reader.wait_received(COUNT)
    living.wait_received(COUNT)
    reader.stop()
    broker.stop()
    broker.start()
    assert stage.route_numbers(topic) == {(4, 4)}
    assert all(row["committed"] == row["max"] for row in stage.offsets(topic, stopped_group))
    after = stage.produce(topic, COUNT, retries=5).finish().bodies
    wait_until(
        lambda: set(after) <= set(living.bodies), PATIENCE_SECONDS, "the living consumer does not go on"
    )
    resumed = stage.consume(topic, stopped_group)
    newcomer = stage.consume(topic, stage.name("newcomer"))
    resumed.wait_received(COUNT)
    newcomer.wait_received(2 * COUNT)
    ledger.assert_each_once(after, resumed.bodies)
    ledger.assert_each_once([*before, *after], newcomer.bodies)
    ledger.assert_queues_have_no_holes(newcomer.received)
    ledger.assert_nothing_lost([*before, *after], living.bodies)


def test_two_stores_never_share_a_directory(broker: Broker, home: Path) -> None:
    """A second broker on a live store refuses to start instead of writing into it."""
    second = Broker(broker.kind, home, "broker-b", broker.nameservers)
    second.settings = {"storePathRootDir": str(broker.home / "store")}
    with pytest.raises(RuntimeError, match="ended with code"):
        second.start()
