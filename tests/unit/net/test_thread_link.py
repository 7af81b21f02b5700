"""A connection that the thread waits on which wants the answer, against a server that answers byte by byte as told."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from bolide.model.errors import CallTimeout, ConnectionLost, ProtocolError
from bolide.net.clock import SystemClock
from bolide.net.thread_link import INTAKE_BYTES, ThreadLink
from bolide.wire.command import FLAG_RESPONSE, Command, encode_frame
from bolide.wire.frame import FrameReader, Intake

LONG_MS = 60_000
Serve = Callable[[socket.socket, Command], None]


@contextmanager
def linked(serve: Serve) -> Iterator[ThreadLink]:
    """A link to a server that hands each request to `serve`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_run, args=(listener, serve), daemon=True)
        thread.start()
        with closing(ThreadLink(f"127.0.0.1:{listener.getsockname()[1]}", SystemClock(), LONG_MS)) as link:
            yield link
        thread.join(30)
        assert not thread.is_alive()


def _run(listener: socket.socket, serve: Serve) -> None:
    connection, _ = listener.accept()
    reader = FrameReader(Intake())
    with connection, suppress(ConnectionResetError):  # a link that gives up leaves answers unread
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(1 << 16):
            for request in reader.feed(data):
                serve(connection, request)


def answer_to(request: Command, body: bytes = b"") -> bytes:
    return encode_frame(request.answer(body=body or request.body))


def test_an_answer_that_comes_byte_by_byte_is_put_together() -> None:
    def serve(connection: socket.socket, request: Command) -> None:
        for byte in answer_to(request):
            connection.sendall(bytes((byte,)))

    with linked(serve) as link:
        for body in (b"one", b"two"):
            assert link.call(Command(1, body=body), LONG_MS).body == body


def test_an_answer_may_be_larger_than_what_is_received_at_once() -> None:
    large = bytes(3 * INTAKE_BYTES)
    with linked(lambda connection, request: connection.sendall(answer_to(request, large))) as link:
        for _ in range(2):
            assert link.call(Command(1, body=b"?"), LONG_MS).body == large


def test_what_is_not_the_answer_is_passed_over_before_it_and_behind_it() -> None:
    begun = b""

    def serve(connection: socket.socket, request: Command) -> None:
        nonlocal begun
        asked = encode_frame(Command(40, opaque=request.opaque))
        late = encode_frame(Command(0, body=b"late", opaque=request.opaque - 1, flag=FLAG_RESPONSE))
        connection.sendall(begun + asked + late + answer_to(request) + late + asked[:-9])
        begun = asked[-9:]

    with linked(serve) as link:
        for body in (b"one", b"two"):
            assert link.call(Command(1, body=body), LONG_MS).body == body


def test_bytes_that_come_all_the_time_do_not_move_the_deadline() -> None:
    stop = threading.Event()

    def serve(connection: socket.socket, request: Command) -> None:
        while not stop.wait(0.001):
            connection.sendall(encode_frame(Command(40)))

    with linked(serve) as link:
        try:
            with pytest.raises(CallTimeout, match=r"^no answer from 127\.0\.0\.1:\d+ within 50 ms$"):
                link.call(Command(1), 50)
        finally:
            stop.set()


def test_an_end_in_the_middle_of_an_answer_is_a_lost_connection() -> None:
    def serve(connection: socket.socket, request: Command) -> None:
        connection.sendall(answer_to(request)[:-1])
        connection.shutdown(socket.SHUT_RDWR)

    with linked(serve) as link, pytest.raises(ConnectionLost, match=r"^the connection to .* was lost$"):
        link.call(Command(1, body=b"x"), LONG_MS)


def test_what_is_no_frame_is_an_error_of_the_protocol() -> None:
    with (
        linked(lambda connection, request: connection.sendall(b"HTTP/1.1 400")) as link,
        pytest.raises(ProtocolError),
    ):
        link.call(Command(1), LONG_MS)


def test_another_thread_may_end_a_wait() -> None:
    came = threading.Event()
    with linked(lambda connection, request: came.set()) as link:

        def wake() -> None:
            came.wait(30)
            link.wake()

        waker = threading.Thread(target=wake)
        waker.start()
        with pytest.raises(ConnectionLost):
            link.call(Command(1), LONG_MS)
        waker.join()


def test_nobody_there_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionLost, match=f"cannot connect to 127.0.0.1:{port}: Connection refused"):
        ThreadLink(f"127.0.0.1:{port}", SystemClock(), LONG_MS)
