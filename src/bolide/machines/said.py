"""Said: what was written to a log lately.  Who can make a server say something could else fill its disk with it.

For what strangers provoke, all of it together; trouble of our own work is said by `net/trouble.py`.
"""

from collections.abc import Hashable

PERIOD_MS = 600_000
"""For so long the same thing is not said again."""

LINES_MAX = 64
"""Different things that are said in a period; of more than that nobody reads the last."""


class Said:
    def __init__(self) -> None:
        self._said: dict[Hashable, int] = {}  # what was said when, the oldest first

    def is_news(self, now_ms: int, what: Hashable) -> bool:
        """Whether to say it.  Asking counts as having said it."""
        while self._said:
            oldest = next(iter(self._said))
            if now_ms - self._said[oldest] < PERIOD_MS:
                break
            del self._said[oldest]
        if what in self._said or len(self._said) >= LINES_MAX:
            return False
        self._said[what] = now_ms
        return True
