"""Doorbell: how a thread that waits for input hears that something else has happened, Ctrl-C included.

The first Ctrl-C is a wish that whoever waits looks for; the second ends the command as it always does.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Doorbell:
    """Rung by any thread and by a signal, heard by the one that waits."""

    def __init__(self) -> None:
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.is_interrupted = False

    def ring(self) -> None:
        os.eventfd_write(self._bell, 1)

    def wait(self, descriptor: int | None = None, timeout_s: float | None = None) -> bool:
        """Until the descriptor can be read, the bell rings or the time is over; whether it was the descriptor."""
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        if descriptor is not None:
            poll.register(descriptor, select.POLLIN)
        ready = {number for number, _ in poll.poll(None if timeout_s is None else max(0, timeout_s) * 1000)}
        if self._bell in ready:
            os.eventfd_read(self._bell)
        return descriptor in ready

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """The first Ctrl-C rings it."""

        def heard(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.is_interrupted = True
            self.ring()

        before = signal.signal(signal.SIGINT, heard)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def close(self) -> None:
        os.close(self._bell)
