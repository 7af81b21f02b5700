"""`bolide message` against a real server, in this process."""

import json
from collections.abc import Callable, Iterator

import pytest

from bolide import Message, Producer
from bolide.cli.main import main
from bolide.testing import EmbeddedServer

Run = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


@pytest.fixture(scope="module")
def ids(server: EmbeddedServer) -> list[tuple[str, str]]:
    """Unique and offset ids of three messages; two share a key, and the third has one of the same hash."""
    messages = [
        Message("orders", b"first", tags="paid", keys=["Aa", "42"]),
        Message("orders", b"second \xff\n" + b"x" * 100, keys=["Aa"], properties={"source": "web"}),
        Message("orders", b"third", keys=["BB"]),
    ]
    with Producer(server.nameserver, group="tests") as producer:
        receipts = [producer.send(message) for message in messages]
    return [(receipt.message_id, receipt.offset_message_id) for receipt in receipts]


@pytest.fixture
def run(
    server: EmbeddedServer,
    ids: list[tuple[str, str]],
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run a command that ends with this code; gives what it wrote to stdout, or to stderr when it fails."""
    monkeypatch.setenv("BOLIDE_NAMESERVER", server.nameserver)

    def run(*words: str, code: int = 0) -> str:
        outcome = main(["message", *words])
        shown = capsysbinary.readouterr()
        assert outcome == code, shown.err.decode()
        return (shown.out if code == 0 else shown.err).decode("utf-8", "replace")

    return run


def found(run: Run, *words: str) -> list[str]:
    lines = [json.loads(line) for line in run("find", "orders", "--json", *words).splitlines()]
    return [line["id"] for line in lines]


def test_messages_are_found_by_key_and_keys_of_the_same_hash_are_told_apart(
    run: Run, ids: list[tuple[str, str]]
) -> None:
    first, second, third = (unique for unique, _ in ids)
    assert found(run, "--key", "Aa") == [first, second]
    assert found(run, "--key", "BB") == [third]
    assert found(run, "--key", "Aa", "--limit", "1") == [second]
    assert found(run, "--key", "Aa", "--since", "1h") == [first, second]
    assert found(run, "-k", third) == [third]


def test_a_list_shows_where_each_message_is_and_how_its_body_begins(
    run: Run, ids: list[tuple[str, str]]
) -> None:
    shown = run("find", "orders", "--key", "Aa")
    assert all(unique in shown for unique, _ in ids[:2])
    assert "paid" in shown
    assert "…" in shown
    assert len(shown.splitlines()) == 4


def test_nothing_found_is_an_error_that_says_so(run: Run) -> None:
    assert "'none'" in run("find", "orders", "--key", "none", code=4)
    assert "in this time" in run("find", "orders", "--key", "Aa", "--until", "1h", code=4)
    assert "bolide topic create missing" in run("find", "missing", "--key", "k", code=4)


def test_impossible_windows_are_refused(run: Run) -> None:
    assert "--since end" in run("find", "orders", "--key", "k", "--since", "end", code=2)
    assert "before --since" in run("find", "orders", "--key", "k", "--since", "1h", "--until", "2h", code=2)


def test_a_message_is_shown_by_either_of_its_ids(run: Run, ids: list[tuple[str, str]]) -> None:
    for number, body in ((0, "first"), (2, "third")):
        unique, offset_id = ids[number]
        for words in ((offset_id,), (unique, "--topic", "orders")):
            told = json.loads(run("get", *words, "--json"))
            assert (told["id"], told["offset_id"], told["body"]) == (unique, offset_id, body)
            assert told["broker"] == "broker-a"
    shown = run("get", ids[1][1])
    assert "source" in shown
    assert "web" in shown
    assert "109 bytes" in shown
    assert shown.endswith("x\n")


def test_an_id_that_nobody_has_is_an_error_that_helps(run: Run, ids: list[tuple[str, str]]) -> None:
    unique, offset_id = ids[0]
    assert "its topic is needed too, --topic TOPIC" in run("get", unique, code=4)
    assert "its topic is needed too, --topic TOPIC" in run("get", offset_id[:-2] + "01", code=4)
    assert "has a message with the id" in run("get", offset_id, "-t", "orders", code=4)
    assert "not an offset message id" in run("get", "42", code=2)


def test_help_explains_both_ids(run: Run) -> None:
    assert "--topic" in run("get", "--help")
    assert "--since" in run("find", "--help")


def test_an_offset_id_is_not_said_to_be_nowhere_when_nobody_can_be_asked(
    run: Run, ids: list[tuple[str, str]]
) -> None:
    nobody = "7F00000100000001" + ids[0][1][16:]
    run("get", nobody, "-n", "127.0.0.1:1", code=3)
    assert "where nobody answers" in run("get", nobody, code=4)
