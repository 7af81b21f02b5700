"""WriteBehind: queue entries go to their files some milliseconds after their messages, in runs."""

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice

from bolide.net.trouble import Trouble
from bolide.net.turns import Slices
from bolide.store.append import QueueTail
from bolide.store.store import STEP_QUEUES, MessageStore

log = logging.getLogger(__name__)

WAIT_S = 0.01
"""How long entries stay in memory only; a crash in between costs nothing but their rebuilding."""

RETRY_S = 1.0


class WriteBehind:
    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._tails: dict[QueueTail, None] = {}  # with entries that no run has taken yet
        self._run: dict[QueueTail, None] = {}  # that are being written
        self._writing = Slices(self._write_some)
        self._timer: asyncio.TimerHandle | None = None
        self._trouble = Trouble(log, "queue entries cannot be written; nothing more is taken until they can")

    def add(self, tails: Iterable[QueueTail]) -> None:
        """These queues have entries to write."""
        for tail in tails:
            self._tails[tail] = None
        self._arm(WAIT_S)

    def close(self) -> None:
        """What was not written is written when the store is closed."""
        self._writing.close()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, seconds: float) -> None:
        if self._timer is None and not self._run:
            self._timer = self._loop.call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._run, self._tails = self._tails, {}
        self._writing.go()

    def _try_again(self) -> bool:
        self._tails, self._run = self._run | self._tails, {}
        self._arm(RETRY_S)
        return False

    def _write_some(self) -> bool:
        tails = list(islice(self._run, STEP_QUEUES))
        try:
            self._store.write_behind(tails)
        except Exception as error:
            self._trouble.met(error)
            return self._try_again()
        self._trouble.over()
        for tail in tails:
            del self._run[tail]
        if not self._run and self._tails:
            self._arm(WAIT_S)
        return bool(self._run)
