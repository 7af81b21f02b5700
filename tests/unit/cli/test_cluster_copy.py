"""A cluster's topics, groups and offsets as a file, and made again from it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Message, MessageQueue, Producer
from bolide.admin.metadata import MARK, metadata_from_json
from bolide.model.errors import ConfigError
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command

BROKER = "broker-a"


@pytest.fixture(scope="module")
def source() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


@pytest.fixture(scope="module")
def target() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(settings={"brokerName": "broker-x"}) as server:
        yield server


@pytest.fixture
def exported(command: Command, source: EmbeddedServer, tmp_path: Path) -> Path:
    """Of a cluster with a topic, a group and an offset."""
    at = ("-n", source.nameserver)
    command("topic", "create", "orders", "--queues", "2", "--if-not-exists", *at)
    command("group", "create", "readers", "--retries", "3", "--if-not-exists", *at)
    with Producer(source.nameserver, group="tests") as producer:
        for number in range(3):
            producer.send(Message("orders", b"%d" % number), queue=MessageQueue("orders", BROKER, 1))
    command("group", "reset", "readers", "--to", "2", "--topic", "orders", "--queue", "1", "--yes", *at)
    path = tmp_path / "cluster.json"
    assert "1 topic and 1 group of 1 broker" in command("cluster", "export", str(path), *at).err
    return path


def test_an_export_has_topics_groups_and_offsets_and_overwrites_nothing(
    command: Command, source: EmbeddedServer, exported: Path
) -> None:
    told = json.loads(exported.read_text())
    part = told["brokers"][BROKER]
    assert list(part["topics"]) == ["orders"]
    assert part["groups"]["readers"]["retryMaxTimes"] == 3
    assert part["offsets"] == {"readers": {"orders": {"1": 2}}}
    assert json.loads(command("cluster", "export", "-n", source.nameserver).out) == told
    assert "exists" in command("cluster", "export", str(exported), "-n", source.nameserver, code=2).err


def test_an_export_into_a_folder_that_is_not_there_is_wrong_usage(
    command: Command, source: EmbeddedServer, tmp_path: Path
) -> None:
    path = tmp_path / "none" / "cluster.json"
    said = command("cluster", "export", str(path), "-n", source.nameserver, code=2).err
    assert f"cannot write {path}: No such file or directory" in said


def test_an_import_makes_what_is_missing_under_the_new_names(
    command: Command, target: EmbeddedServer, exported: Path
) -> None:
    at = ("-n", target.nameserver)
    assert "say with --map OLD=NEW" in command("cluster", "import", str(exported), *at, code=4).err
    words = ("cluster", "import", str(exported), "--map", f"{BROKER}=broker-x")
    plan = command(*words, "--preview", "--json", *at).json
    assert plan["topics"] == [{"broker": "broker-x", "topic": "orders"}]
    assert plan["groups"] == [{"broker": "broker-x", "group": "readers"}]
    assert "orders" not in command("topic", "list", "--json", *at).json
    assert "--yes" in command(*words, *at, code=2).err
    command(*words, "--yes", *at)
    settings = command("group", "describe", "readers", "--json", *at).json["settings"]
    assert settings["broker-x"]["retries"] == 3
    assert len(command("queue", "list", "orders", "--json", *at).json) == 2
    assert "everything is there already" in command(*words, "--yes", *at).err
    assert "the export is of broker-a" in command(*words, "--map", "broker-y=a", *at, code=2).err


def test_what_exists_with_other_settings_is_left_and_named(
    command: Command, source: EmbeddedServer, exported: Path
) -> None:
    at = ("-n", source.nameserver)
    command("group", "update", "readers", "--retries", "5", *at)
    plan = command("cluster", "import", str(exported), "--yes", "--json", *at).json
    assert [one["name"] for one in plan["left"]] == ["readers"]
    assert command("group", "describe", "readers", "--json", *at).json["settings"][BROKER]["retries"] == 5
    command("group", "update", "readers", "--retries", "3", *at)


def test_offsets_come_along_where_the_messages_are(
    command: Command, source: EmbeddedServer, target: EmbeddedServer, exported: Path
) -> None:
    at = ("-n", source.nameserver)
    command("group", "delete", "readers", "--yes", *at)
    command("cluster", "import", str(exported), "--offsets", "--yes", *at)
    (lag,) = command("group", "lag", "readers", "--json", *at).json
    assert lag["queues"][1]["offset"] == 2
    command("group", "reset", "readers", "--to", "1", "--topic", "orders", "--queue", "1", "--yes", *at)
    again = command("cluster", "import", str(exported), "--offsets", "--yes", "--json", *at).json
    assert "it is at 1 in queue 1 of orders already" in again["left"][0]["why"]
    elsewhere = ("cluster", "import", str(exported), "--offsets", "--map", f"{BROKER}=broker-x", "--preview")
    command("topic", "create", "orders", "--queues", "2", "--if-not-exists", "-n", target.nameserver)
    left = command(*elsewhere, "--json", "-n", target.nameserver).json["left"]
    assert "is not so long as offset 2" in left[0]["why"]


@pytest.mark.parametrize(
    "members",
    [
        [],
        {},
        {MARK: 2},
        {MARK: 1},
        {MARK: 1, "brokers": []},
        {MARK: 1, "brokers": {"a": {}}},
        {MARK: 1, "brokers": {"a": {"cluster": "c", "topics": {"t": 1}, "groups": {}, "offsets": {}}}},
        {MARK: 1, "brokers": {"a": {"cluster": "c", "topics": {}, "groups": {}, "offsets": {"g": {"t": 1}}}}},
    ],
)
def test_what_is_no_export_is_refused(members: object) -> None:
    with pytest.raises(ConfigError):
        metadata_from_json(members)


def test_a_file_that_is_no_json_is_wrong_usage(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text("{")
    assert "is no JSON" in command("cluster", "import", str(path), code=2).err
