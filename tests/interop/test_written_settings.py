"""The settings file of an original broker after that broker has written it back, with every setting that it knows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers import frames, java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer
from tests.system.command import run

pytestmark = pytest.mark.needs("java", "mvn")

UPDATE_BROKER_CONFIG = 25
NO_WRITES = "brokerPermission=4"


@pytest.fixture(scope="module")
def nameserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    nameserver = NameServer(Bolide(), tmp_path_factory.mktemp("nameserver")).start()
    yield nameserver
    nameserver.stop()


@pytest.mark.parametrize("version", java.VERSIONS)
def test_a_file_that_the_original_has_written_back_passes_the_check(
    version: str, nameserver: NameServer, tmp_path: Path
) -> None:
    """Goal: `mqadmin updateBrokerConfig` before a move leaves a file with which bolide starts."""
    broker = Broker(Apache(version), tmp_path, "broker-a", [nameserver]).start()
    try:
        with frames.Connection(broker.address) as connection:
            answer = connection.ask(UPDATE_BROKER_CONFIG, body=NO_WRITES.encode())
        assert answer.code == frames.SUCCESS, answer.remark
    finally:
        broker.kill()  # the file is written; an orderly stop takes ten seconds

    file = tmp_path / "broker.conf"
    lines = file.read_text().splitlines()
    assert NO_WRITES in lines
    assert len(lines) > 150, "the original has not written all its settings"
    checked = run("broker", "-c", str(file), "--check")
    assert (checked.code, "problem:" in checked.out) == (0, False), checked.out
