"""What attackers do: frames of any shape, many connections, requests whose answers nobody reads."""

import json
import select
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

ONE_WAY = 2
COMPACT_FORM = 0x01000000


def frame(
    code: int, fields: Mapping[str, str] | None = None, body: bytes = b"", *, flag: int = 0, opaque: int = 1
) -> bytes:
    """A request with a JSON header."""
    header = {"code": code, "language": "JAVA", "version": 453, "opaque": opaque, "flag": flag}
    return framed(json.dumps(header | {"extFields": dict(fields or {})}).encode(), body)


def framed(header: bytes, body: bytes = b"", form: int = 0) -> bytes:
    """A frame with a header of one's own."""
    return struct.pack(">ii", 4 + len(header) + len(body), len(header) | form) + header + body


@contextmanager
def strangers(address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that will be closed at the end, whatever becomes of them."""
    host, _, port = address.rpartition(":")
    with ExitStack() as stack:
        yield [
            stack.enter_context(socket.create_connection((host, int(port)), frames.TIMEOUT_SECONDS))
            for _ in range(count)
        ]


QUIET_SECONDS = 0.5


def pour(connections: Sequence[socket.socket], data: bytes) -> list[int]:
    """Push the same bytes into each connection until none takes any for a moment; gives how many each has taken."""
    taken = dict.fromkeys(connections, 0)
    left = set(connections)
    while left:
        _, writable, _ = select.select([], list(left), [], QUIET_SECONDS)
        if not writable:
            break
        for connection in writable:
            try:
                taken[connection] += connection.send(data[taken[connection] : taken[connection] + 65_536])
            except OSError:  # closed by the server
                left.discard(connection)
            if taken[connection] == len(data):
                left.discard(connection)
    return list(taken.values())


def is_closed(connection: socket.socket) -> bool:
    """Whether the server closes the connection, after whatever it has sent.  Waits for that."""
    try:
        while connection.recv(1 << 20):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def grows_at_most(server: Together, megabytes: int) -> Iterator[None]:
    """The servers' own memory (RssAnon) at the end of the block, against the one at its beginning."""
    before = server.rss_anon_bytes()
    yield
    grown = (server.rss_anon_bytes() - before) / 1e6
    assert grown <= megabytes, f"{grown:.0f} MB more than before"


LAST = 0x7FFF_FFFF


def ask_all(connection: socket.socket, data: bytes) -> list[dict[str, Any]]:
    """Send requests and read meanwhile; what was answered when all of them had been served, headers and bodies.

    Requests of a connection are served in order, so a last one tells.
    """
    answers = receive(connection, data + frame(frames.GET_CLUSTER_INFO, opaque=LAST))
    return [answer for answer in answers if answer["opaque"] != LAST]


def receive(connection: socket.socket, data: bytes = b"", count: int | None = None) -> list[dict[str, Any]]:
    """Send, and read answers meanwhile, until there are so many, or until the last request is answered."""
    connection.setblocking(False)
    received, answers, sent = bytearray(), list[dict[str, Any]](), 0
    while not _is_all(answers, count):
        writers = [connection] if sent < len(data) else []
        readable, writable, _ = select.select([connection], writers, [], frames.TIMEOUT_SECONDS)
        assert readable or writable, f"{len(answers)} answers, and then nothing more"
        if writable:
            sent += connection.send(data[sent : sent + 262_144])
        if readable:
            received += connection.recv(1 << 20) or _closed()
            _cut(received, answers)
    connection.setblocking(True)
    connection.settimeout(frames.TIMEOUT_SECONDS)
    return answers


def _is_all(answers: list[dict[str, Any]], count: int | None) -> bool:
    if count is not None:
        return len(answers) >= count
    return any(answer["opaque"] == LAST for answer in reversed(answers))


def _closed() -> bytes:
    raise ConnectionError("the server has closed the connection")


def _cut(received: bytearray, answers: list[dict[str, Any]]) -> None:
    """Take whole frames from the beginning."""
    at = 0
    while len(received) - at >= 8:
        length, mark = struct.unpack_from(">II", received, at)
        if len(received) - at < 4 + length:
            break
        body_at = at + 8 + (mark & 0xFFFFFF)
        answers.append(
            {"body": bytes(received[body_at : at + 4 + length]), **json.loads(received[at + 8 : body_at])}
        )
        at += 4 + length
    del received[:at]


def takes_messages(server: Together, topic: str) -> None:
    """The topic is there, and written to, when this returns."""
    with frames.Connection(server.broker) as connection:
        wait_until(
            lambda: connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields(topic), b"first").code == 0,
            PATIENCE_SECONDS,
            "the topic takes messages",
        )
