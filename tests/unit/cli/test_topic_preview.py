"""`bolide topic update --preview`: what would change, and nothing does."""

import pytest

from bolide import Message, Producer
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command


@pytest.mark.parametrize("queues", ["8", "2"], ids=["more", "fewer"])
def test_a_previewed_change_of_queues_is_shown_and_not_made(
    command: Command, bolide_module_server: EmbeddedServer, queues: str
) -> None:
    topic = f"previewed-{queues}"
    command("topic", "create", topic, "--queues", "4")
    before = command("topic", "describe", topic, "--json").json
    words = ("topic", "update", topic, "--queues", queues, "--preview")
    said = command(*words).err
    assert f"{topic} on broker-a: read queues 4 -> {queues}, write queues 4 -> {queues}" in said
    assert "Nothing was changed" in said
    told = command(*words, "--json").json
    assert told["preview"] is True
    assert told["brokers"]["broker-a"]["read_queues"] == int(queues)
    assert "perm rw -> r" in command("topic", "update", topic, "--perm", "r", "--preview").err
    assert command("topic", "describe", topic, "--json").json == before


def test_a_preview_refuses_what_the_change_would(
    command: Command, bolide_module_server: EmbeddedServer
) -> None:
    command("topic", "create", "full", "--queues", "4")
    with Producer(bolide_module_server.nameserver, group="tests") as producer:
        for _ in range(8):
            producer.send(Message("full", b"x"))
    said = command("topic", "update", "full", "--queues", "1", "--preview", code=1).err
    assert "nobody could read" in said
