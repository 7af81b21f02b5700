"""A real name server and broker in a process of their own, fresh for every module: attacks leave things behind."""

from collections.abc import Iterator

import pytest

from tests.peers.bolide import Bolide
from tests.peers.server import Together


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Bolide(), tmp_path_factory.mktemp("attacked")).start()
    yield server
    server.stop()
