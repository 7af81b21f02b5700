"""What attackers do: frames of any shape, many connections, requests whose answers nobody reads."""

import json
import select
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tests.peers import frames
from tests.peers.server import Together

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
