"""One after the other: what changes many routes takes some turns of the event loop, and whoever comes next waits.

So a broker that registers and leaves has left, whatever its registration still had to do, and of two registrations the
later one counts.  What waits holds its request in memory, so that has a bound.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bolide.model.errors import TooBusy
from bolide.wire.command import Command

WAITING_BYTES_MAX = 128 * 1024 * 1024


class ChangeQueue:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # whoever waits for longest comes first
        self._waiting_bytes = 0

    @asynccontextmanager
    async def turn(self, request: Command) -> AsyncIterator[None]:
        """The time in which a request may change routes."""
        size = len(request.body)
        if self._waiting_bytes and self._waiting_bytes + size > WAITING_BYTES_MAX:
            raise TooBusy("too many registrations are waiting; register again in a moment")
        self._waiting_bytes += size
        try:
            async with self._turn:
                yield
        finally:
            self._waiting_bytes -= size
