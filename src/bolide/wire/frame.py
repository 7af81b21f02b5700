"""Frames: bytes as they arrive, cut into commands, runs of sends, and pulls.

`FrameReader` never sees a socket.  A shell asks `writable()` where to put bytes, says `received(n)`, and takes
items with `next()` until there is none.  Lengths are checked before anything is allocated for them, and a reader
owns memory only while it holds a part of a frame: the receive buffer belongs to the `Intake`, shared by all
connections of one event loop.
"""

import struct
from typing import TYPE_CHECKING

from bolide.compiled import use_compiled
from bolide.model.errors import ProtocolError
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.model.send_rows import FRAME_AT
from bolide.wire.command import Command, decode_command
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

if TYPE_CHECKING or not use_compiled("bolide.wire._frame"):
    from bolide.wire.frame_twin import encode_send_answers, scan_sends
else:
    from bolide.wire._frame import encode_send_answers, scan_sends

if TYPE_CHECKING or not use_compiled("bolide.wire._pull"):
    from bolide.wire.pull_twin import encode_found, scan_pull
else:
    from bolide.wire._pull import encode_found, scan_pull

__all__ = [
    "INTAKE_BYTES",
    "FrameReader",
    "Intake",
    "decode_frame",
    "encode_found",
    "encode_send_answers",
    "scan_frame",
]

INTAKE_BYTES = 256 * 1024
"""How much one socket read may bring."""

_PREFIX = struct.Struct(">II")
_PREFIX_BYTES = 8


class Intake:
    """The memory that connections of one event loop receive into."""

    __slots__ = ("buffer", "pull", "run", "view")

    def __init__(self, size_bytes: int = INTAKE_BYTES) -> None:
        self.buffer = bytearray(size_bytes)
        self.view = memoryview(self.buffer)
        self.run = SendRun(size_bytes)
        self.pull = PullFrame()


class FrameReader:
    """Cuts one connection's bytes into frames.  With `hot`, plain sends and pulls come as `SendRun` and `PullFrame`."""

    __slots__ = ("_area", "_hot", "_intake", "_rest", "_size_max", "_whole", "_whole_bytes", "at", "end")

    def __init__(self, intake: Intake, *, hot: bool = False, size_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._intake = intake
        self._hot = hot
        self._size_max = size_bytes_max
        self._area = intake.buffer  # where the bytes of the current read are
        self.at = 0  # what was received and not taken is from here
        self.end = 0  # to here
        self._rest = b""  # the beginning of a frame that fits the intake
        self._whole: bytearray | None = None  # a frame larger than that, while it is being received
        self._whole_bytes = 0

    def writable(self) -> memoryview:
        """Where the next bytes go."""
        if self._whole is not None:
            if self.end == len(self._whole):  # it grows with what has come, not with what was announced
                grown = bytearray(min(self._whole_bytes, 2 * self.end))
                grown[: self.end] = self._whole
                self._whole = grown
            return memoryview(self._whole)[self.end :]
        rest = self._rest
        if not rest:
            return self._intake.view
        self._intake.view[: len(rest)] = rest
        return self._intake.view[len(rest) :]

    def received(self, count: int) -> None:
        """`count` bytes were written to `writable()`."""
        if self._whole is None:
            self._area, self.at, self.end = self._intake.buffer, 0, len(self._rest) + count
            self._rest = b""
        else:
            self._area, self.at = self._whole, 0
            self.end += count

    def set_aside(self) -> None:
        """Keep what was not taken yet, because the shared memory is about to serve others."""
        if self._whole is None:
            self._rest = bytes(memoryview(self._area)[self.at : self.end])
            self.at = self.end = 0

    def give_back(self, run: SendRun, row: int) -> None:
        """Take the run's rows from this one on for not taken yet: they come again with the next call of `next`."""
        assert 0 < row < run.count, "a run of one request may have been the last use of its memory"
        self.at = run.column(row, FRAME_AT)

    def feed(self, data: bytes | bytearray | memoryview) -> list[Command]:
        """All items in `data`, for callers that have bytes at hand.  Needs a reader without `hot`."""
        assert not self._hot, "runs share memory: take them one by one with next()"
        items: list[Command] = []
        source = memoryview(data)
        while source:
            target = self.writable()
            count = min(len(target), len(source))
            target[:count] = source[:count]
            self.received(count)
            source = source[count:]
            while (item := self._next_command()) is not None:
                items.append(item)
        return items

    def next(self) -> Command | SendRun | PullFrame | None:
        """The next item, or None when more bytes are needed.  A run or pull is valid until the next call."""
        at, end = self.at, self.end
        if self._hot and end - at > _PREFIX_BYTES:
            run = self._intake.run
            self.at = scan_sends(run, self._area, at, end, self._size_max)
            if run.count:
                if self._whole is not None:  # it held exactly this frame; the run keeps it alive
                    self._whole, self.at, self.end = None, 0, 0
                return run
            if self._whole is None and (scan := scan_pull(self._area, at, end)) is not None:
                self.at = self._intake.pull.fill(self._area, at, scan)
                return self._intake.pull
        elif at == end and self._whole is None:
            self.at = self.end = 0
            return None
        return self._next_command()

    def _next_command(self) -> Command | None:
        available = self.end - self.at
        if available >= _PREFIX_BYTES:
            length, mark = _PREFIX.unpack_from(self._area, self.at)
            header_length = mark & 0xFFFFFF
            if length > self._size_max:
                raise ProtocolError(f"a frame of {length} bytes; {self._size_max} are allowed")
            if length < 4 or header_length > length - 4:
                raise ProtocolError(f"a header of {header_length} bytes in a frame of {length}")
            if available >= 4 + length:
                return self._take(length, mark >> 24, header_length)
            self._keep(4 + length)
        else:
            self._keep(_PREFIX_BYTES)
        return None

    def _take(self, length: int, form: int, header_length: int) -> Command:
        area = memoryview(self._area)
        body_at = self.at + _PREFIX_BYTES + header_length
        end = self.at + 4 + length
        command = decode_command(form, area[self.at + _PREFIX_BYTES : body_at], bytes(area[body_at:end]))
        self.at = end
        if self._whole is not None:  # it held exactly this frame
            self._whole, self.at, self.end = None, 0, 0
        return command

    def _keep(self, size_bytes: int) -> None:
        """Put the beginning of a frame aside until the rest of its `size_bytes` has come."""
        if self._whole is not None:
            return
        part = memoryview(self._area)[self.at : self.end]
        if size_bytes > len(self._intake.buffer):
            self._whole_bytes = size_bytes
            self._whole = bytearray(min(size_bytes, 2 * len(self._intake.buffer)))
            self._whole[: len(part)] = part
            self.end = len(part)
        else:
            self._rest = bytes(part)
            self.end = 0
        self.at = 0


def scan_frame(frame: bytes) -> SendRun:
    """A run of the send request that is in this frame; of none when it is not plain."""
    run = SendRun(len(frame))
    scan_sends(run, bytearray(frame), 0, len(frame), len(frame))
    return run


def decode_frame(frame: bytes) -> Command:
    """One whole frame."""
    length, mark = _PREFIX.unpack_from(frame) if len(frame) >= _PREFIX_BYTES else (0, 0)
    body_at = _PREFIX_BYTES + (mark & 0xFFFFFF)
    if len(frame) != 4 + length or body_at > len(frame):
        raise ProtocolError(f"{len(frame)} bytes are not one frame")
    return decode_command(mark >> 24, frame[_PREFIX_BYTES:body_at], frame[body_at:])
