"""Traffic: how much a broker has stored and handed out, and how fast it did so lately.

Counting is adding to an attribute, because it happens on the hot path.  Rates come from samples of the counters, one
a second, kept for ten minutes: a machine without a clock, the caller says when.
"""

from collections import deque
from typing import NamedTuple

WINDOWS_MS = (10_000, 60_000, 600_000)
"""The three spans over which the original gives every rate."""

SAMPLE_MS = 1_000
SAMPLES_MAX = WINDOWS_MS[-1] // SAMPLE_MS + 1


class Counts(NamedTuple):
    """Totals since the start."""

    stored: int = 0
    """Messages appended."""
    found: int = 0
    """Pulls that brought messages."""
    missed: int = 0
    """Pulls that brought none."""
    transferred: int = 0
    """Messages that pulls brought."""


class Rates(NamedTuple):
    """Per second, over one span."""

    stored: float = 0.0
    found: float = 0.0
    missed: float = 0.0
    transferred: float = 0.0


class Traffic:
    """The counters, and their recent past."""

    __slots__ = ("_samples", "found", "missed", "stored", "transferred")

    def __init__(self) -> None:
        self.stored = 0
        self.found = 0
        self.missed = 0
        self.transferred = 0
        self._samples: deque[tuple[int, Counts]] = deque(maxlen=SAMPLES_MAX)

    @property
    def counts(self) -> Counts:
        return Counts(self.stored, self.found, self.missed, self.transferred)

    def sample(self, now_ms: int) -> None:
        """Remember where the counters stand."""
        self._samples.append((now_ms, self.counts))

    def rates(self, now_ms: int) -> list[Rates]:
        """One for each of `WINDOWS_MS`; over less where there is less to look back on."""
        return [self._rates_over(window_ms, now_ms) for window_ms in WINDOWS_MS]

    def _rates_over(self, window_ms: int, now_ms: int) -> Rates:
        since = next((one for one in self._samples if now_ms - one[0] <= window_ms), None)
        if since is None or now_ms <= since[0]:
            return Rates()
        seconds = (now_ms - since[0]) / 1000
        return Rates(*((now - then) / seconds for now, then in zip(self.counts, since[1], strict=True)))
