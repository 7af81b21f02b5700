"""`bolide broker …` and `bolide cluster …` against a real server."""

from dataclasses import replace

import pytest

from bolide import Message, Producer
from bolide.admin.cluster import brokers_there
from bolide.admin.connection import AdminConnection
from bolide.model.errors import BolideError
from bolide.testing import EmbeddedServer
from bolide.wire.bodies.route import ClusterInfo
from tests.peers.ports import free_port
from tests.unit.cli.conftest import Command

BROKER = "broker-a"


def test_brokers_and_clusters_are_listed_with_their_figures(
    command: Command, bolide_module_server: EmbeddedServer
) -> None:
    (broker,) = command("broker", "list", "--json").json
    assert (broker["broker"], broker["cluster"], broker["id"]) == (BROKER, "DefaultCluster", 0)
    assert broker["address"] == bolide_module_server.broker
    assert (broker["answers"], broker["version"]) == (True, "5.4.0")
    assert 0 < broker["disk_used"] < 1
    assert command("broker", "list").rows[0][:4] == [BROKER, "0", bolide_module_server.broker, "5.4.0"]
    assert command("cluster", "list", "--json").json == {"DefaultCluster": [BROKER]}
    assert command("cluster", "list").rows == [["DefaultCluster", "1", BROKER]]


def test_a_cluster_is_described_with_the_number_of_topics_and_groups(command: Command) -> None:
    command("topic", "create", "counted", "--if-not-exists")
    command("group", "create", "counters", "--if-not-exists")
    told = command("cluster", "describe", "DefaultCluster", "--json").json
    assert told["topics"] == len(command("topic", "list", "--json").json)
    assert told["groups"] == len(command("group", "list", "--json").json)
    assert [broker["broker"] for broker in told["brokers"]] == [BROKER]
    assert "DefaultCluster: 1 broker" in command("cluster", "describe", "DefaultCluster").out
    assert "the name server knows DefaultCluster" in command("cluster", "describe", "Other", code=4).err


def test_a_broker_is_described_in_words(command: Command) -> None:
    shown = command("broker", "describe", BROKER).out
    for word in ("up ", "messages per second", "disk", "not yet synced", "index behind", "connection"):
        assert word in shown
    (told,) = command("broker", "describe", BROKER, "--json").json
    assert told["figures"]["brokerActive"] == "true"
    assert "the name server knows broker-a" in command("broker", "describe", "broker-z", code=4).err


def test_a_broker_that_does_not_answer_is_named_and_the_others_are_shown(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = f"127.0.0.1:{free_port()}"

    async def with_another(servers: AdminConnection) -> ClusterInfo:
        info = await brokers_there(servers)
        gone = replace(info.brokers[BROKER], broker_name="broker-gone", addresses={0: dead})
        return replace(info, brokers={**info.brokers, "broker-gone": gone})

    monkeypatch.setattr("bolide.admin.brokers.brokers_there", with_another)
    shown = command("broker", "list", code=3)
    assert f"'broker-gone' does not answer: cannot connect to {dead}" in shown.err
    assert [row[0] for row in shown.rows] == [BROKER, "broker-gone"]


def test_settings_are_shown_and_changed_or_refused_with_the_reason(command: Command) -> None:
    before = command("broker", "config", "get", BROKER, "fileReservedTime", "--json").json
    assert before == {"fileReservedTime": "72"}
    words = ("broker", "config", "set", BROKER, "fileReservedTime=48")
    assert "Nothing was changed" in command(*words, "--preview").err
    assert command("broker", "config", "get", BROKER, "fileReservedTime", "--json").json == before
    told = command(*words, "--yes", "--json").json
    assert told["settings"] == {"fileReservedTime": {"old": "72", "new": "48"}}
    assert ["fileReservedTime", "48", "may", "change"] in command("broker", "config", "get", BROKER).rows
    command("broker", "config", "set", BROKER, "fileReservedTime=72")
    for preview in ([], ["--preview"]):
        for word, code, said in (
            ("listenPort=1", 1, "listenPort cannot change while the broker runs"),
            ("fileReservedTime=abc", 2, "fileReservedTime"),
            ("fileReservedTme=1", 2, "did you mean fileReservedTime?"),
            ("foo", 2, "config set wants key=value, not 'foo'"),
        ):
            assert said in command("broker", "config", "set", BROKER, word, *preview, code=code).err
    assert (
        "no setting lsitenPort; did you mean listenPort?"
        in command("broker", "config", "get", BROKER, "lsitenPort", code=4).err
    )


def test_a_change_that_deletes_or_turns_away_is_asked_about_and_others_are_not(command: Command) -> None:
    change = ("broker", "config", "set", BROKER)
    dangerous = (*change, "fileReservedTime=1", "brokerPermission=4", "autoCreateTopicEnable=true")
    refused = command(*dangerous, code=2).err
    assert "say --yes when nobody is there to be asked" in refused
    for said in (
        "messages go when they are older than 1 hours",
        "brokerPermission=4: producers are turned away",
    ):
        assert said in refused
    told = command(*dangerous, "--preview", "--json").json
    assert len(told["at_stake"]) == 2
    got = command("broker", "config", "get", BROKER, "fileReservedTime", "brokerPermission", "--json").json
    assert got == {"fileReservedTime": "72", "brokerPermission": "6"}
    harmless = command(*change, "fileReservedTime=73", "autoCreateTopicEnable=true", "--json").json
    assert harmless["at_stake"] == []
    command(*change, "fileReservedTime=72", "--yes")


def test_a_drained_broker_takes_no_messages_until_it_is_to_again(
    command: Command, bolide_server: EmbeddedServer
) -> None:
    at = ("-n", bolide_server.nameserver)
    command("topic", "create", "orders", *at)
    preview = command("broker", "drain", BROKER, "--preview", "--json", *at)
    assert preview.json == {"broker": BROKER, "only_there": ["orders"], "preview": True}
    assert "only broker-a takes messages of orders" in preview.err
    assert "--yes" in command("broker", "drain", BROKER, *at, code=2).err
    command("broker", "drain", BROKER, "--yes", *at)
    assert "it is drained" in command("broker", "describe", BROKER, *at).out
    with Producer(bolide_server.nameserver, group="tests") as producer, pytest.raises(BolideError):
        producer.send(Message("orders", b"x"))
    assert command("broker", "list", *at).rows[0][-1] == "drained"
    assert command("broker", "list", "--json", *at).json[0]["drained"] is True
    assert "--yes" in command("broker", "undrain", BROKER, *at, code=2).err
    previewed = command("broker", "undrain", BROKER, "--preview", "--json", *at).json
    assert previewed == {"broker": BROKER, "preview": True}
    assert command("broker", "list", *at).rows[0][-1] == "drained"
    command("broker", "undrain", BROKER, "--yes", *at)
    assert command("broker", "list", *at).rows[0][-2:] == ["takes", "messages"]
    with Producer(bolide_server.nameserver, group="tests") as producer:
        producer.send(Message("orders", b"x"))
    assert "it is drained" not in command("broker", "describe", BROKER, *at).out


def test_options_of_a_server_before_a_command_are_refused(command: Command) -> None:
    assert "write them behind it" in command("broker", "-n", "127.0.0.1:1", "list", code=2).err
