"""The fields of `--json` are a contract: docs/command-line.md lists them, and commands write exactly these."""

import re
from pathlib import Path

import pytest

from bolide import Message, MessageQueue, Producer
from bolide.model.recall import RecallHandle
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "command-line.md").read_text()
(SECTION,) = re.findall(r"^## JSON\n(.*?)(?:^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
FIELDS = {
    command: re.findall(r"`([a-z0-9_]+)`", fields)
    for command, fields in re.findall(r"^\| `([a-z -]+)` \| (.+) \|$", SECTION, re.MULTILINE)
}

TOPIC, GROUP = "told", "tellers"
LINES = {
    "topic describe": [TOPIC],
    "topic create": [TOPIC, "--if-not-exists"],
    "topic update": [TOPIC, "--queues", "1"],
    "topic delete": [TOPIC, "--preview"],
    "group create": [GROUP, "--if-not-exists"],
    "group update": [GROUP, "--retries", "16"],
    "group delete": [GROUP, "--preview"],
    "group list": [],
    "group describe": [GROUP],
    "group members": [GROUP],
    "group lag": [GROUP],
    "group reset": [GROUP, "--to", "0", "--topic", TOPIC, "--yes"],
    "group clone-offsets": [GROUP, "told-too", "--topic", TOPIC, "--preview"],
    "queue list": [TOPIC],
    "queue describe": [TOPIC, "0"],
    "message track": ["ID"],
    "message resend": ["ID", "--preview"],
    "message replay": [GROUP, "--preview"],
    "message recall": ["HANDLE", "--preview"],
    "broker list": [],
    "broker describe": ["broker-a"],
    "broker drain": ["broker-a", "--preview"],
    "broker undrain": ["broker-a", "--preview"],
    "broker config set": ["broker-a", "fileReservedTime=72"],
    "bench produce": ["--count", "10"],
    "bench consume": ["--count", "10"],
    "bench latency": ["--count", "10"],
    "cluster describe": [],
    "cluster import": ["FILE", "--preview"],
}
HANDLE = RecallHandle(TOPIC, "broker-a", 1_700_000_000_001, "UK").encode()
NEEDS_A_JAVA_CLIENT = {"message consume"}


@pytest.fixture
def filled(command: Command, bolide_module_server: EmbeddedServer) -> None:
    """A message, a group that has read it, and a dead letter, on a broker that recalls."""
    command("broker", "config", "set", "broker-a", "recallMessageEnable=true")
    for topic in (TOPIC, f"%DLQ%{GROUP}"):
        command("topic", "create", topic, "--queues", "1", "--if-not-exists")
        with Producer(bolide_module_server.nameserver, group="tests") as producer:
            producer.send(Message(topic, b"x"), queue=MessageQueue(topic, "broker-a", 0))
    for group in (GROUP, "told-too"):
        command("group", "create", group, "--if-not-exists")
    command("group", "reset", GROUP, "--to", "1", "--topic", TOPIC, "--yes")


def test_every_listed_command_is_run_here() -> None:
    assert set(LINES) | NEEDS_A_JAVA_CLIENT == set(FIELDS)


@pytest.mark.parametrize("words", LINES)
def test_a_command_writes_the_fields_that_the_page_lists(
    words: str, command: Command, filled: None, tmp_path: Path
) -> None:
    exported = tmp_path / "cluster.json"
    command("cluster", "export", str(exported))
    message = command("message", "at", TOPIC, "0", "0", "--json").json
    given = {"ID": message["offset_id"], "FILE": str(exported), "HANDLE": HANDLE}
    told = command(*words.split(), *(given.get(word, word) for word in LINES[words]), "--json").json
    first = told[0] if isinstance(told, list) else told
    assert list(first) == FIELDS[words]
