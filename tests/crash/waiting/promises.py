"""Promises: where each message must be in the end, how often, and not before when.

A message has a place for each topic and number of retries that it may be found with.  What a broker has answered rests
on an end of the log; ASYNC_FLUSH and a loss of power may take what was not durable, and then the message may be there
or not.  It may never be there twice.

Early and late are by the broker's own clock, when a message is stored for its readers.  Where somebody sets that clock,
a delay that was really waited for is over, too.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

LATE_MS = 5_000
"""Behind its time, or the start that found it overdue.  Threads of the simulated machine may take half a second."""


NOT_YET_MS = 1 << 62
"""Not before something else has happened."""

SLACK_MS = 3
"""So much less than a delay the clock that nobody sets may have shown: it drifts."""


class Moment(NamedTuple):
    wall_ms: int
    """As the broker's clock shows it."""
    steady_ms: int
    """As it would if nobody had ever set it."""


class Place(NamedTuple):
    topic: str
    key: str
    retries: int = 0


class Fate(Enum):
    ONCE = "once"
    PERHAPS = "at most once"
    NEVER = "never"


@dataclass(slots=True)
class Promise:
    what: str
    fate: Fate
    not_before_ms: int = 0
    not_behind_ms: int | None = None
    """None when nobody knows: it begins with an answer that was not heard."""
    log_end: int = 0
    """It holds for sure when the log is durable up to here."""
    began: Moment | None = None
    """When it began to wait; None when it waits for a time of day."""
    delay_ms: int = 0

    def wait(self, began: Moment, delay_ms: int) -> None:
        """It comes so long after this moment, which is before the one that the broker counts from."""
        self.began, self.delay_ms = began, delay_ms
        self.not_before_ms = began.wall_ms + delay_ms if delay_ms else 0

    def heard(self, now: Moment) -> None:
        """And this one is behind it."""
        if self.began is not None and self.delay_ms:
            self.not_behind_ms = max(self.began.wall_ms, now.wall_ms) + self.delay_ms

    def has_waited(self, at: Moment) -> bool:
        return self.began is not None and at.steady_ms - self.began.steady_ms >= self.delay_ms - SLACK_MS


class Found(NamedTuple):
    place: Place
    stored: Moment


class Promises:
    def __init__(self, late_ms: int = LATE_MS) -> None:
        self.all: dict[Place, Promise] = {}
        self._late_ms = late_ms
        self.starts: list[Moment] = []
        """Of brokers, and of other times: when somebody sets the clock."""
        self.clock_is_set = False
        self.clock_came_back = False
        """After it was set back.  Then a start does not know delayed messages that came meanwhile, and repeats them."""

    def expect(self, place: Place, what: str, fate: Fate, not_before_ms: int = 0) -> Promise:
        assert place not in self.all, place
        promise = self.all[place] = Promise(what, fate, not_before_ms)
        return promise

    def power_lost(self, durable: int) -> None:
        """What the log had behind this end may be gone."""
        for promise in self.all.values():
            if promise.log_end > durable:
                promise.fate = Fate.PERHAPS
                promise.log_end = 0  # another message may be there soon
                promise.not_behind_ms = None

    def durable(self, end: int) -> None:
        """The log is durable up to here, whatever comes."""
        for promise in self.all.values():
            if promise.log_end <= end:
                promise.log_end = 0

    def set_clock(self, now: Moment, ms: int) -> None:
        """Somebody has set it by so much.  What is on its way to the broker is counted from when it is there."""
        self.clock_came_back |= self.clock_is_set and ms > 0
        self.clock_is_set = True
        self.starts.append(now)
        for promise in self.all.values():
            if ms < 0 and promise.fate is Fate.PERHAPS and promise.began is not None:
                promise.not_before_ms += ms

    def last_ms(self) -> int:
        """When the last one comes that must.

        One that was on its way when the clock was set is promised for no sooner than by the later clock, and may have
        been counted by the earlier one.
        """
        return max(
            (
                max(promise.not_before_ms, promise.not_behind_ms or 0)
                for promise in self.all.values()
                if promise.fate is Fate.ONCE and promise.not_before_ms != NOT_YET_MS
            ),
            default=0,
        )

    def is_kept(self, found: Iterable[Found]) -> bool:
        """Whether everything has come that must."""
        places = {one.place for one in found}
        return all(place in places for place, promise in self.all.items() if promise.fate is Fate.ONCE)

    def flaws(self, found: Iterable[Found]) -> list[str]:
        found = list(found)
        counts = Counter(one.place for one in found)
        flaws = []
        for place, promise in self.all.items():
            count = counts[place]
            if self.clock_came_back and promise.began is not None:
                count = min(count, 1)
            if count > (promise.fate is not Fate.NEVER) or (promise.fate is Fate.ONCE and count == 0):
                flaws.append(f"{promise.what} {place}: {count} times, not {promise.fate.value}")
        for one in found:
            known = self.all.get(one.place)
            if known is None:
                flaws.append(f"{one.place} is something that nobody has sent")
                continue
            if one.stored.wall_ms < known.not_before_ms and not (
                self.clock_is_set and known.has_waited(one.stored)
            ):
                early_ms = known.not_before_ms - one.stored.wall_ms
                flaws.append(f"{known.what} {one.place}: {early_ms} ms early")
            latest_ms = self._latest_ms(known, one.stored)
            if latest_ms is not None and one.stored.wall_ms > latest_ms:
                flaws.append(f"{known.what} {one.place}: {one.stored.wall_ms - latest_ms} ms too late")
        return flaws

    def _latest_ms(self, promise: Promise, stored: Moment) -> int | None:
        """A broker that is down delivers nothing; the next one does so at once.

        With a clock that was set back a delay begins anew when the broker notices, and when it starts.
        """
        if promise.not_behind_ms is None:
            return None
        before = [moment for moment in self.starts if moment.steady_ms < stored.steady_ms]
        # In the same millisecond nobody knows which was first.
        at_once = [moment for moment in self.starts if moment.steady_ms == stored.steady_ms]
        began_ms = max(moment.wall_ms for moment in (*before[-1:], *at_once))
        anew_ms = promise.delay_ms if self.clock_is_set else 0
        return max(promise.not_behind_ms, began_ms + anew_ms) + anew_ms + self._late_ms
