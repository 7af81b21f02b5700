"""`bolide queue …` against a real server: what lies where, read without a group."""

import json

import pytest

from bolide import Message, MessageQueue, Producer
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command

BROKER = "broker-a"


@pytest.fixture
def filled(command: Command, bolide_module_server: EmbeddedServer) -> str:
    name = "queues"
    if name not in command("topic", "list", "--json").json:
        command("topic", "create", name, "--queues", "2")
        with Producer(bolide_module_server.nameserver, group="tests") as producer:
            for number in range(5):
                producer.send(Message(name, b"m%d" % number), queue=MessageQueue(name, BROKER, 0))
    return name


def bodies(shown: str) -> list[str]:
    return [json.loads(line)["body"] for line in shown.splitlines()]


def test_queues_are_listed_with_offsets_and_times(command: Command, filled: str) -> None:
    first, second = command("queue", "list", filled, "--json").json
    assert (first["queue"], first["offset_min"], first["offset_max"], first["messages"]) == (0, 0, 5, 5)
    assert 0 < first["first_stored_ms"] <= first["last_stored_ms"]
    assert (second["messages"], second["first_stored_ms"], second["last_stored_ms"]) == (0, None, None)
    shown = command("queue", "list", filled)
    assert shown.rows[1] == [BROKER, "1", "0", "0", "0", "-", "-"]
    assert shown.rows[0][-1] == "ago"
    assert max(map(len, shown.out.splitlines())) <= 80


def test_a_queue_is_described_with_the_groups_that_are_there(command: Command, filled: str) -> None:
    command("group", "create", "queuers", "--if-not-exists")
    command("group", "reset", "queuers", "--to", "2", "--topic", filled, "--yes")
    (told,) = command("queue", "describe", filled, "0", "--json").json
    assert told["groups"] == [{"group": "queuers", "offset": 2, "behind": 3}]
    assert "5 messages, from 0 to before 5" in command("queue", "describe", filled, "0").out
    assert "has no queue 9; its queues are 0 to 1" in command("queue", "describe", filled, "9", code=4).err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["m0", "m1", "m2", "m3", "m4"]),
        (["--count", "2"], ["m3", "m4"]),
        (["--at", "earliest", "--count", "2"], ["m0", "m1"]),
        (["--at", "3"], ["m3", "m4"]),
        (["--at", "1h", "--count", "1"], ["m0"]),
        (["--at", "5"], []),
    ],
    ids=lambda words: " ".join(words) or "nothing",
)
def test_a_peek_gives_the_messages_at_a_place(
    command: Command, filled: str, words: list[str], found: list[str]
) -> None:
    assert bodies(command("queue", "peek", filled, "0", *words, "--json").out) == found


def test_nothing_notices_a_peek(command: Command, filled: str) -> None:
    before = command("group", "list", "--json").json
    command("queue", "peek", filled, "0")
    assert command("group", "list", "--json").json == before
