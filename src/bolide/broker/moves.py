"""Moves: who may move a group now, and how many wait for it.

One moves at a time, or two moves of a group would leave some queues to each.  A move may take thousands of turns of the
loop, so hosts take turns (`machines/fair_line.py`).  Moves are made here and not by the requests that wait for them: a
request has as few turns as its connection is greedy, and would hold up all others with what it has begun.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from bolide.machines.fair_line import FairLine, Places
from bolide.model.addresses import host_of
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
        self._places = Places("resets and clones of groups", MOVES_MAX, MOVES_SMALL)
        self._line: FairLine[_Move] = FairLine()
        self._wanted = asyncio.Event()

    def place(self, link: Link) -> AbstractContextManager[None]:
        """For one more move, from when it is asked for until it is answered; `TooBusy` without room."""
        return self._places.place(host_of(link.remote), link)

    def made(self, link: Link, make: Callable[[], Awaitable[T]]) -> "asyncio.Future[T | None]":
        """For who has a place: the move's result, when it has had its turn; None when the connection has closed before
        that, and nothing was moved."""
        made: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._line.add(host_of(link.remote), link, _Move(link, make, made))
        self._wanted.set()
        return made

    @goes_on("moving groups")
    async def run(self) -> None:
        """What the owner runs as a task."""
        while True:
            await self._wanted.wait()
            while self._line:
                await _make(self._line.next())
            self._wanted.clear()


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
