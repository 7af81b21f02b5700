"""Round: connections that have had their share of a turn of the event loop, and have more.

A connection is served when its bytes come, for some milliseconds at most.  What is left waits here, in the order in
which it came.  In each turn of the loop all that wait get as many milliseconds together: however many connections ask
for more than their share, everybody else waits for one share and not for all of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from bolide.model.clock import Clock
from bolide.model.limits import TURN_MS_MAX


class Round:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._next_turn: asyncio.Handle | None = None

    def wait(self, go_on: Callable[[], None]) -> None:
        """`go_on` is called in one of the next turns."""
        self._waiting.append(go_on)
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        end_ms = self._clock.monotonic_ms() + TURN_MS_MAX
        try:
            for _ in range(len(self._waiting)):  # who has more after that waits again
                self._waiting.popleft()()
                if self._clock.monotonic_ms() >= end_ms:
                    break
        finally:
            self._next_turn = asyncio.get_running_loop().call_soon(self._turn) if self._waiting else None
