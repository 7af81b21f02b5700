"""Marks: how safe which part of the log is.  Places in the log that only ever grow.

    appended    written to the log; a kill of the process loses nothing of it
    durable     synced: power loss loses nothing of it (store/flush.py)
    kept        as safe as was promised to whoever sent it: now it is answered
    readable    consumers may see it: nothing that could still be lost against the promise

This is the one place that knows which mark a promise waits for.  Who waits for it is the broker's business.
"""

from enum import Enum

from bolide.model.offsets import LogOffset
from bolide.store.flush import Durability
from bolide.store.log import CommitLog


class Promise(Enum):
    """How safe a message is before anybody hears of it, its sender or a consumer."""

    APPENDED = "appended"
    DURABLE = "durable"


class Marks:
    def __init__(self, log: CommitLog, durability: Durability, promise: Promise) -> None:
        self._log = log
        self._durability = durability
        self.at_once = promise is Promise.APPENDED
        """Whether the promise is kept as soon as a message is in the log, so that nobody ever waits."""

    @property
    def appended(self) -> LogOffset:
        return self._log.end

    @property
    def durable(self) -> LogOffset:
        return self._durability.durable

    @property
    def kept(self) -> LogOffset:
        return self._log.end if self.at_once else self._durability.durable

    readable = kept
