"""Moves: who may move a group now, and how many wait for it.

One moves at a time, or two moves of a group would leave some queues to each.  A move may take thousands of turns of the
loop, so hosts take turns: whoever asks for many makes his own wait, and everybody else waits for one of each other
host.  Moves are made here and not by the requests that wait for them: a request has as few turns as its connection is
greedy, and would hold up all others with what it has begun.

How many there are is bounded, and a host has no more of them than stay free for others (`machines/shares.py`).
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from bolide.machines.shares import room
from bolide.model.addresses import host_of
from bolide.model.errors import TooBusy
from bolide.model.limits import MOVES_MAX, MOVES_SMALL
from bolide.net.link import Link
from bolide.net.trouble import goes_on

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Move:
    link: Link
    make: Callable[[], Awaitable[Any]]
    made: "asyncio.Future[Any]"

    @property
    def is_wanted(self) -> bool:
        """Whether somebody is there who will hear of it."""
        return self.link.is_open and not self.made.done()


class Moves:
    def __init__(self) -> None:
        self._held: Counter[str] = Counter()  # places, by host
        self._lines: dict[str, deque[_Move]] = {}  # first the host that had its turn longest ago
        self._wanted = asyncio.Event()

    @contextmanager
    def place(self, link: Link) -> Iterator[None]:
        """For one more move, from when it is asked for until it is answered; `TooBusy` without room."""
        host, count = host_of(link.remote), self._held.total()
        if not room(self._held[host], MOVES_MAX, count, small=MOVES_SMALL):
            raise TooBusy(
                f"{count} resets and clones of groups wait already, {self._held[host]} of them of your host, and"
                " nothing was moved: try again when some of them are done"
            )
        self._held[host] += 1
        try:
            yield
        finally:
            self._held[host] -= 1
            if not self._held[host]:
                del self._held[host]

    def made(self, link: Link, make: Callable[[], Awaitable[T]]) -> "asyncio.Future[T | None]":
        """For who has a place: the move's result, when it has had its turn; None when the connection has closed before
        that, and nothing was moved."""
        made: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._lines.setdefault(host_of(link.remote), deque()).append(_Move(link, make, made))
        self._wanted.set()
        return made

    @goes_on("moving groups")
    async def run(self) -> None:
        """What the owner runs as a task."""
        while True:
            await self._wanted.wait()
            while self._lines:
                await _make(self._next())
            self._wanted.clear()

    def _next(self) -> _Move:
        """The first one of a host, which stands behind the others then."""
        host = next(iter(self._lines))
        line = self._lines.pop(host)
        move = line.popleft()
        if line:
            self._lines[host] = line
        return move


async def _make(move: _Move) -> None:
    if not move.is_wanted:
        if not move.made.done():
            move.made.set_result(None)
        return
    try:
        result = await move.make()
    except Exception as error:
        if not move.made.done():
            move.made.set_exception(error)
    else:
        if not move.made.done():
            move.made.set_result(result)
