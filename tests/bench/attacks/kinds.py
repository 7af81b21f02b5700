"""The attacks: what fifty connections send, over and over, while honest senders go on.

Each is a request, or a state to be kept, that once cost somebody else seconds or the server its memory.  The same
bytes go to both sides.
"""

import itertools
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.attack.stage import COMPACT_FORM, ONE_WAY, frame, framed

SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, PULL_MESSAGE, HEART_BEAT, LOCK_BATCH_MQ = 310, 320, 11, 34, 41
GET_TOPIC_STATS_INFO, GET_ALL_TOPIC_CONFIG, REGISTER_BROKER = 202, 21, 103
MEBIBYTE = 1024 * 1024
VERSION_OF_TABLE = {"counter": 1, "stateVersion": 0, "timestamp": 1}

WIDE_TOPIC, WIDE_QUEUES = "attacked-wide", 16_384
"""Made before the attacks, never written to."""

PAUSE = b""
"""An attacker that yields this has said all it wants to say, and stays."""

Says = Callable[["Attacker"], Iterator[bytes]]


@dataclass(frozen=True)
class Attacker:
    """One of the fifty: its number, and the topic that honest senders use meanwhile."""

    number: int
    topic: str

    @property
    def name(self) -> str:
        return f"stranger-{self.number}"


@dataclass(frozen=True)
class Attack:
    title: str
    says: Says
    at_nameserver: bool = False
    reads: bool = True


def _again(data: bytes) -> Iterator[bytes]:
    return itertools.repeat(data)


# ---- time: requests that are dear to serve ---------------------------------------------------------------------


def _stats_one_way(who: Attacker) -> Iterator[bytes]:
    return _again(frame(GET_TOPIC_STATS_INFO, {"topic": who.topic}, flag=ONE_WAY) * 500)


def _stats_of_a_wide_topic(who: Attacker) -> Iterator[bytes]:
    return _again(frame(GET_TOPIC_STATS_INFO, {"topic": WIDE_TOPIC}) * 20)


def _empty_fields(who: Attacker) -> Iterator[bytes]:
    return _again(_frame_of_empty_fields())


@cache
def _frame_of_empty_fields() -> bytes:
    fields = bytes(6) * 2_700_000  # a name of no bytes, a value of no bytes
    header = struct.pack(">hBhiii", PULL_MESSAGE, 0, 453, 1, 0, 0) + struct.pack(">i", len(fields)) + fields
    return framed(header, form=COMPACT_FORM)


def _dialect(who: Attacker) -> Iterator[bytes]:
    """A body in the JSON of Java's own library: keys without quotation marks."""
    return _again(_frame_of_dialect())


@cache
def _frame_of_dialect() -> bytes:
    return frame(LOCK_BATCH_MQ, {}, b"{consumerGroup:'g',mqSet:[" + b"{a:1}," * 170_000 + b"]}")


def _tiny_messages(who: Attacker) -> Iterator[bytes]:
    return _again(_frame_of_tiny_messages(who.topic))


@cache
def _frame_of_tiny_messages(topic: str) -> bytes:
    one = struct.pack(">iiiiib", 23, 0, 0, 0, 1, 0x78) + struct.pack(">h", 0)
    return frame(SEND_BATCH_MESSAGE, _send_fields(topic) | {"m": "true"}, one * 182_000)


def _changing_heartbeats(who: Attacker) -> Iterator[bytes]:
    """A large group whose members come and go, so that everybody must be told of everybody."""
    for round_ in itertools.count():
        beat = _heartbeat(who.name, consumers=[_consumer("attacked-group", f"topic-{round_ % 2}")])
        yield b"".join(frame(HEART_BEAT, {}, beat) for _ in range(16))


# ---- memory: things to be kept ---------------------------------------------------------------------------------


def _unfinished_frames(who: Attacker) -> Iterator[bytes]:
    header = json.dumps({"code": PULL_MESSAGE, "extFields": {}}).encode()
    yield struct.pack(">ii", 15 * MEBIBYTE, len(header)) + header + bytes(15 * MEBIBYTE - MEBIBYTE)
    yield PAUSE


def _held_with_remarks(who: Attacker) -> Iterator[bytes]:
    header = json.dumps(
        {"code": PULL_MESSAGE, "opaque": 1, "flag": 0, "remark": "r" * (15 * MEBIBYTE)}
        | {"extFields": _pull_fields(who, WIDE_TOPIC, 0)}
    ).encode()
    yield framed(header)
    yield PAUSE


def _producer_groups(who: Attacker) -> Iterator[bytes]:
    for first in itertools.count(0, 4_000):
        groups = [{"groupName": f"{who.name}-{number}"} for number in range(first, first + 4_000)]
        yield frame(HEART_BEAT, {}, _heartbeat(f"{who.name}@{first}", producers=groups))


def _long_client_ids(who: Attacker) -> Iterator[bytes]:
    for number in itertools.count():
        queue = {"topic": who.topic, "brokerName": "broker-a", "queueId": number}
        body = {"consumerGroup": f"g-{number}", "clientId": f"{number}" + "i" * MEBIBYTE, "mqSet": [queue]}
        yield frame(LOCK_BATCH_MQ, {}, json.dumps(body).encode())


def _unread_answers(who: Attacker) -> Iterator[bytes]:
    return _again(frame(GET_ALL_TOPIC_CONFIG) * 8 + frame(GET_TOPIC_STATS_INFO, {"topic": WIDE_TOPIC}) * 8)


def _signed_pulls(who: Attacker) -> Iterator[bytes]:
    """Pulls of an empty queue that ask not to be held; each has a signature, and so a shape of its own."""
    chance = random.Random(who.number)
    while True:
        yield b"".join(
            frame(
                PULL_MESSAGE,
                _pull_fields(who, WIDE_TOPIC, 0, held=False)
                | {"AccessKey": "k", "Signature": f"{chance.getrandbits(160):040x}"},
            )
            for _ in range(64)
        )


# ---- fair shares -----------------------------------------------------------------------------------------------


def _held_pulls(who: Attacker) -> Iterator[bytes]:
    """Two thousand pulls each at the end of the queues that are written to, for tags that nobody sends."""
    for number in range(2_000):
        fields = _pull_fields(who, who.topic, number % 4) | {
            "queueOffset": str(2**40),
            "subscription": f"t{number}",
        }
        yield frame(PULL_MESSAGE, fields, opaque=number)
    yield PAUSE


def _strange_brokers(who: Attacker) -> Iterator[bytes]:
    """Registrations of brokers that do not exist, with as many topics as fit."""
    for number in itertools.count():
        topics = {f"strange-{who.number}-{number}-{topic}": _topic(topic) for topic in range(2_000)}
        yield _registration(f"strange-{who.number}-{number % 50}", topics)


def _packed_registration(who: Attacker) -> Iterator[bytes]:
    """Small on the wire, large when unpacked."""
    return _again(_registration(f"packed-{who.number}", _many_topics()))


@cache
def _many_topics() -> bytes:
    """Blocks, each behind its length: the version, how many topics, a line for each, filter servers, no mappings."""
    lines = [f"packed-{topic} 8 8 6 SINGLE_TAG {'[' * 400}".encode() for topic in range(20_000)]
    blocks = b"".join(struct.pack(">i", len(line)) + line for line in lines)
    version = json.dumps(VERSION_OF_TABLE).encode()
    head = struct.pack(">i", len(version)) + version + struct.pack(">i", len(lines))
    return zlib.compress(head + blocks + struct.pack(">i2si", 2, b"[]", 0))


ATTACKS: dict[str, Attack] = {
    "stats": Attack("one-way 202, 500 at once", _stats_one_way),
    "wide": Attack("202 on 16,384 queues", _stats_of_a_wide_topic),
    "fields": Attack("headers of 2.7 million empty fields", _empty_fields),
    "dialect": Attack("1 MiB of Java's JSON", _dialect),
    "tiny": Attack("batches of 182,000 messages", _tiny_messages),
    "beats": Attack("changing heartbeats of one group", _changing_heartbeats),
    "unfinished": Attack("frames of 15 MiB that do not end", _unfinished_frames),
    "remarks": Attack("held pulls with remarks of 15 MiB", _held_with_remarks),
    "producers": Attack("producer groups without end", _producer_groups),
    "locks": Attack("locks with client ids of 1 MiB", _long_client_ids),
    "unread": Attack("large answers that nobody reads", _unread_answers, reads=False),
    "signed": Attack("signed pulls", _signed_pulls),
    "held": Attack("100,000 held pulls for other tags", _held_pulls),
    "brokers": Attack("registrations of strange brokers", _strange_brokers, at_nameserver=True),
    "packed": Attack("packed registrations", _packed_registration, at_nameserver=True),
}


# ---- pieces ----------------------------------------------------------------------------------------------------


def _send_fields(topic: str) -> dict[str, str]:
    return {
        **{"a": "strangers", "b": topic, "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "0", "h": "0"},
        **{"i": "", "j": "0", "k": "false", "m": "false"},
    }


def _pull_fields(who: Attacker, topic: str, queue: int, *, held: bool = True) -> dict[str, str]:
    return {
        **{"consumerGroup": "strangers", "topic": topic, "queueId": str(queue), "queueOffset": "0"},
        **{"maxMsgNums": "32", "sysFlag": "6" if held else "4", "commitOffset": "0", "subVersion": "0"},
        **{"suspendTimeoutMillis": "20000", "subscription": "*", "expressionType": "TAG"},
    }


def _heartbeat(client: str, **members: list[dict[str, Any]]) -> bytes:
    body = {"clientID": client, "producerDataSet": members.get("producers", [])}
    return json.dumps(body | {"consumerDataSet": members.get("consumers", [])}).encode()


def _consumer(group: str, topic: str) -> dict[str, Any]:
    subscription = {"topic": topic, "subString": "*", "subVersion": 1, "expressionType": "TAG"}
    return {
        **{"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING"},
        **{"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "subscriptionDataSet": [subscription]},
    }


def _topic(number: int) -> dict[str, Any]:
    return {"topicName": f"t-{number}", "readQueueNums": 8, "writeQueueNums": 8, "perm": 6, "topicSysFlag": 0}


def _registration(broker: str, topics: dict[str, Any] | bytes) -> bytes:
    """With a table of topics as JSON, or packed already."""
    fields = {
        **{"brokerName": broker, "brokerAddr": "127.0.0.1:1", "clusterName": "strange", "brokerId": "0"},
        **{"haServerAddr": "", "compressed": "true" if isinstance(topics, bytes) else "false"},
    }
    if isinstance(topics, bytes):
        return frame(REGISTER_BROKER, fields, topics)
    topics = {name: config | {"topicName": name} for name, config in topics.items()}
    table = {"dataVersion": VERSION_OF_TABLE, "topicConfigTable": topics}
    body = json.dumps({"topicConfigSerializeWrapper": table, "filterServerList": []}).encode()
    return frame(REGISTER_BROKER, fields, body)
