"""One connection as its two ends and the kernels between them see it.

Each direction is a `Pipe`: bytes wait in the sender's kernel, one segment at a time is on its way, and it arrives cut
anywhere.  Order is kept; only time passes.  Where the way is cut, the segment is sent again after growing pauses, as
TCP does, and after a quarter of an hour the sender is told.  What a kernel has taken over goes out although its
process is dead; what was still in the process's own buffer does not.
"""

import asyncio
import contextvars
import errno
import os
from typing import TYPE_CHECKING, Any

from tests.simulation.process import Process

if TYPE_CHECKING:
    from tests.simulation.network import Network

KERNEL_BYTES = 64 * 1024
"""What a kernel keeps for a connection, on the way out and on the way in."""

SEND_AGAIN_S = 0.2
SEND_AGAIN_S_MAX = 120.0
SEND_AGAIN_TIMES = 15
"""Doubled each time: together the quarter of an hour of Linux (tcp_retries2)."""

Place = tuple[str, int]
"""Address and port."""


class Pipe:
    """One direction of a connection."""

    def __init__(self, network: "Network", sender: "SimTransport", receiver: "SimTransport") -> None:
        self._network = network
        self._sender = sender
        self._receiver = receiver
        self._segment: bytes | None = None  # b"" is the end of the stream
        self._tries = 0
        self._ends = False
        self._broken = False
        self.is_forgotten = False
        """Whether somebody on the way drops everything."""
        self.unsent = bytearray()

    def push(self, data: bytes | memoryview) -> None:
        self.unsent += data
        self._pump()

    def end(self) -> None:
        """Nothing follows what was pushed."""
        self._ends = True
        self._pump()

    def cut_off(self) -> None:
        """Nothing goes out any more, not even what is on its way."""
        self._broken = True
        self._segment = None
        self.unsent.clear()

    def go_on(self) -> None:
        """The receiver has room again."""
        if self._segment is not None and self._tries < 0:
            self._tries = 0
            self._network.after(self._delay(), self._arrive)

    def _pump(self) -> None:
        if self._segment is not None or self._broken:
            return
        if self.unsent:
            count = self._network.segment_bytes(len(self.unsent))
            self._segment = bytes(self.unsent[:count])
            del self.unsent[:count]
        elif self._ends:
            self._segment = b""
            self._broken = True  # nothing comes after the end
        else:
            return
        self._tries = 0
        self._network.after(self._delay(), self._arrive)
        self._sender.drained()

    def _delay(self) -> float:
        return self._network.delay(self._sender.local[0], self._receiver.local[0], len(self._segment or b""))

    def _arrive(self) -> None:
        segment, receiver = self._segment, self._receiver
        if segment is None:
            return
        if self.is_forgotten or not self._network.passes(self._sender.local[0], receiver.local[0]):
            self._send_again()
        elif receiver.is_gone:
            self._network.refuse(receiver, self._sender)
            self._send_again()  # that word may be lost
        elif len(receiver.incoming) >= KERNEL_BYTES:
            self._tries = -1  # until there is room
        else:
            self._segment = None
            receiver.arrived(segment)
            self._pump()

    def _send_again(self) -> None:
        self._tries += 1
        if self._tries > SEND_AGAIN_TIMES:
            self._segment = None
            self._sender.fail(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
            return
        pause = min(SEND_AGAIN_S * 2 ** (self._tries - 1), SEND_AGAIN_S_MAX)
        self._network.after(pause, self._arrive)


class SimSocket:
    """What `get_extra_info("socket")` gives."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def fileno(self) -> int:
        return 8  # there are always enough

    def getsockname(self) -> Place:
        return self._place


class SimTransport(asyncio.Transport):
    """One end of a connection, in the hands of the process that has it."""

    def __init__(self, network: "Network", process: Process, local: Place, remote: Place) -> None:
        super().__init__()
        self._network = network
        self._loop = network.loop
        self._context: contextvars.Context = process.context.copy()
        self._protocol: asyncio.BufferedProtocol | None = None
        self._reading = True
        self._looking = False
        self._ended = False
        self._closing = False
        self._lost = False
        self._paused = False
        self._high, self._low = KERNEL_BYTES, KERNEL_BYTES // 4
        self.process = process
        self.local, self.remote = local, remote
        self.incoming = bytearray()
        self.is_gone = False
        """Whether the kernel has forgotten this end: what arrives for it is refused."""
        self.out: Pipe
        self.back: Pipe

    def __str__(self) -> str:
        return f"{self.process}:{self.local[1]}>{self.remote[0]}:{self.remote[1]}"

    # ---- the process's side --------------------------------------------------------------------------------

    def begin(self, protocol: Any) -> None:
        self._protocol = protocol
        protocol.connection_made(self)
        self._look_soon()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        known = {"peername": self.remote, "sockname": self.local, "socket": SimSocket(self.local)}
        return known.get(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = KERNEL_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return max(0, len(self.out.unsent) - KERNEL_BYTES)

    def write(self, data: Any) -> None:
        if self._closing:
            return
        self.out.push(data)
        if not self._paused and self.get_write_buffer_size() > self._high:
            self._paused = True
            assert self._protocol is not None
            self._protocol.pause_writing()

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._look_soon()

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._network.trace.note(f"close {self}")
        self._close_when_flushed()

    def abort(self) -> None:
        if not self.is_gone:
            self._network.trace.note(f"abort {self}")
            self.out.cut_off()
            self.is_gone = True
            self._network.refuse(self, self.peer)
            self._lose(None)

    # ---- the kernel's side ---------------------------------------------------------------------------------

    @property
    def peer(self) -> "SimTransport":
        return self.back._sender

    def arrived(self, segment: bytes) -> None:
        """Bytes, or the end of the stream."""
        if not segment:
            self._ended = True
        self.incoming += segment
        self._look_soon()

    def drained(self) -> None:
        """The network has taken something."""
        if self._paused and self.get_write_buffer_size() <= self._low:
            self._paused = False
            self._loop.call_soon(self._resume, context=self._context)
        if self._closing and not self.is_gone:
            self._close_when_flushed()

    def fail(self, error: OSError) -> None:
        """The connection is broken, and this end learns of it."""
        self.out.cut_off()
        if not self.is_gone:
            self._network.trace.note(f"broken {self}: {error.strerror}")
            self.is_gone = True
            self._lose(error)

    def orphan(self, *, reset: bool) -> None:
        """The process has died: the kernel closes for it."""
        if self.is_gone:
            return
        self.is_gone = True
        if reset:
            self.out.cut_off()
            self._network.refuse(self, self.peer)
        else:
            del self.out.unsent[KERNEL_BYTES:]
            self.out.end()

    def vanish(self) -> None:
        """The whole host is gone, and nobody says anything."""
        self.is_gone = True
        self.out.cut_off()

    def _close_when_flushed(self) -> None:
        if self.get_write_buffer_size() == 0:
            self.is_gone = True
            self.incoming.clear()
            self.out.end()
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        self._closing = True
        self._loop.call_soon(self._tell_lost, error, context=self._context)

    # ---- callbacks, as the process -------------------------------------------------------------------------

    def _look_soon(self) -> None:
        if not self._looking and self._protocol is not None and (self.incoming or self._ended):
            self._looking = True
            self._loop.call_soon(self._look, context=self._context)

    def _look(self) -> None:
        """One read: as much as the process has room for."""
        self._looking = False
        if not self.is_reading() or self._protocol is None:
            return
        if self.incoming:
            buffer = memoryview(self._protocol.get_buffer(-1))
            count = min(len(buffer), len(self.incoming))
            data = bytes(self.incoming[:count])
            del self.incoming[:count]
            buffer[:count] = data
            self._network.trace.note(f"read {self} {count}", data)
            self.back.go_on()
            self._protocol.buffer_updated(count)
            self._look_soon()
        elif self._ended:
            self._ended = False
            if not self._protocol.eof_received():
                self.close()

    def _resume(self) -> None:
        if not self._closing and self._protocol is not None:
            self._protocol.resume_writing()

    def _tell_lost(self, error: Exception | None) -> None:
        if not self._lost and self._protocol is not None:
            self._lost = True
            self._network.trace.note(f"lost {self}")
            self._protocol.connection_lost(error)
