"""Waiters: who waits until something that only grows has passed a number, and until when.

A machine: it knows neither what grows nor a clock.  Whoever waits is told True when the number is reached and False
when the time was up first, exactly once.
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

    def reached(self, number: int, count_max: int) -> bool:
        """Tell up to `count_max` of those who waited for this; whether there are more of them."""
        waiting = self._waiting
        while waiting and waiting[0].number <= number:
            if count_max == 0:
                return True
            count_max -= 1
            waiting.popleft().tell(True)
        return False

    def expire(self, now_ms: int) -> None:
        """Tell those whose time is up that it did not come to it."""
        late = [waiter for waiter in self._waiting if waiter.deadline_ms <= now_ms]
        if late:
            self._waiting = deque(waiter for waiter in self._waiting if waiter.deadline_ms > now_ms)
        for waiter in late:
            waiter.tell(False)

    def abandon(self) -> None:
        """Nobody is told anything any more."""
        self._waiting.clear()
