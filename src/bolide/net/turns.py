"""Turns: long work in slices, so that everybody else is served in between.

One event loop serves all connections; whatever runs in one piece is time that all of them wait.  Work that grows with
the number of topics, groups or waiting requests is written as steps, and each turn of the loop does one.
"""

import asyncio
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import TypeVar

from bolide.model.steps import Steps

T = TypeVar("T")


async def in_turns(steps: Steps[T]) -> T:
    """Do the steps, one per turn; gives their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        await next_turn()


async def join_pieces(pieces: Iterable[bytes]) -> bytes:
    """A large text that is made piece by piece, one per turn."""
    made = BytesIO()  # gives all of it at the end without copying it once more
    for piece in pieces:
        made.write(piece)
        await next_turn()
    return made.getvalue()


class Slices:
    """Work that comes up at any time: `go` does the first slice at once, and one more per turn while some is left."""

    def __init__(self, slice_: Callable[[], bool]) -> None:
        """`slice_` does a bounded piece of the work, and tells whether there is more."""
        self._slice = slice_
        self._waiting: asyncio.Handle | None = None

    @property
    def is_going(self) -> bool:
        """Whether some is left."""
        return self._waiting is not None

    def go(self) -> None:
        if self._waiting is None:
            self._turn()

    def close(self) -> None:
        """What is left stays undone."""
        if self._waiting is not None:
            self._waiting.cancel()

    def _turn(self) -> None:
        self._waiting = None
        if self._slice():
            self._waiting = asyncio.get_running_loop().call_soon(self._turn)


async def next_turn() -> None:
    """Let everybody else be served."""
    await asyncio.sleep(0)  # noqa: TID251
