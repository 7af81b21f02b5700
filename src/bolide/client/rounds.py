"""Work that a client does again and again in the background: a `Periodic` runs at its period, or at once when somebody
says `soon()`.  And waiting, with its bounds: for an event, for the next thing to say, for the end of something slow.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bolide.model.clock import Clock
from bolide.net.ticks import pause
from bolide.net.trouble import Trouble

log = logging.getLogger(__name__)

SLOW_S = 1.0
"""Whoever waits longer than that wants to know for what."""

T = TypeVar("T")


async def wait_at_most(event: asyncio.Event, timeout_ms: int | None) -> bool:
    """Wait for the event; False when the time was up first."""
    try:
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            await event.wait()
    except TimeoutError:
        return False
    return True


async def saying_if_slow(work: Awaitable[T], what: Callable[[], str]) -> T:
    """The work's result; when it takes its time, what is waited for goes to the log."""
    timer = asyncio.get_running_loop().call_later(SLOW_S, lambda: log.warning("waiting for %s", what()))
    try:
        return await work
    finally:
        timer.cancel()


class Seldom:
    """Keeps something that others can provoke from being said all the time.

    For one line of a client about its servers; a server says what strangers do through `machines/said.py`.
    """

    def __init__(self, clock: Clock, gap_ms: int) -> None:
        self._clock = clock
        self._gap_ms = gap_ms
        self._said_ms: int | None = None

    def is_due(self) -> bool:
        """Whether to say it now."""
        now_ms = self._clock.monotonic_ms()
        if self._said_ms is not None and now_ms - self._said_ms < self._gap_ms:
            return False
        self._said_ms = now_ms
        return True


class Periodic:
    """`work` returns the pause until the next round in milliseconds, or None for the usual period.

    Between two rounds there is at least `gap_ms`, however often somebody says `soon()`.
    """

    def __init__(
        self, name: str, period_ms: int, work: Callable[[], Awaitable[int | None]], *, gap_ms: int = 0
    ) -> None:
        text = f"{name} does not work, and is tried again within {period_ms / 1000:g} s"
        self._trouble = Trouble(log, text, logging.WARNING, over_level=logging.INFO)
        self._period_ms = period_ms
        self._gap_ms = gap_ms
        self._work = work
        self._wake = asyncio.Event()
        self._begun = self._ended = 0
        self._over: asyncio.Future[None] | None = None

    def soon(self) -> None:
        """Run as soon as the present round is over."""
        self._wake.set()

    async def renewed(self) -> None:
        """Wait for the end of a round that begins from now on, whether it goes well or not.

        For whoever has a deadline: after `run` has ended there is none.
        """
        wanted = self._begun + 1
        self.soon()
        while self._ended < wanted:
            self._over = self._over or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._over)

    async def run(self) -> None:
        """Never returns; ends by cancellation."""
        pause_ms = self._period_ms
        while True:
            await wait_at_most(self._wake, pause_ms)
            self._wake.clear()
            self._begun += 1
            try:
                pause_ms = await self._work() or self._period_ms
            except Exception as error:  # a client without heartbeats or offsets is worse than one bad round
                pause_ms = self._period_ms
                self._trouble.met(error)
            else:
                self._trouble.over()
            self._tell_over()
            if self._gap_ms:
                await pause(self._gap_ms / 1000)

    def _tell_over(self) -> None:
        self._ended = self._begun
        over, self._over = self._over, None
        if over is not None:
            over.set_result(None)
