"""Answers that nobody reads, and requests that wait for large ones: what they keep is what is charged."""

import select

import pytest

from bolide.broker.pull_terms import CROWDED_BYTES
from bolide.model.limit import MIB
from tests.attack.stage import ONE_WAY, frame, grows_at_most, strangers, takes_messages
from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS

PULL, MEMBERS, ALL_GROUPS = 11, 38, 201
TOPIC = "unread"


@pytest.fixture(scope="module", autouse=True)
def topic(server: Together) -> None:
    takes_messages(server, TOPIC)
    with frames.Connection(server.broker) as connection:
        for _ in range(70):
            connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields(TOPIC), b"y" * 60_000)


def pull(group: str, **more: str) -> dict[str, str]:
    names = ("queueId", "queueOffset", "commitOffset", "suspendTimeoutMillis", "subVersion")
    plain = dict.fromkeys(names, "0") | {"maxMsgNums": "32", "sysFlag": "4", "subscription": "*"}
    return plain | {"consumerGroup": group, "topic": TOPIC, "expressionType": "TAG"} | more


def test_who_waits_for_a_large_answer_has_no_copy_of_the_table(server: Together) -> None:
    """960 requests of 98 bytes held a list of 30,000 groups each."""
    with frames.Connection(server.broker) as connection:
        connection._socket.sendall(b"".join(frame(PULL, pull(f"g{n}"), flag=ONE_WAY) for n in range(30_000)))
        connection.ask(MEMBERS, {"consumerGroup": "nobody"})
    with strangers(server.broker, 60) as connections, grows_at_most(server, 256):
        for stranger in connections:
            stranger.sendall(frame(ALL_GROUPS) * 16)
        answered = select.select(connections, [], [], PATIENCE_SECONDS)[0]
        assert answered, "the first one is made, and all others wait"


def test_the_rest_of_an_answer_does_not_keep_the_whole(server: Together) -> None:
    """Each kept its 4 MiB for some KiB that the socket had not taken: 150 connections 600 MiB, 5 of them charged."""
    asked = frame(PULL, pull("unread", maxMsgNums="32768", bulk="true"))
    with strangers(server.broker, 150) as connections, grows_at_most(server, 256):
        for stranger in connections:
            stranger.sendall(asked)
        waiting = set(connections)
        while waiting:  # each is answered, or closed
            answered = select.select(list(waiting), [], [], PATIENCE_SECONDS)[0]
            assert answered
            waiting -= set(answered)


def test_while_many_answers_wait_to_be_read_readers_get_smaller_ones_and_are_not_closed(
    server: Together,
) -> None:
    """Many tasks that read whole topics at once are honest: they would close each other's connections."""
    fields = pull("unread", maxMsgNums="32768", bulk="true")
    with strangers(server.broker, 100) as connections, frames.Connection(server.broker) as reader:
        assert len(reader.ask(PULL, fields).body) > 3 * MIB
        sizes = []
        for stranger in connections:
            stranger.sendall(frame(PULL, fields) * 3)  # the kernel takes a part of the first
            assert select.select([stranger], [], [], PATIENCE_SECONDS)[0]
            sizes.append(len(reader.ask(PULL, fields).body))
        assert 0 < min(sizes) <= CROWDED_BYTES  # not always: what the kernel takes makes room for a large one
        for stranger in connections:
            assert stranger.recv(1)
