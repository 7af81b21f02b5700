"""Waiting for a condition with a deadline: the only way in which these tests let time pass."""

import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.05


class Overdue(AssertionError):
    """A condition did not come true in time."""


def wait_until(
    condition: Callable[[], object],
    seconds: float,
    what: str | Callable[[], str],
    poll_seconds: float = POLL_SECONDS,
) -> None:
    """Return as soon as the condition is true; after the deadline raise with what was waited for."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            raise Overdue(f"after {seconds:g} s: {what() if callable(what) else what}")
        pause.wait(poll_seconds)


def let_pass(seconds: float) -> None:
    """Let time pass where the time itself is the subject: a measured interval, a proof that nothing happens."""
    threading.Event().wait(seconds)
