"""How far a long recovery is, said now and then; and a way to end it before it is over."""

import logging
from collections.abc import Callable

from bolide.model.clock import Clock
from bolide.model.errors import RecoveryInterrupted

log = logging.getLogger(__name__)

EVERY_MS = 3_000
MIB = 1024**2

Progress = Callable[[int, int], None]
"""Called with the bytes of the log that were walked, and with how many there are to walk: at most so many at first, at
last exactly as many as were walked.  May raise: a recovery can end anywhere, and the next one begins again."""


class LoggedProgress:
    """Lines in the log; a recovery that takes no longer than a moment has none."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_ms = clock.monotonic_ms()

    def __call__(self, done: int, total: int) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._last_ms >= EVERY_MS and done < total:
            self._last_ms = now_ms
            log.info(
                "recovering: looked at %d of at most %d MiB of the log, %d %%",
                done // MIB,
                total // MIB,
                done * 100 // total,
            )


class Interruptible:
    """Passes reports on until `interrupt` was called, from any thread or signal handler; then it ends the recovery."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._is_interrupted = False

    def interrupt(self) -> None:
        self._is_interrupted = True

    def __call__(self, done: int, total: int) -> None:
        if self._is_interrupted:
            self._progress(done, done)  # the last report: who shows them need not wait for more
            raise RecoveryInterrupted("stopped while recovering; the next start begins the recovery again")
        self._progress(done, total)
