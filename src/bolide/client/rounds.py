"""Work that a client does again and again in the background: a `Round` runs at its period, or at once when somebody
says `soon()`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bolide.model.errors import BolideError
from bolide.net.ticks import pause

log = logging.getLogger(__name__)


async def wait_at_most(event: asyncio.Event, timeout_ms: int) -> bool:
    """Wait for the event; False when the time was up first."""
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await event.wait()
    except TimeoutError:
        return False
    return True


class Round:
    """`work` returns the pause until the next round in milliseconds, or None for the usual period.

    Between two rounds there is at least `gap_ms`, however often somebody says `soon()`.
    """

    def __init__(
        self, name: str, period_ms: int, work: Callable[[], Awaitable[int | None]], *, gap_ms: int = 0
    ) -> None:
        self._name = name
        self._period_ms = period_ms
        self._gap_ms = gap_ms
        self._work = work
        self._wake = asyncio.Event()

    def soon(self) -> None:
        """Run as soon as the present round is over."""
        self._wake.set()

    async def run(self) -> None:
        """Never returns; ends by cancellation."""
        pause_ms = self._period_ms
        while True:
            await wait_at_most(self._wake, pause_ms)
            self._wake.clear()
            try:
                pause_ms = await self._work() or self._period_ms
            except Exception as error:  # a client without heartbeats or offsets is worse than one bad round
                pause_ms = self._period_ms
                unforeseen = None if isinstance(error, BolideError) else error
                log.warning(
                    "%s failed, again in %g s: %s", self._name, pause_ms / 1000, error, exc_info=unforeseen
                )
            if self._gap_ms:
                await pause(self._gap_ms / 1000)
