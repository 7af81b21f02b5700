"""A compressed registration: blocks of a zlib stream, unpacked as they are asked for.

However much is packed into a few bytes, only the block that is looked at is in memory, and a step unpacks a bounded
part of it.
"""

import struct
import zlib
from collections.abc import Callable

from bolide.model.errors import InvalidRequest
from bolide.model.limit import MIB
from bolide.model.limits import REGISTERED_TOPIC_BYTES_MAX, REGISTRATION_UNPACKED_BYTES_MAX
from bolide.model.steps import Steps
from bolide.wire.bodies.registration_topics import check_topic_count

MAPPING_BYTES_MAX = MIB
"""Of the mapping of a static topic, which lists its queues."""

STEP_BLOCKS = 128
STEP_BYTES = 128 * 1024
"""What is taken with one step: so many blocks, or so many bytes of them."""

FEED_BYTES = 16 * 1024
UNPACK_BYTES = 64 * 1024
"""What goes into the stream, and comes out of it, at a time."""

_U32 = struct.Struct(">I")


class Blocks:
    """A cursor over the blocks of a stream."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._fed = 0
        self._stream = zlib.decompressobj()
        self._ready = b""  # what is unpacked, and where the cursor is in it
        self._at = 0
        self._unpacked = 0

    def block(self, bytes_max: int = REGISTERED_TOPIC_BYTES_MAX) -> bytes:
        length = self._number()
        if length > bytes_max:
            raise InvalidRequest(f"a block of {length} bytes in a registration; {bytes_max} are allowed")
        return self._take(length)

    def many(
        self, take: Callable[[bytes], object], bytes_max: int = REGISTERED_TOPIC_BYTES_MAX
    ) -> Steps[None]:
        """A list of blocks, some with each step."""
        count = self._number()
        check_topic_count(count)
        size = 0
        for number in range(1, count + 1):
            block = self.block(bytes_max)
            take(block)
            size += len(block)
            if number % STEP_BLOCKS == 0 or size >= STEP_BYTES:
                size = 0
                yield

    def end(self) -> Steps[None]:
        """The rest of the stream, for the checksum at its end."""
        while not self._stream.eof:
            self._at = len(self._ready)
            self._unpack()
            yield

    def _number(self) -> int:
        (value,) = _U32.unpack(self._take(_U32.size))
        return int(value)

    def _take(self, size: int) -> bytes:
        while len(self._ready) - self._at < size:
            self._unpack()
        taken = self._ready[self._at : self._at + size]
        self._at += size
        return taken

    def _unpack(self) -> None:
        """Some more, behind what was not taken yet."""
        if self._stream.eof:
            raise InvalidRequest("the compressed registration ends too soon")
        packed = self._stream.unconsumed_tail
        if not packed:
            packed = self._packed[self._fed : self._fed + FEED_BYTES]
            self._fed += len(packed)
        try:
            some = self._stream.decompress(packed, UNPACK_BYTES)
        except zlib.error as error:
            raise InvalidRequest(f"the registration is not a zlib stream: {error}") from error
        if not some and not packed:
            raise InvalidRequest("the compressed registration is cut short")
        self._unpacked += len(some)
        if self._unpacked > REGISTRATION_UNPACKED_BYTES_MAX:
            raise InvalidRequest(
                f"the registration unpacks to more than {REGISTRATION_UNPACKED_BYTES_MAX} bytes"
            )
        self._ready = self._ready[self._at :] + some
        self._at = 0
