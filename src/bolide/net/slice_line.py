"""SliceLine: long requests share some milliseconds of each turn of the event loop, however many there are.

A request that grows with topics, groups or queues is done in slices, one per turn.  A thousand of them would do a
thousand slices in a turn, so the slices of all have as much of it together as other requests have (`round.py`).  When
that is used up, or somebody waits already, who wants to begin or go on stands in the line of its connection.  In each
turn one slice of each connection is let on, as many as there is time for: so who has asked for one thing waits for one
slice of each other connection, and not for all that they have asked for.  How long a slice takes is known when it is
over: who was let on with others, and finds that these have used up the turn, comes first in the next.
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
        self._lines: dict[object, deque[asyncio.Future[bool]]] = {}  # first whoever was let on longest ago
        self._put_back: deque[asyncio.Future[bool]] = deque()  # let on, and there was no time left
        self._used_ms = 0  # in this turn
        self._at_once = 1
        self._next_turn: asyncio.Handle | None = None

    @property
    def _is_free(self) -> bool:
        return self._used_ms < TURN_MS_MAX

    def took(self, ms: int) -> None:
        """A slice took so long."""
        if ms:
            self._used_ms += ms
            self._turn_soon()

    def begin(self, who: object) -> Generator[Any, None, None]:
        """Somebody has a first slice to do: at once, if there is time and nobody waits."""
        if self._lines or self._put_back or not self._is_free:
            yield from self._wait(who)

    def go_on(self, who: object) -> Generator[Any, None, None]:
        """Somebody has given up the rest of its turn, and has another slice to do."""
        if not (self._lines or self._put_back) and self._is_free:
            yield
            if self._is_free:  # others go on in this turn, too
                return
        yield from self._wait(who)

    def _wait(self, who: object) -> Generator[Any, None, None]:
        line = self._lines.setdefault(who, deque())
        while True:
            let_on: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            line.append(let_on)
            self._turn_soon()
            if (yield from let_on) or self._is_free:
                return
            line = self._put_back

    def _turn_soon(self) -> None:
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """A new turn: who is let on now does its slice in it, the first one in any case."""
        self._next_turn = None
        self._at_once = min(2 * self._at_once, AT_ONCE_MAX) if self._is_free else 1
        self._used_ms = 0
        is_first = True
        for _ in range(min(self._at_once, len(self._put_back) + len(self._lines))):
            if self._put_back:
                is_first = not _let_on(self._put_back, is_first) and is_first
            else:
                is_first = not self._let_one_on(is_first) and is_first
        if self._lines or self._put_back:
            self._turn_soon()

    def _let_one_on(self, is_first: bool) -> bool:
        """The first one in the line of a connection, which stands behind the others then."""
        who = next(iter(self._lines))
        line = self._lines.pop(who)
        let_on = _let_on(line, is_first)
        if line:
            self._lines[who] = line
        return let_on


def _let_on(line: "deque[asyncio.Future[bool]]", is_first: bool) -> bool:
    """The first one of a line who was not cancelled; tells whether there is one."""
    while line:
        first = line.popleft()
        if not first.done():
            first.set_result(is_first)
            return True
    return False
