"""Changes of routes, one step per turn of the event loop, and connection after connection.

A registration may bring a hundred thousand topics, and some at once may come from one who means no good.  So every
connection that wants to change something has one step in its turn: a small change waits for a step of each of the
others, however much they have to do.  The changes of one connection are made one after the other: a broker that
registers and leaves has left, and of two registrations the later one counts.  What waits holds its request in memory,
so that has bounds.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bolide.model import limits
from bolide.model.errors import TooBusy
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.turns import Slices
from bolide.wire.command import Command

SMALL_BYTES = 64 * 1024
"""A change of this size is taken from a connection that has none waiting, however much others have."""

T = TypeVar("T")


@dataclass(slots=True)
class _Change:
    steps: Steps[Any]
    done: "asyncio.Future[Any]"
    size: int


class Changes:
    def __init__(self) -> None:
        self._waiting: dict[Link, deque[_Change]] = {}  # the connection whose turn it is first
        self._bytes = 0
        self._slices = Slices(self._step)

    def make(self, link: Link, request: Command, steps: Steps[T]) -> "asyncio.Future[T]":
        """Make a change that a request asks for; the future gives its result."""
        size = len(request.body)
        own = self._waiting.get(link)
        if own is not None and (
            len(own) >= limits.CHANGES_PER_CONNECTION_MAX
            or sum(change.size for change in own) + size > limits.CHANGES_PER_CONNECTION_BYTES_MAX
        ):
            raise TooBusy("too many changes of this connection are waiting; try again in a moment")
        is_small = own is None and size <= SMALL_BYTES
        if not is_small and self._bytes and self._bytes + size > limits.CHANGES_BYTES_MAX:
            raise TooBusy("too many registrations are waiting; register again in a moment")
        self._bytes += size
        change = _Change(steps, asyncio.get_running_loop().create_future(), size)
        self._waiting.setdefault(link, deque()).append(change)
        self._slices.go()
        return change.done

    def do(self, link: Link, request: Command, work: Callable[[], T]) -> "asyncio.Future[T]":
        """The same for what takes no time."""
        return self.make(link, request, _one_step(work))

    def close(self) -> None:
        """What is left stays undone."""
        self._slices.close()

    def _step(self) -> bool:
        """One of the connection whose turn it is; then it is the last."""
        link = next(iter(self._waiting))
        changes = self._waiting.pop(link)
        if _advance(changes[0]):
            self._bytes -= changes.popleft().size
        if changes:
            self._waiting[link] = changes
        return bool(self._waiting)


def _one_step(work: Callable[[], T]) -> Steps[T]:
    yield from ()
    return work()


def _advance(change: _Change) -> bool:
    """One step; tells whether it was the last."""
    if change.done.done():  # nobody waits for it any more: the server stops
        change.steps.close()
        return True
    try:
        next(change.steps)
    except StopIteration as end:
        change.done.set_result(end.value)
    except Exception as error:
        change.done.set_exception(error)
    else:
        return False
    return True
