"""Which server the real clients meet: `--server=bolide` (default), `--server=apache`, `--server-version=4.9.7`.

Against Apache 5.5.0 every test here passes, which proves the tests. Against Apache 4.9.7 the lite pull consumer and
`mqadmin topicStatus` of 5.5.0 fail, because that server does not know their requests, and so does a transactional
message that asks for more time, because that server counts its checks meanwhile and gives it up.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop import claims
from tests.interop.stage import BareStage, Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.go import GoWitness
from tests.peers.node import NodeWitness
from tests.peers.server import ServerKind, Together
from tests.peers.witness import Conversation, Witness


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("interop")
    group.addoption("--server", choices=("bolide", "apache"), help="the server under test")
    group.addoption("--server-version", choices=java.VERSIONS, help="the version of an Apache server")


@pytest.fixture(scope="session")
def kind(request: pytest.FixtureRequest) -> ServerKind:
    """From the command line, or from BOLIDE_INTEROP_SERVER where the whole suite runs at once."""
    chosen = request.config.getoption("--server", None) or os.environ.get("BOLIDE_INTEROP_SERVER")
    if chosen == "apache":
        return Apache(request.config.getoption("--server-version", None) or java.LATEST)
    return Bolide()


@pytest.fixture(scope="session")
def witnesses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Witness]]:
    """One JVM with clients of each version for the whole run, started by the first test that asks for it."""
    home = tmp_path_factory.mktemp("java")
    running: dict[str, Witness] = {}

    def of(version: str) -> Witness:
        if version not in running:
            running[version] = Witness(version, home / version)
        return running[version]

    yield of
    for witness in running.values():
        witness.stop()


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"client-{version}")
def witness(request: pytest.FixtureRequest, witnesses: Callable[[str], Witness]) -> Witness:
    """Clients of one version after the other, module by module: both meet the servers that the module has started."""
    return witnesses(request.param)


@pytest.fixture(scope="session")
def server(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """One name server and one broker, shared by every test that needs no other."""
    server = Together(kind, tmp_path_factory.mktemp("server")).start()
    yield server
    server.stop()


@pytest.fixture
def stage(witness: Witness, server: Together) -> Iterator[Stage]:
    """The shared server through the eyes of one test and one client version."""
    stage = Stage(witness, server.nameserver)
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def go_witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoWitness]:
    """One process with Go clients for the whole run."""
    witness = GoWitness(tmp_path_factory.mktemp("go"))
    yield witness
    witness.stop()


@pytest.fixture(scope="session")
def node_witness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeWitness]:
    """One process with Node clients for the whole run."""
    witness = NodeWitness(tmp_path_factory.mktemp("node"))
    yield witness
    witness.stop()


def _bare_stage(witness: Conversation, server: Together) -> Iterator[BareStage]:
    stage = BareStage(witness, server)
    yield stage
    stage.close()


@pytest.fixture
def go(go_witness: GoWitness, server: Together) -> Iterator[BareStage]:
    """The shared server through the eyes of one test and the Go client."""
    yield from _bare_stage(go_witness, server)


@pytest.fixture
def node(node_witness: NodeWitness, server: Together) -> Iterator[BareStage]:
    """The shared server through the eyes of one test and the Node client."""
    yield from _bare_stage(node_witness, server)


@pytest.fixture(scope="session")
def later(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """A server of its own for what comes later: retries, delays, checks of transactions."""
    server = Together(kind, tmp_path_factory.mktemp("later"), claims.LATER).start()
    yield server
    server.stop()


@pytest.fixture
def go_later(go_witness: GoWitness, later: Together) -> Iterator[BareStage]:
    yield from _bare_stage(go_witness, later)


@pytest.fixture
def node_later(node_witness: NodeWitness, later: Together) -> Iterator[BareStage]:
    yield from _bare_stage(node_witness, later)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory for the servers that one test starts for itself."""
    return tmp_path / "servers"
