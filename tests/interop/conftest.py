"""Which server the real clients meet: `--server=bolide` (default), `--server=apache`, `--server-version=4.9.7`.

Against Apache 5.5.0 every test here passes, which proves the tests. Against Apache 4.9.7 the lite pull consumer and
`mqadmin topicStatus` of 5.5.0 fail, because that server does not know their requests.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import ServerKind, Together
from tests.peers.witness import Witness


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


@pytest.fixture(scope="session", params=java.VERSIONS, ids=lambda version: f"client-{version}")
def witness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    """One JVM with clients of one version for the whole run."""
    version: str = request.param
    witness = Witness(version, tmp_path_factory.mktemp(f"java-{version}"))
    yield witness
    witness.stop()


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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory for the servers that one test starts for itself."""
    return tmp_path / "servers"
