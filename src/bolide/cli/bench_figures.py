"""What a benchmark counts: messages, bytes, errors, and latencies in buckets of three per cent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

SPEED_S = 1.0

_MANTISSA = 5
_EXACT_BELOW = 1 << (_MANTISSA + 1)


def bucket_of(microseconds: int) -> int:
    """Buckets are as wide as their place in a power of two allows, so that any latency is known to three per cent."""
    if microseconds < _EXACT_BELOW:
        return max(0, microseconds)
    shift = microseconds.bit_length() - _MANTISSA - 1
    return (shift << _MANTISSA) + (microseconds >> shift)


def bucket_end(bucket: int) -> int:
    """The largest latency of a bucket, in microseconds."""
    if bucket < _EXACT_BELOW:
        return bucket
    shift = (bucket >> _MANTISSA) - 1
    return ((bucket - (shift << _MANTISSA) + 1) << shift) - 1


@dataclass
class Latencies:
    buckets: dict[int, int] = field(default_factory=dict)
    max_us: int = 0

    def add(self, microseconds: int) -> None:
        bucket = bucket_of(microseconds)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1
        self.max_us = max(self.max_us, microseconds)

    def merge(self, other: "Latencies") -> None:
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.max_us = max(self.max_us, other.max_us)

    @property
    def count(self) -> int:
        return sum(self.buckets.values())

    def at(self, share: float) -> int:
        """The latency that so large a share of all stays within, in microseconds; 0 when there are none."""
        left = share * self.count
        for bucket in sorted(self.buckets):
            left -= self.buckets[bucket]
            if left <= 1e-9:
                return min(bucket_end(bucket), self.max_us)
        return self.max_us

    def told(self) -> dict[str, float]:
        """In milliseconds, for programs."""
        shares = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999}
        return {
            **{name: self.at(share) / 1000 for name, share in shares.items()},
            "max_ms": self.max_us / 1000,
        }


@dataclass
class Report:
    """How far one process has come since it was told to go; a later one takes the place of an earlier."""

    messages: int = 0
    size_bytes: int = 0
    given: int = 0
    """Handed to the client; what is not among `messages` is under way, or failed."""
    latencies: Latencies = field(default_factory=Latencies)
    errors: dict[str, int] = field(default_factory=dict)
    busy: int = 0
    """Answers of brokers that had no time."""
    processor_s: float = 0.0
    waiting_s: float = 0.0
    """That the client had as much under way as it may."""
    wall_s: float = 0.0

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def copy(self) -> "Report":
        """As it is at this moment."""
        latencies = Latencies(dict(self.latencies.buckets), self.latencies.max_us)
        return replace(self, latencies=latencies, errors=dict(self.errors))


class Speed:
    """Messages per second of late.  Reports come now and then: between two of them nothing has moved, and nothing
    stands still.
    """

    def __init__(self) -> None:
        self._mark = (0.0, 0)
        self._rate: float | None = None

    def now(self, wall_s: float, messages: int) -> float:
        since, before = self._mark
        if wall_s - since >= SPEED_S:
            self._rate = (messages - before) / (wall_s - since)
            self._mark = (wall_s, messages)
        if self._rate is not None:
            return self._rate
        return messages / wall_s if wall_s > 0 else 0.0


def together(reports: Iterable[Report]) -> Report:
    """What several processes have done: sums, and the longest time."""
    whole = Report()
    for one in reports:
        whole.messages += one.messages
        whole.size_bytes += one.size_bytes
        whole.given += one.given
        whole.latencies.merge(one.latencies)
        _count(whole.errors, one.errors)
        whole.busy += one.busy
        whole.processor_s += one.processor_s
        whole.waiting_s += one.waiting_s
        whole.wall_s = max(whole.wall_s, one.wall_s)
    return whole


def _count(into: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        into[name] = into.get(name, 0) + count
