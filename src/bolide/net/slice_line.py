"""SliceLine: long requests share some milliseconds of each turn of the event loop, however many there are.

A request that grows with topics, groups or queues is done in slices, one per turn.  A thousand of them would do a
thousand slices in a turn, so the slices of all have as much of it together as other requests have (`round.py`).  When
that is used up, or somebody waits already, who wants to begin or go on stands in the line of its connection.  In each
turn one slice of each connection is let on, as many as there is time for: so who has asked for one thing waits for one
slice of each other connection, and not for all that they have asked for.
"""

import asyncio
from collections import deque
from collections.abc import Generator
from typing import Any

from bolide.model.limits import TURN_MS_MAX

AT_ONCE_MAX = 64
"""So many are let on in one turn as long as they take no time."""


class SliceLine:
    def __init__(self) -> None:
        self._lines: dict[object, deque[asyncio.Future[None]]] = {}  # first whoever was let on longest ago
        self._used_ms = 0  # in this turn
        self._at_once = 1
        self._next_turn: asyncio.Handle | None = None

    def took(self, ms: int) -> None:
        """A slice took so long."""
        if ms:
            self._used_ms += ms
            self._turn_soon()

    def begin(self, who: object) -> Generator[Any, None, None]:
        """Somebody has a first slice to do: at once, if there is time and nobody waits."""
        if self._lines or self._used_ms >= TURN_MS_MAX:
            yield from self._wait(who)

    def go_on(self, who: object) -> Generator[Any, None, None]:
        """Somebody has given up the rest of its turn, and has another slice to do."""
        if self._lines or self._used_ms >= TURN_MS_MAX:
            yield from self._wait(who)
        else:
            yield

    def _wait(self, who: object) -> Generator[Any, None, None]:
        let_on: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(who, deque()).append(let_on)
        self._turn_soon()
        yield from let_on

    def _turn_soon(self) -> None:
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """A new turn: who is let on now does its slice in it."""
        self._next_turn = None
        self._at_once = 1 if self._used_ms >= TURN_MS_MAX else min(2 * self._at_once, AT_ONCE_MAX)
        self._used_ms = 0
        for _ in range(min(self._at_once, len(self._lines))):
            self._let_on(next(iter(self._lines)))
        if self._lines:
            self._turn_soon()

    def _let_on(self, who: object) -> None:
        """The first one in the line of a connection, which stands behind the others then; not who was cancelled."""
        line = self._lines.pop(who)
        while line:
            first = line.popleft()
            if not first.done():
                first.set_result(None)
                break
        if line:
            self._lines[who] = line
