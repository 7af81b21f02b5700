"""Said: what was written to a log lately.  Who can make a server say something could else fill its disk with it.

For what strangers provoke, all of it together; trouble of our own work is said by `net/trouble.py`.
"""

from collections.abc import Hashable

PERIOD_MS = 600_000
"""For so long the same thing is not said again."""

LINES_MAX = 64
"""Different things that are said in a period; of more than that nobody reads the last."""

LINES_OF_ONE_MAX = 8
"""Those of them that one of those who provoke them can bring about."""


class Said:
    def __init__(self) -> None:
        self._said: dict[Hashable, tuple[int, str | None]] = {}  # what, when and by whom, the oldest first

    def is_news(self, now_ms: int, what: Hashable, *, by: str | None = None) -> bool:
        """Whether to say it, of all that this one provokes.  Asking counts as having said it."""
        while self._said:
            oldest = next(iter(self._said))
            if now_ms - self._said[oldest][0] < PERIOD_MS:
                break
            del self._said[oldest]
        if what in self._said or len(self._said) >= LINES_MAX:
            return False
        if by is not None and sum(one == by for _, one in self._said.values()) >= LINES_OF_ONE_MAX:
            return False
        self._said[what] = now_ms, by
        return True
