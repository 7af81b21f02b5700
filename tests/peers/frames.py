"""A bare-socket client of the frame protocol: the few requests that a probe needs, written apart from bolide.

It is the fastest honest witness of "serves now", needs no JVM, and shares no code with what it checks.
"""

import json
import socket
import struct
import time
from typing import Any, NamedTuple

SEND_MESSAGE_V2 = 310
QUERY_CONSUMER_OFFSET = 14
UPDATE_AND_CREATE_TOPIC = 17
GET_MAX_OFFSET = 30
GET_ROUTE = 105
GET_CLUSTER_INFO = 106
SUCCESS = 0
TIMEOUT_SECONDS = 60.0
PROBE_SECONDS = 5.0  # a probe without an answer is made again
TEMPLATE_TOPIC = "TBW102"


class Answer(NamedTuple):
    code: int
    remark: str
    fields: dict[str, str]
    body: bytes


class Connection:
    """One blocking connection that asks one thing at a time."""

    def __init__(self, address: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opaque = 0

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def ask(self, code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> Answer:
        self._opaque += 1
        header = json.dumps(
            {
                "code": code,
                "language": "PYTHON",
                "version": 453,
                "opaque": self._opaque,
                "flag": 0,
                "extFields": fields or {},
            }
        ).encode()
        length = 4 + len(header) + len(body)
        self._socket.sendall(struct.pack(">ii", length, len(header)) + header + body)
        return self._read_answer()

    def _read_answer(self) -> Answer:
        (length,) = struct.unpack(">i", self._read(4))
        frame = self._read(length)
        header_end = 4 + (int.from_bytes(frame[:4], "big") & 0xFFFFFF)
        header: dict[str, Any] = json.loads(frame[4:header_end])
        return Answer(
            header["code"],
            header.get("remark") or "",
            header.get("extFields") or {},
            frame[header_end:],
        )

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the peer closed the connection")
            parts += part
        return bytes(parts)


def send_fields(topic: str, queue: int = 0, queues: int = 4) -> dict[str, str]:
    """The header of one plain SEND_MESSAGE_V2, which may create its topic from the template."""
    now_ms = time.time_ns() // 1_000_000  # noqa: TID251 - a born time on the wire is wall-clock time
    return {
        "a": "probe",
        "b": topic,
        "c": TEMPLATE_TOPIC,
        "d": str(queues),
        "e": str(queue),
        "f": "0",
        "g": str(now_ms),
        "h": "0",
        "i": "",
        "j": "0",
        "k": "false",
        "m": "false",
    }


def answers(address: str) -> bool:
    """Whether a name server or broker at this address answers any request at all."""
    try:
        with Connection(address, PROBE_SECONDS) as connection:
            connection.ask(GET_CLUSTER_INFO)
        return True
    except OSError:
        return False


def knows_broker(nameserver: str, broker_name: str) -> bool:
    """Whether the name server has this broker in its cluster table and a route for the template topic."""
    try:
        with Connection(nameserver, PROBE_SECONDS) as connection:
            clusters = connection.ask(GET_CLUSTER_INFO)
            return clusters.code == SUCCESS and f'"{broker_name}"'.encode() in clusters.body
    except OSError:
        return False


def readable(broker: str, topic: str, queues: int) -> int:
    """How many messages of a topic readers can see; the original shows one a moment after it has acknowledged it."""
    with Connection(broker) as connection:
        places = ({"topic": topic, "queueId": str(queue)} for queue in range(queues))
        return sum(int(connection.ask(GET_MAX_OFFSET, place).fields.get("offset", 0)) for place in places)


def set_topic(broker: str, topic: str, read: int, write: int) -> None:
    """Create a topic on one broker, or change its numbers of queues."""
    fields = {
        "topic": topic,
        "defaultTopic": TEMPLATE_TOPIC,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": "0",
    }
    fields |= {"readQueueNums": str(read), "writeQueueNums": str(write), "perm": "6", "order": "false"}
    with Connection(broker) as connection:
        answer = connection.ask(UPDATE_AND_CREATE_TOPIC, fields)
    assert answer.code == SUCCESS, answer.remark


def committed(broker: str, topic: str, group: str, queues: int) -> list[int]:
    """Per queue the offset that a broker keeps for a group; -1 where it keeps none."""
    with Connection(broker) as connection:
        places = [{"consumerGroup": group, "topic": topic, "queueId": str(queue)} for queue in range(queues)]
        answers = [connection.ask(QUERY_CONSUMER_OFFSET, place) for place in places]
    return [int(answer.fields["offset"]) if answer.code == SUCCESS else -1 for answer in answers]


def try_send(nameserver: str, broker: str, topic: str) -> bool:
    """What a first producer does, once: ask for the template's route, then send; true when acknowledged."""
    try:
        with Connection(nameserver, PROBE_SECONDS) as names:
            if names.ask(GET_ROUTE, {"topic": TEMPLATE_TOPIC}).code != SUCCESS:
                return False
        with Connection(broker, PROBE_SECONDS) as connection:
            return connection.ask(SEND_MESSAGE_V2, send_fields(topic), b"x" * 128).code == SUCCESS
    except OSError:
        return False
