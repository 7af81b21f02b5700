"""Statistics: how much went into each topic and out of it to each group, in the last minute, hour and day.

Whoever counts adds to a `Count`, once for many messages, or lets its total be asked for when it is wanted.  Samples of
the totals are taken every ten seconds and thinned out: six of the last minute, six of the last hour, 24 of the last
day, as many as the original keeps.  Other than there, a figure goes up to now and not to the last sample, so that it
moves at once.  A machine: the caller says when.
"""

from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple
from weakref import ref

SAMPLE_MS = 10_000
"""How often `sample` is to be called."""


class Span(NamedTuple):
    """A span that figures are given for, and how far apart its samples are."""

    length_ms: int
    apart_ms: int


MINUTE = Span(60_000, SAMPLE_MS)
HOUR = Span(3_600_000, 600_000)
DAY = Span(86_400_000, 3_600_000)
SPANS = (MINUTE, HOUR, DAY)


class Figure(NamedTuple):
    """What came within a span."""

    total: int = 0
    per_second: float = 0.0
    per_time: float = 0.0
    """What one time of counting brought."""


class Count:
    """A total that grows, and how often it has grown."""

    __slots__ = ("__weakref__", "times", "total")

    def __init__(self) -> None:
        self.total = 0
        self.times = 0

    def add(self, amount: int) -> None:
        self.total += amount
        self.times += 1


class _Samples:
    """Of one span: time, total and times, the oldest first."""

    __slots__ = ("_rows", "_span")

    def __init__(self, span: Span, now_ms: int) -> None:
        self._span = span
        self._rows = array("q", (now_ms, 0, 0))

    def take(self, now_ms: int, count: Count) -> None:
        rows, span = self._rows, self._span
        if now_ms - rows[-3] < span.apart_ms:
            return
        rows.extend((now_ms, count.total, count.times))
        while len(rows) > 6 and now_ms - rows[3] >= span.length_ms:  # the next one reaches back as far
            del rows[:3]

    def figure(self, now_ms: int, count: Count) -> Figure:
        rows, span = self._rows, self._span
        at = 0
        while at + 3 < len(rows) and now_ms - rows[at] > span.length_ms:
            at += 3
        total, times = count.total - rows[at + 1], count.times - rows[at + 2]
        seconds = max(now_ms - rows[at], 1) / 1000
        return Figure(total, total / seconds, total / times if times else 0.0)


class _Item:
    __slots__ = ("changed_ms", "count", "kept", "samples", "seen")

    def __init__(self, now_ms: int) -> None:
        self.kept: Count | None = Count()  # for a day at least; then it lives as long as somebody else has it
        self.count = ref(self.kept)
        self.samples = tuple(_Samples(span, now_ms) for span in SPANS)
        self.seen = 0  # the total of the last sample
        self.changed_ms = now_ms


class Statistics:
    """Counts by name and key (RocketMQ: BrokerStatsManager); `items_max` bounds how many there are."""

    def __init__(self, items_max: int) -> None:
        self._items_max = items_max
        self._items: dict[tuple[str, str], _Item] = {}
        self._nobodys = Count()  # what is not kept is counted here

    def __len__(self) -> int:
        return len(self._items)

    def count(self, name: str, key: str, now_ms: int) -> Count:
        """The count of this name and key, made on demand; one that nobody reads when there is no room."""
        item = self._items.get((name, key))
        count = None if item is None else item.count()
        if count is not None:
            return count
        if len(self._items) >= self._items_max:
            return self._nobodys
        item = self._items[name, key] = _Item(now_ms)
        assert item.kept is not None
        return item.kept

    def figures(self, name: str, key: str, now_ms: int) -> tuple[Figure, ...] | None:
        """One for each of `SPANS`; None when nothing was counted."""
        item = self._items.get((name, key))
        count = None if item is None else item.count()
        if item is None or count is None:
            return None
        return tuple(samples.figure(now_ms, count) for samples in item.samples)

    def sampling(self, clock: Callable[[], int], per_step: int) -> Iterator[None]:
        """Take a sample of everything, some in each step.

        What was silent for a day is forgotten, unless somebody has it who may still add to it.
        """
        for number, (key, item) in enumerate(list(self._items.items()), 1):
            _take_sample(item, clock())
            if item.count() is None and self._items.get(key) is item:
                del self._items[key]
            if number % per_step == 0:
                yield

    def forget(self, name: str, key: str) -> None:
        self._items.pop((name, key), None)


def _take_sample(item: _Item, now_ms: int) -> None:
    count = item.count()
    if count is None:
        return
    if count.total != item.seen:
        item.seen, item.changed_ms, item.kept = count.total, now_ms, count
    elif now_ms - item.changed_ms > DAY.length_ms + DAY.apart_ms:
        item.kept = None
    for samples in item.samples:
        samples.take(now_ms, count)
