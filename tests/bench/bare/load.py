"""Sends batches and pulls over bare sockets, a process of its own that takes as little of the machine as it can.

What it says was encoded before the watch begins, and of the answers it looks only at what proves that the work was
done.  `python -m tests.bench.bare.load send BROKER TOPIC SECONDS` and `… pull BROKER TOPIC TYPE EXPRESSION` print one
line of JSON: the messages acknowledged or looked at, and the seconds that it took.
"""

import itertools
import json
import selectors
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.peers.frames import SUCCESS, Connection, send_fields

SEND_BATCH, PULL_MESSAGE, GET_MAX_OFFSET = 320, 11, 30
PULL_AGAIN = 20
"""Nothing of what was looked at is wanted; the answer says where to go on."""
QUEUES = 4
IN_FLIGHT = 16
"""Batches of a connection that are not answered yet."""
BATCH = 32
BODY = b"x" * 128
KINDS_OF_BATCH = 64
"""Each has its own ids; then they come again."""
READ_BYTES = 256 * 1024
TOGETHER = 32
"""Messages of one pull, as the Java client asks for."""
SUBSCRIPTION_IN_REQUEST = 4


def main(verb: str, broker: str, topic: str, *words: str) -> None:
    done, seconds = _send(broker, topic, float(words[0])) if verb == "send" else _pull(broker, topic, *words)
    print(json.dumps({"messages": done, "seconds": seconds}))


def _send(broker: str, topic: str, seconds: float) -> tuple[int, float]:
    """For so long; then every batch that is out is waited for, so that what is counted is what is stored."""
    frames = [itertools.cycle(list(_batches(topic, queue))) for queue in range(QUEUES)]
    ways = [_connected(broker) for _ in range(QUEUES)]
    out = [IN_FLIGHT] * QUEUES
    rest = [b""] * QUEUES
    acknowledged = 0
    begin = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for queue, way in enumerate(ways):
            selector.register(way, selectors.EVENT_READ, queue)
            way.sendall(b"".join(itertools.islice(frames[queue], IN_FLIGHT)))
        while any(out):
            for key, _ in selector.select():
                queue = key.data
                answers, rest[queue] = _answers(rest[queue], ways[queue])
                for answer in answers:
                    if b'"code":0,' not in answer:
                        raise SystemExit(f"a batch was refused: {answer!r}")
                acknowledged += len(answers)
                out[queue] -= len(answers)
                if time.perf_counter() < begin + seconds:
                    ways[queue].sendall(b"".join(itertools.islice(frames[queue], len(answers))))
                    out[queue] += len(answers)
    return acknowledged * BATCH, time.perf_counter() - begin


def _pull(broker: str, topic: str, kind: str, expression: str) -> tuple[int, float]:
    """Every queue from its first offset to its last, one pull of each at a time."""
    ways = [_connected(broker) for _ in range(QUEUES)]
    with Connection(broker) as connection:
        places = ({"topic": topic, "queueId": str(queue)} for queue in range(QUEUES))
        ends = [int(connection.ask(GET_MAX_OFFSET, place).fields["offset"]) for place in places]
    rest = [b""] * QUEUES
    received = 0
    begin = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for queue, way in enumerate(ways):
            selector.register(way, selectors.EVENT_READ, queue)
            way.sendall(_pull_request(topic, queue, 0, kind, expression))
        while selector.get_map():
            for key, _ in selector.select():
                queue = key.data
                answers, rest[queue] = _answers(rest[queue], ways[queue])
                for answer in answers:
                    head_end = 4 + (int.from_bytes(answer[:4], "big") & 0xFFFFFF)
                    head = json.loads(answer[4:head_end])
                    if head["code"] not in (SUCCESS, PULL_AGAIN):
                        raise SystemExit(f"a pull was refused: {head}")
                    received += _records(answer, head_end)
                    offset = int(head["extFields"]["nextBeginOffset"])
                    if offset >= ends[queue]:
                        selector.unregister(ways[queue])
                    else:
                        ways[queue].sendall(_pull_request(topic, queue, offset, kind, expression))
    return received, time.perf_counter() - begin


def _answers(before: bytes, way: socket.socket) -> tuple[list[bytes], bytes]:
    """The whole frames that are there, without their lengths, and the beginning of the next one."""
    more = way.recv(READ_BYTES)
    if not more:
        raise SystemExit("the broker closed the connection")
    data = before + more
    found = []
    place = 0
    while len(data) - place >= 4:
        end = place + 4 + int.from_bytes(data[place : place + 4], "big")
        if end > len(data):
            break
        found.append(data[place + 4 : end])
        place = end
    return found, data[place:]


def _records(answer: bytes, place: int) -> int:
    count = 0
    while place < len(answer):
        place += int.from_bytes(answer[place : place + 4], "big")
        count += 1
    return count


def _batches(topic: str, queue: int) -> Iterator[bytes]:
    fields = {**send_fields(topic, queue), "m": "true"}
    for number in range(KINDS_OF_BATCH):
        messages = b"".join(_message(f"{queue:08X}{number:08X}{i:016X}") for i in range(BATCH))
        yield _frame(SEND_BATCH, fields, messages)


def _message(unique: str) -> bytes:
    properties = f"UNIQ_KEY\x01{unique}\x02WAIT\x01true".encode()
    tail = struct.pack(">iiii", 0, 0, 0, len(BODY)) + BODY + struct.pack(">h", len(properties)) + properties
    return struct.pack(">i", 4 + len(tail)) + tail


def _pull_request(topic: str, queue: int, offset: int, kind: str, expression: str) -> bytes:
    fields = {
        "consumerGroup": "bare",
        "topic": topic,
        "queueId": str(queue),
        "queueOffset": str(offset),
        "maxMsgNums": str(TOGETHER),
        "sysFlag": str(SUBSCRIPTION_IN_REQUEST),
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": expression,
        "subVersion": "0",
        "expressionType": kind,
    }
    return _frame(PULL_MESSAGE, fields, b"")


def _frame(code: int, fields: dict[str, str], body: bytes) -> bytes:
    head: dict[str, Any] = {"code": code, "language": "JAVA", "version": 453, "opaque": 1, "flag": 0}
    header = json.dumps({**head, "extFields": fields}).encode()
    return struct.pack(">ii", 4 + len(header) + len(body), len(header)) + header + body


def _connected(broker: str) -> socket.socket:
    host, _, port = broker.rpartition(":")
    way = socket.create_connection((host, int(port)), 60)
    way.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return way


if __name__ == "__main__":
    main(*sys.argv[1:])
