"""ThreadLink: a connection that its user waits on, in the thread that wants the answer.

One call at a time, and no event loop: handing a call to another thread and its answer back costs more than the call.
Whoever has one sees that one thread uses it at a time; `wake` alone may be called by another.
"""

import contextlib
import socket

from bolide.model.addresses import parse_address
from bolide.model.clock import Clock
from bolide.model.errors import CallTimeout, ConnectionLost
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.wire.command import Command, encode_frame
from bolide.wire.frame import FrameReader, Intake

INTAKE_BYTES = 16 * 1024
"""Most answers are much shorter, and longer ones get memory of their own."""

_OPAQUE_MASK = 0x7FFF_FFFF


class ThreadLink:
    """A connection to `address`, made at once.  After an error it is only good to be closed."""

    def __init__(self, address: str, clock: Clock, timeout_ms: int) -> None:
        self._address = address
        self._clock = clock
        self._timeout_ms = timeout_ms
        try:
            self._socket = socket.create_connection(parse_address(address), timeout_ms / 1000)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {address}: {error.strerror or error}") from error
        self._reader = FrameReader(Intake(INTAKE_BYTES), header_bytes_max=FRAME_BYTES_MAX)
        self._number = 0
        self.is_clean = True
        """Whether no request is half sent, or without its answer."""

        self.used_ms = clock.monotonic_ms()

    def call(self, request: Command, timeout_ms: int) -> Command:
        """The answer, whatever its code; `CallTimeout` or `ConnectionLost` when there is none."""
        self._number += 1
        request.opaque = self._number & _OPAQUE_MASK
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self.is_clean = False
        try:
            self._wait_at_most(timeout_ms)
            self._socket.sendall(encode_frame(request))
            while True:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    raise TimeoutError
                self._wait_at_most(left_ms)
                if (answer := self._received(request.opaque)) is not None:
                    self.used_ms = self._clock.monotonic_ms()
                    self.is_clean = True
                    return answer
        except TimeoutError:
            raise CallTimeout(f"no answer from {self._address} within {timeout_ms} ms") from None
        except OSError as error:
            raise ConnectionLost(f"the connection to {self._address} was lost") from error

    def _received(self, opaque: int) -> Command | None:
        """The answer, if what comes next has it; nobody here serves what a server may ask by itself."""
        reader = self._reader
        count = self._socket.recv_into(reader.writable())
        if not count:
            raise ConnectionResetError
        reader.received(count)
        answer: Command | None = None
        while (item := reader.next()) is not None:  # all of it: what is not taken is lost
            if type(item) is Command and item.opaque == opaque and item.is_response:
                answer = item
        return answer

    def _wait_at_most(self, timeout_ms: int) -> None:
        if timeout_ms != self._timeout_ms:  # it seldom is, and to set it is a call of the system
            self._timeout_ms = timeout_ms
            self._socket.settimeout(timeout_ms / 1000)

    def wake(self) -> None:
        """Whoever waits for an answer learns that there will be none."""
        with contextlib.suppress(OSError):  # it was closed meanwhile, or by the other side
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._socket.close()
