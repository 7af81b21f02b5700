"""A recovery that takes more than a moment: a person at a terminal sees a bar, elsewhere the log tells, and it can be
interrupted."""

import sys
from collections.abc import Callable
from contextlib import ExitStack

from bolide.cli.output import can_be_steered
from bolide.cli.progress import progress_bar
from bolide.net.clock import SystemClock
from bolide.store.progress import Interruptible, LoggedProgress

WORTH_A_BAR_BYTES = 256 * 1024**2
"""Read, not to be read: the total counts all of a segment, of which a new store has used nothing."""


def watch_recovery() -> Interruptible:
    """For the next recovery."""
    return Interruptible(_Bar() if can_be_steered(sys.stderr) else LoggedProgress(SystemClock()))


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
