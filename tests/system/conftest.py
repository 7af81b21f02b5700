"""A running `bolide up` for the tests that only need one."""

from collections.abc import Iterator

import pytest

from tests.peers.bolide import Bolide
from tests.peers.server import Together


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Bolide(), tmp_path_factory.mktemp("server")).start()
    yield server
    server.stop()
