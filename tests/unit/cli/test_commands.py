"""The commands against a real server, in this process: topic, send, tail, doctor."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bolide import Message, Producer
from bolide.cli.main import main
from bolide.model.limits import TOLD_QUEUES_MAX, TOPIC_QUEUES_MAX
from bolide.testing import EmbeddedServer
from tests.peers.ports import free_port


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


Run = Callable[..., str]


@pytest.fixture
def run(
    server: EmbeddedServer, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Run a command that succeeds; gives what it wrote to stdout."""
    monkeypatch.setenv("BOLIDE_NAMESERVER", server.nameserver)

    def run(*words: str, code: int = 0) -> str:
        outcome = main(words)
        shown = capsysbinary.readouterr()
        assert outcome == code, shown.err.decode()
        return (shown.out if code == 0 else shown.err).decode()

    return run


def test_topics_are_created_described_changed_and_deleted(run: Run) -> None:
    assert json.loads(run("topic", "create", "life", "--queues", "2", "--json")) == {
        "topic": "life",
        "brokers": ["broker-a"],
    }
    assert "life" in run("topic", "list").split()
    run("topic", "update", "life", "--write-queues", "1", "--perm", "r")
    described = json.loads(run("topic", "describe", "life", "--json"))
    settings = described["brokers"]["broker-a"]
    assert (settings["read_queues"], settings["write_queues"], settings["perm"]) == (2, 1, "r")
    assert [queue["queue"] for queue in described["queues"]] == [0, 1]
    assert "broker-a" in run("topic", "describe", "life")
    run("topic", "delete", "life", "--yes")
    assert "life" not in json.loads(run("topic", "list", "--json"))
    assert "bolide topic create life" in run("topic", "describe", "life", code=4)


def test_sent_texts_come_out_of_tail_with_keys_and_tags(run: Run) -> None:
    run("send", "greetings", "-m", "hello", "-m", "world", "--tag", "eu", "--key", "1", "--key", "2")
    shown = run("tail", "greetings", "--no-follow", "-f", r"%t %T %k %v\n")
    assert sorted(shown.splitlines()) == ["greetings eu 1 2 hello", "greetings eu 1 2 world"]


def test_a_text_behind_the_topic_is_sent(run: Run) -> None:
    run("send", "spoken", "hello", "--tag", "eu")
    run("send", "spoken", "once more")
    run("send", "spoken", "first", "-m", "second")
    shown = run("tail", "spoken", "--no-follow")
    assert sorted(shown.splitlines()) == ["first", "hello", "once more", "second"]


def test_receipts_say_where_each_message_went(run: Run) -> None:
    receipts = [
        json.loads(line) for line in run("send", "receipts", "-m", "a", "-m", "b", "--receipts").splitlines()
    ]
    assert [receipt["status"] for receipt in receipts] == ["SEND_OK", "SEND_OK"]
    assert {receipt["topic"] for receipt in receipts} == {"receipts"}


def test_tail_begins_with_the_last_ones_in_the_order_they_were_stored(
    run: Run, server: EmbeddedServer
) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        for number in range(30):
            producer.send(Message("ordered", str(number).encode()))
    shown = run("tail", "ordered", "--no-follow").split()
    assert sorted(map(int, shown)) == list(range(20, 30))
    everything = run("tail", "ordered", "--no-follow", "--since", "beginning").split()
    assert sorted(map(int, everything)) == list(range(30))
    assert run("tail", "ordered", "--no-follow", "--since", "end") == ""
    assert len(run("tail", "ordered", "--no-follow", "--since", "1h").split()) == 30
    assert len(run("tail", "ordered", "--count", "4").split()) == 4


def test_store_times_decide_the_order_across_queues(run: Run, server: EmbeddedServer) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        for number in range(12):
            producer.send(Message("times", str(number).encode()))
    stored = [
        int(line) for line in run("tail", "times", "--no-follow", "--since", "1h", "-f", r"%S\n").split()
    ]
    assert len(stored) == 12
    assert stored == sorted(stored)


def test_tail_picks_tags_and_keys(run: Run) -> None:
    for tag, key in (("red", "1"), ("red", "2"), ("blue", "1")):
        run("send", "picked", "-m", f"{tag}{key}", "--tag", tag, "--key", key)
    assert sorted(run("tail", "picked", "--no-follow", "--tag", "red").split()) == ["red1", "red2"]
    assert sorted(run("tail", "picked", "--no-follow", "--key", "1").split()) == ["blue1", "red1"]
    both = run("tail", "picked", "--no-follow", "--tag", "red", "--tag", "blue", "--key", "2")
    assert both.split() == ["red2"]


def test_tail_counts_what_tags_and_keys_chose_from_the_last_ones(run: Run) -> None:
    run("topic", "create", "chosen", "--queues", "2")
    for tag, key in (("red", "1"), ("red", "2"), ("blue", "3"), ("blue", "4")):
        run("send", "chosen", "-m", f"{tag}{key}", "--tag", tag, "--key", key)
    assert run("tail", "chosen", "--count", "1").split() == ["blue4"]
    assert run("tail", "chosen", "--key", "1", "--count", "1").split() == ["red1"]
    assert run("tail", "chosen", "--tag", "red", "--count", "1").split() == ["red2"]
    assert run("tail", "chosen", "--no-follow", "--tag", "red", "--last", "2").split() == []
    assert run("tail", "chosen", "--no-follow", "--tag", "red", "--last", "3").split() == ["red2"]
    assert "is not a tag" in run("tail", "chosen", "--no-follow", "--tag", "a b", code=2)


def test_tail_of_a_misspelled_topic_names_the_one_that_is_there(run: Run) -> None:
    run("topic", "create", "greetings", "--if-not-exists")
    said = run("tail", "greetngs", "--no-follow", code=4)
    assert "did you mean greetings?" in said
    assert "topic create" not in said


def test_a_topic_that_nobody_has_is_code_4_for_tail(run: Run) -> None:
    assert "nowhere" in run("tail", "nowhere", "--no-follow", code=4)


@pytest.mark.parametrize("option", ["--queues", "--read-queues", "--write-queues"])
@pytest.mark.parametrize("number", [TOPIC_QUEUES_MAX + 1, TOLD_QUEUES_MAX, TOLD_QUEUES_MAX + 1])
def test_too_many_queues_are_refused_with_the_bound_of_a_topic(run: Run, option: str, number: int) -> None:
    assert f"less than or equal to {TOPIC_QUEUES_MAX}" in run(
        "topic", "create", "wide", option, str(number), code=2
    )
    assert f"less than or equal to {TOPIC_QUEUES_MAX}" in run(
        "topic", "update", "wide", option, str(number), code=2
    )


def test_a_failed_send_says_how_many_are_stored(run: Run) -> None:
    run("topic", "create", "closed", "--perm", "r")
    assert "message 1 failed, 0 messages are stored" in run("send", "closed", "-m", "x", code=1)
    assert "contains" in run("send", "bad name", "-m", "x", code=2)


def test_doctor_finds_a_healthy_server_healthy(run: Run, tmp_path: Path) -> None:
    report = json.loads(run("doctor", "--probe", "--json", "--data", str(tmp_path)))
    assert report["problems"] == 0
    verdicts = {finding["check"]: finding["verdict"] for finding in report["findings"]}
    assert {verdicts["name server"], verdicts["brokers"], verdicts["probe"]} == {"ok"}


def test_doctor_says_what_to_do_when_nothing_answers(capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    assert main(["doctor", "--json", "-n", address]) == 1
    report = json.loads(capsys.readouterr().out)
    problems = [finding for finding in report["findings"] if finding["verdict"] == "problem"]
    assert problems[0]["check"] == "name server"
    assert address in problems[0]["text"]
    assert "bolide up" in problems[0]["advice"]


def test_doctor_recognises_a_broker_at_the_name_servers_address(
    server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "-n", server.broker]) == 1
    shown = capsys.readouterr().out
    assert "not a broker's" in shown
    assert "used by another program" not in shown


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list"],
        ["topic", "describe", "orders"],
        ["topic", "create", "orders"],
        ["topic", "delete", "orders", "--yes"],
        ["message", "find", "orders", "--key", "42"],
        ["tail", "orders", "--no-follow"],
        ["send", "orders", "more"],
    ],
    ids=" ".join,
)
def test_every_command_recognises_a_broker_at_the_name_servers_address(
    words: list[str], server: EmbeddedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "-n", server.broker]) == 3
    assert "it is a broker, not a name server" in capsys.readouterr().err


def test_doctor_finds_an_advertised_address_that_cannot_be_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An address of this machine where nobody listens stands for the inside of a container."""
    with EmbeddedServer(settings={"brokerIP1": "127.0.0.99", "bindAddress": "127.0.0.1"}) as server:
        nameserver = f"127.0.0.1:{server.nameserver.rpartition(':')[2]}"
        assert main(["doctor", "-n", nameserver]) == 1
    shown = capsys.readouterr().out
    assert "127.0.0.99" in shown
    assert "brokerIP1" in shown


def test_doctor_says_that_a_broker_refuses_messages_and_what_helps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("bolide.store.cleaning.StoreCleaning.used_ratio", lambda cleaning: 0.93)
    with EmbeddedServer(settings={"diskSpaceWarningLevelRatio": 90}) as server:
        assert main(["send", "full", "x", "-n", server.nameserver]) == 1
        assert main(["doctor", "--data", str(tmp_path), "-n", server.nameserver]) == 1
    shown = capsys.readouterr().out
    assert "refuses messages" in shown
    assert "93.0% full" in shown
    assert "fileReservedTime" in shown
