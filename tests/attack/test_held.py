"""Pulls that wait: many of them, large ones, those that want what never comes.

Whatever waits takes a bounded number of bytes, wakes nobody who wants something else, and leaves others their place.
"""

import select
import socket

import pytest

from bolide.broker.waiting_pulls import HELD_BYTES
from bolide.model.limit import MIB
from bolide.model.limits import HELD_BYTES_MAX, HELD_CONNECTION_BYTES_MAX
from tests.attack.stage import ask_all, frame, grows_at_most, receive, strangers, takes_messages
from tests.peers import frames
from tests.peers.server import Together

PULL = 11
FOUND, NOT_FOUND = 0, 19
MAY_WAIT = 4 + 2  # with its own subscription, and allowed to wait
TOPIC = "held"


pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module", autouse=True)
def topic(server: Together) -> None:
    takes_messages(server, TOPIC)


def pulls_at_the_end(
    server: Together, count: int = 1, *, tags: str = "*", body: bytes = b"", **more: str
) -> bytes:
    """Each allowed to wait for the next message of the queue."""
    fields = {
        "consumerGroup": "TOOLS_CONSUMER",
        "topic": TOPIC,
        "queueId": "0",
        "queueOffset": str(frames.readable(server.broker, TOPIC, 1)),
        "maxMsgNums": "32",
        "sysFlag": str(MAY_WAIT),
        "commitOffset": "0",
        "suspendTimeoutMillis": "25000",
        "subVersion": "0",
        "subscription": tags,
    }
    return b"".join(frame(PULL, fields | more, body, opaque=number) for number in range(count))


def is_silent(connection: socket.socket, seconds: float = 0.3) -> bool:
    return not select.select([connection], [], [], seconds)[0]


def test_a_pull_that_waits_keeps_nothing_of_its_body(server: Together) -> None:
    """Twenty with 15 MiB each took 670 MiB."""
    pull = pulls_at_the_end(server, body=bytes(15 * MIB), tags="nothing")
    with strangers(server.broker, 20) as many, grows_at_most(server, 80):
        for connection in many:
            connection.sendall(pull)
        assert all(map(is_silent, many[-3:]))


def test_one_connection_waits_with_so_many_pulls_and_is_answered_at_once_beyond_that(
    server: Together,
) -> None:
    """One could hold all hundred thousand places."""
    count = HELD_CONNECTION_BYTES_MAX // HELD_BYTES + 1000
    with strangers(server.broker, 1) as (connection,), grows_at_most(server, 80):
        answers = ask_all(connection, pulls_at_the_end(server, count, tags="nothing"))
        assert {answer["code"] for answer in answers} == {NOT_FOUND}
        assert 10_000 <= count - len(answers) <= HELD_CONNECTION_BYTES_MAX // HELD_BYTES


def test_whoever_waits_with_little_has_a_place_when_others_have_taken_all(server: Together) -> None:
    """Every place is taken by large pulls of a few connections; one of them is answered early for a newcomer."""
    size = 20 * 1024
    each = HELD_CONNECTION_BYTES_MAX // size
    crowd = HELD_BYTES_MAX // HELD_CONNECTION_BYTES_MAX + 1
    with strangers(server.broker, crowd) as many, grows_at_most(server, HELD_BYTES_MAX // 1_000_000 + 60):
        data = pulls_at_the_end(server, each, tags="nothing", anything="x" * size)
        for connection in many:
            ask_all(connection, data)
        with strangers(server.broker, 5) as newcomers:
            for newcomer in newcomers:
                assert ask_all(newcomer, pulls_at_the_end(server)) == [], "it was not held"
            with frames.Connection(server.broker) as sender:
                assert sender.ask(frames.SEND_MESSAGE_V2, frames.send_fields(TOPIC), b"news").code == 0
            for newcomer in newcomers:
                (answer,) = receive(newcomer, count=1)
                assert (answer["code"], b"news" in answer["body"]) == (FOUND, True)


def test_messages_wake_nobody_who_waits_for_other_tags(server: Together) -> None:
    with strangers(server.broker, 2) as (crowd, reader):
        assert ask_all(crowd, pulls_at_the_end(server, 5_000, tags="A || B || C")) == []
        assert ask_all(reader, pulls_at_the_end(server)) == []
        with frames.Connection(server.broker) as sender:
            for _ in range(100):
                assert sender.ask(frames.SEND_MESSAGE_V2, frames.send_fields(TOPIC), b"other").code == 0
        (answer,) = receive(reader, count=1)
        assert answer["code"] == FOUND
        assert is_silent(crowd)
