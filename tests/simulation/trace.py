"""Trace: everything that happened, in order, as one number; and as text for who wants to read it.

Two runs of a seed have the same trace.  When they have not, something came into the world that is not in its seed.
"""

import hashlib
import logging
from collections.abc import Callable

from tests.simulation.process import current


class Trace:
    def __init__(self, now: Callable[[], float], show: Callable[[str], None] | None = None) -> None:
        self._now = now
        self._show = show
        self._hash = hashlib.blake2b(digest_size=16)
        self.events = 0

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def note(self, text: str, data: bytes = b"") -> None:
        """Something that happened; `data` counts and is not shown."""
        line = f"{self._now():.6f} {text}"
        self.events += 1
        self._hash.update(line.encode())
        self._hash.update(data)
        if self._show is not None:
            self._show(line)


class LogToTrace(logging.Handler):
    """What the servers and clients say, each line with its time and its process, for a replay."""

    def __init__(self, now: Callable[[], float], show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._now = now
        self._say = show

    def emit(self, record: logging.LogRecord) -> None:
        whose = current() or "world"
        self._say(f"{self._now():.6f}   {whose} {record.levelname.lower()}: {record.getMessage()}")
