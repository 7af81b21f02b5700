"""Waiters: who waits until something that only grows has passed a number, and until when.

A machine: it knows neither what grows nor a clock.  Whoever waits is given out once, when the number is reached or
when the time was up first, to be told which.
"""

from bisect import insort
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Tell = Callable[[bool], None]


@dataclass(slots=True, order=True)
class _Waiter:
    number: int
    deadline_ms: int = field(compare=False)
    tell: Tell = field(compare=False)


class Waiters:
    """In the order of their numbers, in which they nearly always come."""

    def __init__(self) -> None:
        self._waiting: deque[_Waiter] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, number: int, deadline_ms: int, tell: Tell) -> None:
        waiter = _Waiter(number, deadline_ms, tell)
        if self._waiting and self._waiting[-1].number > number:
            insort(self._waiting, waiter)
        else:
            self._waiting.append(waiter)

    def take_reached(self, number: int, count_max: int) -> list[Tell]:
        """Up to `count_max` of those who waited for this, to be told True."""
        waiting = self._waiting
        tells: list[Tell] = []
        while waiting and waiting[0].number <= number and len(tells) < count_max:
            tells.append(waiting.popleft().tell)
        return tells

    def take_late(self, now_ms: int) -> list[Tell]:
        """Those whose time is up, to be told False."""
        late = [waiter.tell for waiter in self._waiting if waiter.deadline_ms <= now_ms]
        if late:
            self._waiting = deque(waiter for waiter in self._waiting if waiter.deadline_ms > now_ms)
        return late

    def abandon(self) -> None:
        """Nobody is told anything any more."""
        self._waiting.clear()
