"""What a person at a terminal sees of a recovery that takes more than a moment: a bar.  Elsewhere the log tells."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

from bolide.cli.progress import progress_bar
from bolide.store.progress import Progress

WORTH_A_BAR_BYTES = 256 * 1024**2
"""Read, not to be read: the total counts all of a segment, of which a new store has used nothing."""


def recovery_bar() -> Progress | None:
    """A bar for the next recovery; None where nobody watches."""
    return _Bar() if sys.stderr.isatty() else None


class _Bar:
    """Appears when it is worth one, goes with the last report."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._advance: Callable[[int], None] | None = None
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        if done >= total:
            self._stack.close()
            return
        if self._advance is None and done >= WORTH_A_BAR_BYTES:
            self._advance = self._stack.enter_context(progress_bar("recovering", total))
        if self._advance is not None:
            self._advance(done - self._done)
        self._done = done
