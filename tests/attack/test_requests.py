"""Requests that would cost: long batches, restless groups, names without end.

Each is refused or bounded, keeps little, and leaves others their turn.
"""

import json
import select
import struct
from typing import Any

import pytest

from bolide.model.limit import MIB
from bolide.model.limits import (
    BATCH_MESSAGES_MAX,
    CLIENTS_BYTES_MAX,
    CONNECTION_GROUPS_MAX,
    LOCK_QUEUES_MAX,
    TOPIC_QUEUES_MAX,
    TOPICS_ASKED_MAX,
)
from tests.attack.stage import ONE_WAY, ask_all, frame, grows_at_most, strangers, takes_messages
from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

HEARTBEAT, MEMBERS, LOCK, TOPIC_STATS, PRODUCERS, PROGRESS = 34, 38, 41, 202, 204, 208
NOTICE = 40
ILLEGAL, INVALID = 13, 29
BATCH = 320
TOPIC = "plain"


pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(scope="module", autouse=True)
def topic(server: Together) -> None:
    takes_messages(server, TOPIC)


def heartbeat(
    client_id: str, consumers: list[Any] | None = None, producers: list[str] | None = None
) -> bytes:
    members = {
        "clientID": client_id,
        "consumerDataSet": consumers or [],
        "producerDataSet": [{"groupName": name} for name in producers or []],
    }
    return json.dumps(members).encode()


# ---- sends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [BATCH_MESSAGES_MAX + 1, 182_000])
def test_a_batch_of_ever_so_many_messages_is_refused_whole(server: Together, count: int) -> None:
    """182,000 of them kept everybody waiting for 3.4 seconds."""
    batch = struct.pack(">IIIiIcH", 23, 0, 0, 0, 1, b"x", 0) * count
    with frames.Connection(server.broker) as connection, grows_at_most(server, 40):
        end = frames.readable(server.broker, TOPIC, 4)
        for _ in range(5):
            answer = connection.ask(BATCH, frames.send_fields(TOPIC) | {"m": "true"}, batch)
            assert (answer.code, "send fewer" in answer.remark) == (ILLEGAL, True)
        assert frames.readable(server.broker, TOPIC, 4) == end


@pytest.mark.parametrize("value", ["true", "TRUE", "True"])
@pytest.mark.parametrize("key", ["UNIQ_KEY\x010A\x02", ""], ids=["plain but for that", "no key"])
def test_half_a_transaction_is_not_stored_as_a_message_however_it_is_spelled(
    server: Together, key: str, value: str
) -> None:
    text = f"{key}TRAN_MSG\x01{value}\x02"
    item = struct.pack(">IIIiIcH", 23 + len(text), 0, 0, 0, 1, b"x", len(text)) + text.encode()
    with frames.Connection(server.broker) as connection:
        end = frames.readable(server.broker, TOPIC, 4)
        for fields, body in (
            ({"i": text}, b"x"),
            ({"i": text, "j": "3"}, b"x"),
            ({"i": text, "m": "true"}, item),
            ({"m": "TRUE"}, item),
        ):
            answer = connection.ask(BATCH, frames.send_fields(TOPIC) | fields, body)
            assert (answer.code, "transactional" in answer.remark) == (ILLEGAL, True)
        assert frames.readable(server.broker, TOPIC, 4) == end


def test_a_message_to_each_of_many_wide_topics_makes_one_queue_each(server: Together) -> None:
    """The first one made an object for every queue of its topic."""
    with frames.Connection(server.broker) as connection, grows_at_most(server, 25):
        for number in range(20):
            frames.set_topic(server.broker, f"wide{number}", TOPIC_QUEUES_MAX, TOPIC_QUEUES_MAX)
        for number in range(20):
            fields = frames.send_fields(f"wide{number}", queue=number) | {"i": "UNIQ_KEY\x010A\x02"}
            assert connection.ask(frames.SEND_MESSAGE_V2, fields, b"x").code == 0


# ---- clients ----------------------------------------------------------------------------------------------------


def test_a_restless_group_costs_few_notices(server: Together) -> None:
    """800 heartbeats that changed a group of 300 kept everybody waiting for 5 seconds."""
    count, changes = 300, 800
    group = [{"groupName": "restless", "subscriptionDataSet": []}]
    with strangers(server.broker, count) as members:
        for number, member in enumerate(members):
            (answer,) = [
                one
                for one in ask_all(member, frame(HEARTBEAT, body=heartbeat(f"{number}", group)))
                if one["flag"] & 1
            ]
            assert answer["code"] == 0
        changing = b"".join(
            frame(HEARTBEAT, body=heartbeat(f"x{number}", group), opaque=number) for number in range(changes)
        )
        answers = [one for one in ask_all(members[0], changing) if one["flag"] & 1]
        assert len(answers) == changes
        told = sum(one["code"] == NOTICE for member in members for one in ask_all(member, b""))
        assert 0 < told < count * changes / 10


def test_producer_groups_of_a_connection_are_bounded_and_gone_with_it(server: Together) -> None:
    """400,000 of them took two seconds and hundreds of megabytes."""
    with frames.Connection(server.broker) as other:
        with strangers(server.broker, 1) as (connection,), grows_at_most(server, 20):
            for first in range(0, 100 * CONNECTION_GROUPS_MAX, CONNECTION_GROUPS_MAX):
                names = [
                    f"producers of a long name {first + number}" for number in range(CONNECTION_GROUPS_MAX)
                ]
                connection.sendall(frame(HEARTBEAT, body=heartbeat("c", producers=names), flag=ONE_WAY))
            assert ask_all(connection, b"") == []
            assert other.ask(PRODUCERS, {"producerGroup": "producers of a long name 0"}).code == 0
            late = f"producers of a long name {CONNECTION_GROUPS_MAX}"
            assert other.ask(PRODUCERS, {"producerGroup": late}).code != 0
        gone = {"producerGroup": "producers of a long name 0"}
        wait_until(lambda: other.ask(PRODUCERS, gone).code != 0, PATIENCE_SECONDS, "it is forgotten")


def test_what_clients_subscribe_to_takes_a_bounded_number_of_bytes(server: Together) -> None:
    """19 MiB of heartbeats became 407 MiB.  Here a hundred come, each with eight thousand tags of its own."""
    with strangers(server.broker, 100) as many, grows_at_most(server, CLIENTS_BYTES_MAX // 1_000_000 + 60):
        for number, connection in enumerate(many):
            tags = [f"a tag of some length {tag}" for tag in range(8_000)]
            subscriptions = [
                {"topic": f"t{at}", "subString": "*", "tagsSet": tags[at : at + 1000], "subVersion": number}
                for at in range(0, 8_000, 1000)
            ]
            consumer = {"groupName": f"g{number}", "subscriptionDataSet": subscriptions}
            answers = ask_all(connection, frame(HEARTBEAT, body=heartbeat(f"c{number}", [consumer])))
            assert [one["code"] for one in answers if one["flag"] & 1] == [0]
        with frames.Connection(server.broker) as honest:
            body = heartbeat("honest", [{"groupName": "honest", "subscriptionDataSet": [{"topic": TOPIC}]}])
            honest.ask(HEARTBEAT, body=body)
            wait_until(
                lambda: b'"honest"' in honest.ask(MEMBERS, {"consumerGroup": "honest"}).body,
                PATIENCE_SECONDS,
                "who has little finds room",
            )


@pytest.mark.parametrize("what", ["clientID", "groupName", "producer"])
def test_names_without_end_are_refused(server: Together, what: str) -> None:
    name = "x" * 256
    body = {
        "clientID": heartbeat(name),
        "groupName": heartbeat("c", [{"groupName": name}]),
        "producer": heartbeat("c", producers=[name]),
    }[what]
    with frames.Connection(server.broker) as connection:
        assert connection.ask(HEARTBEAT, body=body).code == INVALID


# ---- locks and questions ----------------------------------------------------------------------------------------


def test_locks_keep_no_long_names_and_no_long_lists(server: Together) -> None:
    queue = {"topic": TOPIC, "brokerName": "b" * 255, "queueId": 0}
    bodies = [
        {"consumerGroup": "g", "clientId": "c" * (14 * MIB), "mqSet": [queue]},
        {"consumerGroup": "g", "clientId": "c" * 256, "mqSet": [queue]},
        {"consumerGroup": "g", "clientId": "c", "mqSet": [{"topic": TOPIC}] * (LOCK_QUEUES_MAX + 1)},
        {"consumerGroup": "g", "clientId": "c", "mqSet": [{}] * 250_000},
    ]
    with frames.Connection(server.broker) as connection, grows_at_most(server, 60):
        for body in bodies:
            answer = connection.ask(LOCK, body=json.dumps(body).encode())
            assert (answer.code, answer.body) == (INVALID, b"")


def test_a_question_names_a_bounded_number_of_topics(server: Together) -> None:
    """Eleven megabytes of names that nobody knew took 2.3 seconds."""
    with frames.Connection(server.broker) as connection:
        asked = {"consumerGroup": "g", "topicList": "x;" * (TOPICS_ASKED_MAX + 1)}
        assert connection.ask(PROGRESS, asked).code == INVALID
        asked["topicList"] = ";".join(f"x{number}" for number in range(TOPICS_ASKED_MAX))
        assert connection.ask(PROGRESS, asked).code == 0


def test_who_asks_for_large_answers_leaves_others_their_turns(
    server: Together, bystander: frames.Connection
) -> None:
    """Twenty answers about all queues of the widest topic kept everybody waiting for 4 seconds.

    Here somebody else is answered many times while ten are made, not once at their end.
    """
    frames.set_topic(server.broker, "wide", TOPIC_QUEUES_MAX, TOPIC_QUEUES_MAX)
    with strangers(server.broker, 1) as (connection,):
        connection.sendall(b"".join(frame(TOPIC_STATS, {"topic": "wide"}, opaque=one) for one in range(10)))
        received = bytearray()
        made = sent = 0
        while made < 10:
            assert bystander.ask(frames.SEND_MESSAGE_V2, frames.send_fields("beside"), b"x").code == 0
            sent += 1
            while select.select([connection], [], [], 0)[0]:  # it reads what it gets
                received += connection.recv(1 << 20)
            while len(received) >= 4 and len(received) >= (size := 4 + int.from_bytes(received[:4], "big")):
                del received[:size]
                made += 1
        assert sent >= 20
