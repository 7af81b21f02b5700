"""A broker that is down does not look like data that is gone, whatever is asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers import frames
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.system.command import run


@pytest.fixture(scope="module")
def deserted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a name server whose only broker, with a topic and a message, has died."""
    home: Path = tmp_path_factory.mktemp("deserted")
    names = NameServer(Bolide(), home / "names").start()
    broker = Broker(Bolide(), home / "broker", "broker-a", [names]).start()
    assert run("send", "orders", "kept", "--key", "42", "-n", names.address).code == 0
    broker.kill()
    wait_until(
        lambda: not frames.knows_broker(names.address, "broker-a"),
        PATIENCE_SECONDS,
        "the broker is still known",
    )
    yield names.address
    names.stop()


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list"],
        ["topic", "list", "--json"],
        ["topic", "list", "--system"],
        ["topic", "describe", "orders"],
        ["topic", "create", "orders"],
        ["topic", "update", "orders", "--queues", "2"],
        ["topic", "delete", "orders", "--yes"],
        ["message", "find", "orders", "--key", "42"],
        ["message", "get", "7F0000015FA1257ECA984ACE66A50001", "--topic", "orders"],
        ["tail", "orders", "--no-follow"],
        ["tail", "orders"],
        ["send", "orders", "more"],
    ],
    ids=" ".join,
)
def test_with_the_broker_dead_every_command_says_so_and_that_nothing_is_lost(
    words: list[str], deserted: str
) -> None:
    told = run(*words, "-n", deserted)
    assert (told.code, told.out) == (3, "")
    assert told.err.count("\n") == 1
    assert f"the name server {deserted} knows no broker now" in told.err
    assert "in the brokers' stores" in told.err
    assert "bolide doctor" in told.err


def test_the_doctor_says_what_to_do_about_it(deserted: str) -> None:
    told = run("doctor", "-n", deserted)
    assert told.code == 1
    assert "no broker is registered" in told.out
    assert "bolide broker -n" in told.out
