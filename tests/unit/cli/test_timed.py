"""`bolide send --at`, `--in` and `--level`, and `bolide message recall`."""

from collections.abc import Iterator

import pytest

from bolide import PullConsumer
from bolide.model.recall import RecallHandle, decode_handle
from bolide.net.clock import SystemClock
from bolide.testing import EmbeddedServer
from tests.peers.ports import free_port
from tests.unit.cli.conftest import Command


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    settings = {"recallMessageEnable": "true", "messageDelayLevel": "1s 2s"}
    with EmbeddedServer(settings=settings) as server:
        yield server


@pytest.fixture
def at(server: EmbeddedServer) -> tuple[str, str]:
    return "-n", server.nameserver


def test_a_message_waits_for_its_time_and_its_handle_is_written(
    command: Command, server: EmbeddedServer, at: tuple[str, str]
) -> None:
    """TM-01: never early, by the broker's clock, which is this one's."""
    command("topic", "create", "timed", "--queues", "1", *at)
    clock = SystemClock()
    before_ms = clock.now_ms()
    shown = command("send", "timed", "in two", "--in", "2s", *at)
    called = decode_handle(shown.out.strip())
    assert (called.topic, called.broker_name) == ("timed", "broker-a")
    due_ms = clock.now_ms() + 2500
    receipt = command("send", "timed", "then", "--at", str(due_ms), "--receipts", *at).json
    assert decode_handle(receipt["recall_handle"]).unique_key == receipt["id"]
    assert command("send", "timed", "silent", "--in", "1h", "-q", *at) == ("", "")
    assert command("send", "timed", "-m", "a", "-m", "b", "--in", "1h", *at).out.count("\n") == 2
    assert command("send", "timed", "-m", "now", "--receipts", *at).json["recall_handle"] is None
    with PullConsumer(server.nameserver) as reader:
        (queue,) = reader.queues("timed")
        for offset, body, least_ms in (
            (0, b"now", 0),
            (1, b"in two", before_ms + 2000),
            (2, b"then", due_ms),
        ):
            (message,) = reader.pull(queue, offset, 1, wait_ms=30_000).messages
            assert message.body == body
            assert message.store_timestamp_ms >= least_ms


def test_a_level_may_be_given_by_its_number(
    command: Command, server: EmbeddedServer, at: tuple[str, str]
) -> None:
    command("topic", "create", "levels", "--queues", "1", *at)
    command("send", "levels", "later", "--level", "1", *at)
    with PullConsumer(server.nameserver) as reader:
        (queue,) = reader.queues("levels")
        (message,) = reader.pull(queue, 0, wait_ms=30_000).messages
    assert message.properties["DELAY"] == "1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", "10:00", "--in", "5m"), "give one of --delay, --level, --at and --in"),
        (("--level", "1", "--in", "5m"), "give one of"),
        (("--at", "10m"), "a span from now on is --in"),
        (("--at", "2020-01-01"), "is over"),
        (("--in", "soon"), "is no span"),
    ],
)
def test_what_is_no_time_sends_nothing(
    command: Command, at: tuple[str, str], words: tuple[str, ...], said: str
) -> None:
    assert said in command("send", "nowhere", "x", *words, *at, code=2).err
    assert "nowhere" not in command("topic", "list", "--json", *at).json


def test_a_waiting_message_is_recalled_after_a_question(command: Command, at: tuple[str, str]) -> None:
    """TM-02"""
    handle = command("send", "recalled", "never", "--in", "1h", *at).out.strip()
    called = decode_handle(handle)
    told = {
        "id": called.unique_key,
        "topic": "recalled",
        "broker": "broker-a",
        "due_after_ms": called.time_ms - 1,
        "preview": True,
    }
    assert command("message", "recall", handle, "--preview", "--json", *at).json == told
    assert "Nothing was recalled" in command("message", "recall", handle, "--preview", *at).err
    assert "say --yes" in command("message", "recall", handle, *at, code=2).err
    assert command("message", "recall", handle, "--yes", "--json", *at).json == {**told, "preview": False}
    assert f"recalled {called.unique_key}" in command("message", "recall", handle, "--yes", *at).err
    assert "is no recall handle" in command("message", "recall", "nonsense", *at, code=2).err


def test_when_a_message_is_due_is_said_no_closer_than_its_handle_knows(
    command: Command, at: tuple[str, str]
) -> None:
    """A whole second belongs to the step before it."""
    due_ms = 1000 * (SystemClock().now_ms() // 1000 + 3600)
    handle = command("send", "due", "then", "--at", str(due_ms), *at).out.strip()
    told = command("message", "recall", handle, "--preview", "--json", *at).json
    assert told["due_after_ms"] == due_ms - 1000


def test_a_broker_that_permits_no_recall_says_so(command: Command) -> None:
    handle = command("send", "kept", "stays", "--in", "1h").out.strip()
    refused = command("message", "recall", handle, "--preview", code=1)
    assert "bolide broker config set broker-a recallMessageEnable=true" in refused.err
    assert refused.out == ""
    assert "recallMessageEnable" in command("message", "recall", handle, "--yes", code=1).err


@pytest.mark.parametrize("is_there", [True, False], ids=["no such broker", "no name server"])
def test_a_preview_of_a_recall_says_what_the_handle_means_also_where_no_broker_can_be_asked(
    command: Command, at: tuple[str, str], is_there: bool
) -> None:
    handle = RecallHandle("orders", "broker-z", 1_800_000_000_000, "0A0B").encode()
    where = at if is_there else ("-n", f"127.0.0.1:{free_port()}")
    shown = command("message", "recall", handle, "--preview", *where).err
    meant, untold = shown.split(" Nothing was recalled")
    assert "the message 0A0B of orders, due within a second after 2027-01-15T07:59:59.999Z " in meant
    assert "on broker-z, would not come" in meant
    assert "broker-z could not be asked whether it permits that: " in untold
    assert ("broker-a" if is_there else where[1]) in untold
    as_json = command("message", "recall", handle, "--preview", "--json", *where)
    assert as_json.json["broker"] == "broker-z"
    assert "could not be asked" in as_json.err
