"""PullFrame: one plain pull request, as its shape and the three numbers that change from one to the next."""


class PullFrame:
    """Valid only until the next read, because the memory is used again.  See `pull_twin` for what a shape is."""

    __slots__ = ("_buffer", "_end", "commit_offset", "opaque", "queue_offset", "shape", "start")

    def __init__(self) -> None:
        self.shape = b""
        self.opaque = 0
        self.queue_offset = 0
        self.commit_offset = 0
        self._buffer = bytearray()
        self.start = 0
        self._end = 0

    def fill(self, buffer: bytearray, start: int, scan: tuple[bytes, int, int, int, int]) -> int:
        """Take over what was scanned; returns where the frame ends."""
        self._buffer = buffer
        self.start = start
        self.shape, self.opaque, self.queue_offset, self.commit_offset, self._end = scan
        return self._end

    def frame(self) -> bytes:
        """The request's whole frame, for a pull that needs the general path."""
        return bytes(memoryview(self._buffer)[self.start : self._end])
