"""Waiting for a condition with a deadline: the only way in which these tests let time pass."""

import threading
import time
from collections.abc import Callable

POLL_SECONDS = 0.05

PATIENCE_SECONDS = 180
"""For whatever has no deadline of its own: many times what a slow and busy machine needs. Only a failure pays it.
The longest thing it must outlast by far: a 5.5.0 client whose first heartbeat meets another one sends its
subscription with the next, 30 s later; until then its pulls are answered with SUBSCRIPTION_NOT_LATEST."""

PATIENCE_MS = 1_000 * PATIENCE_SECONDS


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
