"""Safety: who waits until a message is as safe as it was promised to be.

How safe that is stands in `store/marks.py`.  Senders are answered, and consumers see a message, when the mark of
what is kept has passed it.  Whoever moves a mark says `moved`; whoever waits knows nothing of disks and replicas.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from bolide.machines.waiters import Tell, Waiters
from bolide.model.clock import Clock
from bolide.model.limits import UNSAFE_ANSWERS_MAX
from bolide.net.ticks import ticks
from bolide.net.trouble import goes_on
from bolide.net.turns import Slices
from bolide.store.marks import Marks

log = logging.getLogger(__name__)

TOLD_PER_TURN = 256
LATE_PER_TURN = 16
"""Fewer, because each is up to a run of answers that is made anew."""

DEADLINE_CHECK_S = 0.1


class Safety:
    def __init__(self, marks: Marks, clock: Clock, timeout_ms: Callable[[], int]) -> None:
        """`timeout_ms` is how long somebody waits before he hears that it takes too long."""
        self._marks = marks
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._waiters = Waiters()
        self._telling = Slices(self._tell_some)
        self._listeners: list[Callable[[], None]] = []
        self._somebody_waits = asyncio.Event()
        self._late: deque[Tell] = deque()
        self.at_once = marks.at_once
        """Whether nobody ever waits."""

    @property
    def has_room(self) -> bool:
        """Whether one more may wait."""
        return len(self._waiters) < UNSAFE_ANSWERS_MAX

    def when_kept(self, end: int, tell: Tell) -> None:
        """Tell True when the log is safe up to `end`, at once if it is; False when that takes too long."""
        if end <= self._marks.kept:
            tell(True)
        else:
            self._waiters.add(end, self._clock.monotonic_ms() + self._timeout_ms(), tell)
            self._somebody_waits.set()

    def on_move(self, listener: Callable[[], None]) -> None:
        """Be called when more of the log may be seen."""
        self._listeners.append(listener)

    def moved(self) -> None:
        """A mark has moved."""
        self._telling.go()
        for listener in self._listeners:
            try:
                listener()
            except Exception:  # whoever moved the mark has done its work
                log.exception("somebody who waits for messages that may be seen now was not told")

    @goes_on("answering those for whom the disk is too slow")
    async def watch_deadlines(self) -> None:
        """Answer those for whom it takes too long; their messages stay stored."""
        async for _ in ticks(DEADLINE_CHECK_S):
            self._late.extend(self._waiters.take_late(self._clock.monotonic_ms()))
            self._telling.go()
            if not self._waiters:
                self._somebody_waits.clear()
                await self._somebody_waits.wait()

    def abandon(self) -> None:
        """The log has failed: no answer is the only true one."""
        self._waiters.abandon()

    def _tell_some(self) -> bool:
        kept = self._waiters.take_reached(self._marks.kept, TOLD_PER_TURN)
        late = [self._late.popleft() for _ in range(min(LATE_PER_TURN, len(self._late)))]
        for tells, word in ((kept, True), (late, False)):
            for tell in tells:
                try:
                    tell(word)
                except Exception:  # others wait behind this one
                    log.exception("the sender of a stored message could not be answered")
        return len(kept) == TOLD_PER_TURN or bool(self._late)
