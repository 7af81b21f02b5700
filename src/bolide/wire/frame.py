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
from bolide.model.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX, HEADER_FIELDS_MAX, INTAKE_BYTES
from bolide.model.send_rows import FRAME_AT
from bolide.wire.command import COMPACT, JSON, Command, decode_command
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

if TYPE_CHECKING or not use_compiled("bolide.wire._frame"):
    from bolide.wire.frame_twin import blank, count_marks, encode_send_answers, scan_sends
else:
    from bolide.wire._frame import blank, count_marks, encode_send_answers, scan_sends

if TYPE_CHECKING or not use_compiled("bolide.wire._pull"):
    from bolide.wire.pull_twin import encode_found, scan_pull
else:
    from bolide.wire._pull import encode_found, scan_pull

__all__ = [
    "FrameReader",
    "Intake",
    "decode_frame",
    "encode_found",
    "encode_send_answers",
    "scan_frame",
]

UNCOUNTED_BYTES = 1024
"""A header of so few bytes cannot hold much, whatever it holds."""

MARKS_MAX = 4 * HEADER_FIELDS_MAX
"""A field has a colon and a comma; a value that is an object or a list has some of its own."""

GROWTH = 4
"""How many times what has come of a large frame its memory has: what came before is copied each time."""

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

    __slots__ = (
        *("_area", "_header_max", "_hot", "_intake", "_rest", "_size_max", "_whole"),
        *("at", "end", "kept", "large_bytes"),
    )

    def __init__(
        self,
        intake: Intake,
        *,
        hot: bool = False,
        size_bytes_max: int = FRAME_BYTES_MAX,
        header_bytes_max: int = HEADER_BYTES_MAX,
    ) -> None:
        self._intake = intake
        self._hot = hot
        self._size_max = int(size_bytes_max)
        self._header_max = int(header_bytes_max)
        self._area = intake.buffer  # where the bytes of the current read are
        self.at = 0  # what was received and not taken is from here
        self.end = 0  # to here
        self._rest = b""  # the beginning of a frame that fits the intake
        self._whole: bytearray | None = None  # a frame larger than that, while it is being received
        self.large_bytes = 0  # its length, if there is one
        self.kept = 0  # how many bytes the reader owns between two reads

    def writable(self) -> memoryview:
        """Where the next bytes go."""
        if self._whole is not None:
            if self.end == len(self._whole) < self.large_bytes:
                # It grows with what has come, not with what was told.
                grown = blank(min(self.large_bytes, GROWTH * self.end + len(self._intake.buffer)))
                grown[: self.end] = self._whole
                self._whole = grown
            return memoryview(self._whole)[self.end : self.end + len(self._intake.buffer)]
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
            self.kept = 0
        else:
            self._area, self.at = self._whole, 0
            self.end += count

    def set_aside(self) -> None:
        """Keep what was not taken yet, because the shared memory is about to serve others."""
        if self._whole is None:
            self._rest = bytes(memoryview(self._area)[self.at : self.end])
            self.kept = self.end - self.at
            self.at = self.end = 0

    def close(self) -> None:
        """Nothing more will come: keep nothing, however long somebody still knows this reader."""
        self._rest = b""
        self._forget_whole()

    def give_back(self, run: SendRun, row: int) -> None:
        """Take the run's rows from this one on for not taken yet: they come again with the next call of `next`."""
        assert 0 < row < run.count, "a run of one request may have been the last use of its memory"
        self.at = run.column(row, FRAME_AT)

    def give_back_pull(self, pull: PullFrame) -> None:
        """The same for a pull, which has come out of shared memory."""
        self.at = pull.start

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
            if run.count or run.end_count:
                if self._whole is not None:  # the run keeps its memory alive
                    self._forget_whole()
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
            if header_length > self._header_max:
                raise ProtocolError(f"a header of {header_length} bytes; {self._header_max} are allowed")
            if mark >> 24 > COMPACT:
                raise ProtocolError(f"unknown header form {mark >> 24}")
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
        command = _decoded(form, area[self.at + _PREFIX_BYTES : body_at], bytes(area[body_at:end]))
        self.at = end
        if self._whole is not None:
            self._forget_whole()
        return command

    def _forget_whole(self) -> None:
        """It held exactly one frame."""
        self._whole, self._area = None, self._intake.buffer
        self.at = self.end = self.kept = self.large_bytes = 0

    def _keep(self, size_bytes: int) -> None:
        """Put the beginning of a frame aside until the rest of its `size_bytes` has come."""
        if self._whole is not None:
            return
        part = memoryview(self._area)[self.at : self.end]
        self.at, self.end, self.kept = 0, 0, len(part)
        if size_bytes > len(self._intake.buffer):
            self.large_bytes = size_bytes
            self._whole = bytearray(part)
            self.end = len(part)
        else:
            self._rest = bytes(part)


def scan_frame(head: bytes, body: bytes) -> SendRun:
    """A run of the send request that is in this frame; of none when it is not plain."""
    run = SendRun(len(head))
    frame = bytearray(head)
    frame += body
    scan_sends(run, frame, 0, len(frame), len(frame))
    return run


def decode_frame(frame: bytes | memoryview) -> Command:
    """One whole frame; of its bytes only the body is copied."""
    length, mark = _PREFIX.unpack_from(frame) if len(frame) >= _PREFIX_BYTES else (0, 0)
    body_at = _PREFIX_BYTES + (mark & 0xFFFFFF)
    if len(frame) != 4 + length or body_at > len(frame):
        raise ProtocolError(f"{len(frame)} bytes are not one frame")
    return _decoded(mark >> 24, frame[_PREFIX_BYTES:body_at], bytes(frame[body_at:]))


def _decoded(form: int, header: bytes | memoryview, body: bytes) -> Command:
    """A command.  A long JSON header is looked over before an object is made of any of it."""
    if form == JSON and len(header) > UNCOUNTED_BYTES and count_marks(header) > MARKS_MAX:
        raise ProtocolError(f"a header with more than {HEADER_FIELDS_MAX} fields")
    return decode_command(form, header, body)
