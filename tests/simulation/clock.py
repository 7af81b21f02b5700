"""HostClock: the time as one host sees it.

The wall clock may be wrong, drift and step; the monotonic clock is the event loop's, so that a timer of so many
milliseconds ends when its deadline has come.
"""

from collections.abc import Callable

EPOCH_MS = 1_700_000_000_000


class HostClock:
    """See `model.clock.Clock`.  `drift` is by how much the wall clock runs fast: 1e-4 is about nine seconds a day."""

    def __init__(self, now: Callable[[], float], *, skew_ms: int = 0, drift: float = 0.0) -> None:
        self._now = now
        self._skew_ms = skew_ms
        self._drift = drift

    def now_ms(self) -> int:
        return EPOCH_MS + self._skew_ms + int(self._now() * 1000 * (1 + self._drift))

    def monotonic_ms(self) -> int:
        return int(self._now() * 1000)

    def step(self, ms: int) -> None:
        """Somebody sets the wall clock."""
        self._skew_ms += ms
