"""The figures of a report, as values: what was measured, and what follows from it.

Nothing here knows of Spark, of brokers or of how figures are shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass

EVEN_MAX = 1.5
UNEVEN_MAX = 3.0
"""Up to so many times the mean the busiest queue makes a topic even, uneven; beyond that skewed."""

ENOUGH_PER_QUEUE = 10
"""With fewer messages than so many per queue, chance alone makes queues differ."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How values lie.  The middle ones are within one percent, exact below 64; the largest is exact."""

    p50: float
    p99: float
    max: int


@dataclass(frozen=True, slots=True)
class WindowFigures:
    """Messages stored from `start_ms` on, for as long as the report's windows are."""

    start_ms: int
    messages: int = 0
    bytes: int = 0
    latency: Spread | None = None
    """From born to stored, in milliseconds; None when no message tells."""
    negative: int = 0
    """Messages that were stored before they were born, by the clocks of broker and producer."""
    skew: float | None = None
    """The busiest queue against the mean of all; None in a window without messages."""
    hot_key: str | None = None
    hot_key_messages: int = 0


@dataclass(frozen=True, slots=True)
class QueueFigures:
    broker: str
    queue: int
    messages: int
    bytes: int
    share: float
    """Of the topic's messages, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class NameFigures:
    """A key or a tag."""

    name: str
    messages: int
    bytes: int
    share: float


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """Messages with bodies of `low` bytes up to and without `high`."""

    low: int
    high: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TopicFigures:
    topic: str
    messages: int
    bytes: int
    first_ms: int | None
    last_ms: int | None
    """When the first and the last message were stored."""
    size: Spread | None
    latency: Spread | None
    negative: int
    latency_min: int | None
    """The smallest latency: how far the clocks are apart, where it is negative."""
    packed: int
    """Messages whose bodies were sent compressed."""
    bad_bodies: int
    """Messages whose bodies do not unpack, or that are damaged."""
    retried: int
    """Messages that came back from a consumer at least once; only retry topics and dead letters have them."""
    untimed: int
    """Messages with a store time that no calendar holds: they are in no window."""
    keyed: int
    tagged: int
    """Messages with a key, with a tag."""
    keys_there: int | None
    tags_there: int
    """How many different ones; of keys None when nobody asked."""
    windows: Sequence[WindowFigures]
    queues: Sequence[QueueFigures]
    keys: Sequence[NameFigures]
    tags: Sequence[NameFigures]
    sizes: Sequence[SizeFigures]

    @property
    def size_mean(self) -> float | None:
        return self.bytes / self.messages if self.messages else None

    @property
    def rate(self) -> float | None:
        """Messages per second between the first and the last; None when that is no time."""
        if self.first_ms is None or self.last_ms is None or self.last_ms <= self.first_ms:
            return None
        return self.messages * 1000 / (self.last_ms - self.first_ms)

    @property
    def skew(self) -> float | None:
        return skew([queue.messages for queue in self.queues])

    @property
    def verdict(self) -> str:
        return verdict([queue.messages for queue in self.queues])


@dataclass(frozen=True, slots=True)
class QueueLagFigures:
    broker: str
    queue: int
    offset: int
    end: int
    behind: int
    waits_ms: int


@dataclass(frozen=True, slots=True)
class LagFigures:
    """One group in one topic, now."""

    group: str
    topic: str
    behind: int
    waits_ms: int
    queues: Sequence[QueueLagFigures]


@dataclass(frozen=True, slots=True)
class LagSample:
    """One group in one topic, at a moment that is over."""

    at_ms: int
    group: str
    topic: str
    behind: int
    waits_ms: int


@dataclass(frozen=True, slots=True)
class Report:
    made_ms: int
    source: str
    """Where messages were read from, in words."""
    since_ms: int | None
    until_ms: int | None
    window_ms: int
    topics: Sequence[TopicFigures]
    damaged: int
    """Rows of a damaged store that belong to no topic."""
    lags: Sequence[LagFigures]
    lag_history: Sequence[LagSample]
    notes: Sequence[str]
    """What a reader has to know besides the figures."""


def skew(counts: Sequence[int]) -> float | None:
    """How many times the mean the largest is; None when all are nothing.

    >>> skew([10, 10]), skew([20, 0]), skew([0, 0])
    (1.0, 2.0, None)
    """
    total = sum(counts)
    return max(counts) * len(counts) / total if total else None


def verdict(counts: Sequence[int]) -> str:
    """What the queues of a topic look like, in a word.

    >>> verdict([100, 110]), verdict([100, 40]), verdict([1000, 0, 0, 10]), verdict([1, 0, 0, 0]), verdict([5])
    ('even', 'even', 'skewed', 'too few to tell', 'one queue')
    """
    found = skew(counts)
    if found is None:
        return "no messages"
    if len(counts) == 1:
        return "one queue"
    if sum(counts) < ENOUGH_PER_QUEUE * len(counts):
        return "too few to tell"
    return "even" if found <= EVEN_MAX else "uneven" if found <= UNEVEN_MAX else "skewed"
