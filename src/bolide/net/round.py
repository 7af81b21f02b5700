"""Round: how the connections of a server share its time.

Plain sends cost little and are served when their bytes come.  All other requests have some milliseconds of each turn of
the event loop together; pulls too, which look at the clock now and then.  Whoever comes when these are used up waits
here, and in each turn those who wait have as many again, first whoever has used least so far.  So it does not matter
how many connections ask for much: who asks for little waits for one share, and not for all of them.  While somebody
waits, all that requests take is charged to their connections, also what they do later, in slices.

Bytes take time too, for which no request pays: they are copied.  So whoever has brought many with one read waits as
well, and in each turn no more of them come back than it has bytes for.

There may always be somebody who has used less, if only by connecting anew.  So some of the turns begin with whoever has
waited longest: everybody is served after so many of them as there were others before him.
"""

import asyncio
import heapq
import types
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Protocol, TypeVar

from bolide.model.clock import Clock
from bolide.model.limits import INTAKE_BYTES, TURN_BYTES_MAX, TURN_MS_MAX
from bolide.net.slice_line import SliceLine

T = TypeVar("T")

TURNS_PER_ELDER = 4
"""One of so many turns begins with whoever has waited longest."""

LITTLE_PER_LOOK = 8
"""Pulls and the like, of all connections, between two looks at the clock."""

MANY_BYTES = 64 * 1024
"""Whoever brings so many with one read waits."""

READS_PER_TURN = TURN_BYTES_MAX // INTAKE_BYTES
"""So many of them come back in one turn, because each may bring as many as fit."""

MANY_BYTES_MS = 1
"""What such a read counts for: more than it takes, so that whoever brings little comes before."""

WAITED_PER_TURN_MS_MAX = 20
"""What one turn counts for to those who wait: a machine that stood still for a second is no crowd."""

CREDIT_MS = 20
"""So much less than the others whoever was idle counts as having used: it comes before them, and not for long."""


class Waiter(Protocol):
    """A connection, as much of it as a round needs."""

    used_ms: int
    """The time that its requests have taken; kept here."""

    brought_many: bool
    """Whether it waits after a read of many bytes."""

    waited_ms: int
    """How long what it has brought and was not served yet has waited; kept here, and 0 with new bytes."""

    def rested(self) -> None:
        """It is its turn."""


class Round:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slices = SliceLine()
        self._waiting: dict[int, Waiter] = {}  # by number, in the order in which they came
        self._since_ms: dict[int, int] = {}  # since when each has waited, by `_passed_ms`
        self._passed_ms = self._turned_ms = 0  # the time of all turns, and when the last one was
        self._least: list[tuple[int, int]] = []  # a heap: used, number; of some who wait no more, too
        self._number = 0
        self._turns = 0
        self._floor_ms = 0  # the most that whoever had used least had used
        self._next_turn: asyncio.Handle | None = None
        self._until_ms = 0  # 0 while no request has come in this turn
        self._unlooked = 0
        self.is_over = False  # whether this turn's time is used up
        self.now_ms = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def begin(self) -> int:
        """A request is about to be served; gives the time."""
        return self.began(self.now_ms if self._until_ms else self.look())

    def began(self, since_ms: int) -> int:
        """The same after it was served, by whoever knew only then that it was one."""
        if not self._until_ms:
            self._open(since_ms)
            self._turn_soon()
        return since_ms

    def look(self) -> int:
        """The time; what costs little may begin with it, because a turn is not worth beginning for that."""
        self.now_ms = self._clock.monotonic_ms()
        return self.now_ms

    def goes_on(self) -> bool:
        """A request was served: whether there is time for more."""
        self.is_over = self.look() >= self._until_ms
        return not self.is_over

    def goes_on_after_little(self) -> bool:
        """The same; for what may be cheaper than a look at the clock, after one when it began."""
        self._unlooked += 1
        if self._unlooked < LITTLE_PER_LOOK:
            return not self.is_over
        self._unlooked = 0
        self.began(self.now_ms)
        return self.goes_on()

    def was_much(self) -> None:
        """What was taken for little: it counts for many."""
        self._unlooked = LITTLE_PER_LOOK

    def wait(self, waiter: Waiter, used_ms: int) -> None:
        """`rested` is called in one of the next turns."""
        self._charge(waiter, used_ms + MANY_BYTES_MS if waiter.brought_many else used_ms)
        self._number += 1
        if not self._waiting:
            self._turned_ms = self.look()
        self._waiting[self._number] = waiter
        self._since_ms[self._number] = self._passed_ms - waiter.waited_ms
        heapq.heappush(self._least, (waiter.used_ms, self._number))
        self._turn_soon()

    def charge(self, waiter: Waiter, used_ms: int) -> None:
        """It has used time and need not wait for more.  While nobody has to, time is there for the taking."""
        if used_ms and self._waiting:
            self._charge(waiter, used_ms)

    @types.coroutine
    def charged(self, waiter: Waiter, outcome: Awaitable[T]) -> Generator[Any, None, T]:
        """Await something, and charge the time that its steps take; not the time between them, which others have.

        Before its first step, and where it leaves a turn to others, it waits until there is time for one of its slices.
        """
        steps = outcome.__await__()
        go_on: Callable[[], Any] = partial(next, steps)
        try:
            yield from self._slices.begin(waiter)
        except BaseException as error:  # cancelled before it began
            go_on = partial(steps.throw, error)
        while True:
            since_ms = self.look()
            try:
                awaited = go_on()
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._took(waiter, self.look() - since_ms)
                del (
                    go_on
                )  # with an error in it that comes out again, this frame and the error would keep each other
            try:
                if awaited is None:  # it only lets others have their turn
                    yield from self._slices.go_on(waiter)
                else:
                    yield awaited
                go_on = partial(next, steps)
            except BaseException as error:  # whoever waits was cancelled
                go_on = partial(steps.throw, error)

    def _took(self, waiter: Waiter, used_ms: int) -> None:
        self._slices.took(used_ms)
        self.charge(waiter, used_ms)

    def _charge(self, waiter: Waiter, used_ms: int) -> None:
        waiter.used_ms = max(waiter.used_ms, self._floor_ms - CREDIT_MS) + used_ms

    def _open(self, now_ms: int) -> None:
        self._until_ms = now_ms + TURN_MS_MAX
        self.is_over = False

    def _turn_soon(self) -> None:
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Those who wait have their time; after them it begins anew for those whose bytes come in this turn."""
        self._next_turn = None
        self._open(self.look())
        self._passed_ms += min(self.now_ms - self._turned_ms, WAITED_PER_TURN_MS_MAX)
        self._turned_ms = self.now_ms
        self._turns += 1
        is_elders = self._turns % TURNS_PER_ELDER == 0
        reads = READS_PER_TURN
        try:
            for _ in range(len(self._waiting)):
                waiter = self._elder() if is_elders else self._modest()
                is_elders = False
                reads -= waiter.brought_many
                waiter.rested()
                if not self.goes_on() or not reads:
                    break
        finally:
            self._until_ms = 0
            self.is_over = False
            if self._waiting:
                self._turn_soon()

    def _elder(self) -> Waiter:
        """Whoever has waited longest."""
        waiter = self._take(next(iter(self._waiting)))
        if len(self._least) > 2 * len(self._waiting) + 64:  # of those who wait no more
            self._least = [entry for entry in self._least if entry[1] in self._waiting]
            heapq.heapify(self._least)
        return waiter

    def _modest(self) -> Waiter:
        """Whoever has used least."""
        while True:
            used_ms, number = heapq.heappop(self._least)
            if number in self._waiting:
                self._floor_ms = max(self._floor_ms, used_ms)
                return self._take(number)

    def _take(self, number: int) -> Waiter:
        waiter = self._waiting.pop(number)
        waiter.waited_ms = self._passed_ms - self._since_ms.pop(number)
        return waiter
