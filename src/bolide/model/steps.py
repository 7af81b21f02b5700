"""Steps: work that can be interrupted, by whoever has a turn to give to others in between.

A function that yields between its steps gives its result at the end.  Nobody here knows what happens in between: a
server lets its event loop go round (`net/turns.py`), a test or a tool goes on at once.
"""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]


def at_once(steps: Steps[T]) -> T:
    """All steps in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def slices(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items, some at a time."""
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
