"""Counts work by turns of the event loop, so that a test can say "no more than so much before others are served".

A turn is what a loop does between two looks at its sockets and timers: everything that was ready when it began.  Work
that is cut into slices comes back in the next turn.  Nothing here measures time.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock


@dataclass
class Turns:
    """How much was done in each turn, the one that is going on last."""

    counts: list[int] = field(default_factory=lambda: [0])

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def most(self) -> int:
        """In the fullest turn."""
        return max(self.counts)


@contextmanager
def counted_by_turn(owner: Any, name: str, weigh: Callable[..., int] | None = None) -> Iterator[Turns]:
    """Count the calls of a function in each turn of the running loop.

    `owner` is where callers look the function up: a module, a class or one object.  `weigh` takes the arguments of a
    call and says for how much it counts; without it each call is 1.
    """
    turns = Turns()
    loop, function = asyncio.get_running_loop(), getattr(owner, name)
    turn_of_loop: Callable[[], None] = loop._run_once  # type: ignore[attr-defined]

    def counted(*args: Any, **options: Any) -> Any:
        turns.counts[-1] += 1 if weigh is None else weigh(*args, **options)
        return function(*args, **options)

    def turn() -> None:
        turns.counts.append(0)
        turn_of_loop()

    with mock.patch.object(owner, name, counted), mock.patch.object(loop, "_run_once", turn):
        yield turns
