"""A store with open half messages goes from the original to ours and back: what is open is asked for, and only that."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

SETTINGS = {
    "mappedFileSizeCommitLog": str(256 * 1024),
    "cleanFileForciblyEnable": "false",
    "flushConsumerOffsetInterval": "200",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionCheckMax": "100",
    "transactionOpBatchInterval": "100",
}


@pytest.fixture(params=java.VERSIONS, ids=lambda version: f"apache-{version}")
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def nameserver(tmp_path: Path) -> Iterator[NameServer]:
    nameserver = NameServer(Bolide(), tmp_path / "nameserver").start()
    yield nameserver
    nameserver.stop()


@pytest.fixture
def stage(version: str, nameserver: NameServer, witnesses: Callable[[str], Witness]) -> Iterator[Stage]:
    stage = Stage(witnesses(version), nameserver.address)
    yield stage
    stage.close()


class Heritage:
    """A topic in a store, and what each server leaves of it to the next."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.topic = ""
        self.committed: list[str] = []
        self.open: list[str] = []
        self.group = ""

    def bodies(self) -> list[str]:
        messages, _ = self.stage.read("pull", self.topic, self.stage.name("readers"))
        return sorted(message.body for message in messages)

    def wait_delivered(self) -> None:
        wait_until(lambda: set(self.bodies()) >= set(self.committed), PATIENCE_SECONDS, "not delivered")

    def settle(self) -> None:
        """Whoever is asked now commits; only what is open is asked for."""
        wait_until(lambda: self.stage.route_numbers(self.topic), PATIENCE_SECONDS, "the topic has no route")
        heir = self.stage.transact(self.topic, self.group, checks=["commit"])
        self.committed += self.open
        self.wait_delivered()
        assert {check.body for check in heir.checks} == set(self.open)
        heir.stop()

    def leave(self) -> None:
        """Two half messages stay open that were asked for in vain, two others have ended."""
        self.group = self.stage.name("makers")
        ends = ["commit", "rollback", "unknown", "unknown"]
        maker = self.stage.transact(self.topic, self.group, 4, ends=ends, checks=["unknown"]).finish()
        self.committed.append(maker.bodies[0])
        self.open = maker.bodies[2:]
        wait_until(
            lambda: {check.body for check in maker.checks} >= set(self.open), PATIENCE_SECONDS, "not asked"
        )
        self.wait_delivered()
        maker.stop()


def test_what_is_open_is_asked_for_by_whoever_has_the_store_next(
    version: str, stage: Stage, nameserver: NameServer, tmp_path: Path
) -> None:
    """TX-05: what has ended is not asked for."""
    heritage = Heritage(stage)

    def serving(kind: ServerKind) -> Broker:
        return Broker(kind, tmp_path / "broker", "broker-a", [nameserver], SETTINGS).start()

    broker = serving(Apache(version))
    try:
        heritage.topic = stage.topic(2)
        heritage.leave()
        broker.stop()
        broker = serving(Bolide())
        heritage.settle()
        heritage.leave()
        broker.stop()
        broker = serving(Apache(version))
        heritage.settle()
        assert heritage.bodies() == sorted(heritage.committed)
    finally:
        broker.kill()
