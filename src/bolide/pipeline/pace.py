"""Pace: so many messages a second, and never more.

Time in which nothing was sent is not made up for: whoever asks for a rate wants to spare somebody, and a burst after a
slow minute would not.
"""

from collections.abc import Awaitable, Callable

from bolide.model.clock import Clock
from bolide.net.ticks import pause

FRAMES_PER_SECOND = 10
"""About so many requests does a second of messages make, so that they come evenly."""


class Pace:
    """Of one task.  Without a rate nobody waits."""

    def __init__(
        self, rate: float | None, clock: Clock, wait: Callable[[float], Awaitable[None]] = pause
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._wait = wait
        self._free_ms = 0.0

    async def turn(self, messages: int) -> None:
        """Returns when so many messages may go."""
        if self._rate is None:
            return
        now_ms = self._clock.monotonic_ms()
        due_ms = max(float(now_ms), self._free_ms)
        self._free_ms = due_ms + messages * 1000 / self._rate
        if due_ms > now_ms:
            await self._wait((due_ms - now_ms) / 1000)


def messages_at_once(rate: float | None, most: int) -> int:
    """How many messages a request may have under a rate.

    >>> messages_at_once(None, 1024), messages_at_once(500, 1024), messages_at_once(3, 1024)
    (1024, 50, 1)
    """
    return most if rate is None else max(1, min(most, int(rate / FRAMES_PER_SECOND)))
