"""Steps: work that can be interrupted, by whoever has a turn to give to others in between.

A function that yields between its steps gives its result at the end.  Nobody here knows what happens in between: a
server lets its event loop go round (`net/turns.py`), a test or a tool goes on at once.
"""

from collections.abc import Generator
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
