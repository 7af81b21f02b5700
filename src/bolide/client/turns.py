"""Turns: so many pieces of work at once, and the queues one after the other.

A queue gets a turn for one call of the listener and then waits behind the others, so that one that is always full
keeps nobody waiting.  Never says what the work is.
"""

import asyncio
import logging
from collections import deque
from typing import Protocol

from bolide.client.held import HeldQueue
from bolide.client.rounds import saying_if_slow, wait_at_most
from bolide.net.tasks import CANCELLED_MS, Tasks
from bolide.record.stored import StoredMessage

log = logging.getLogger(__name__)


class Worker(Protocol):
    def take(self, held: HeldQueue) -> list[StoredMessage]:
        """What is to be done next; nothing, perhaps."""

    async def work(self, held: HeldQueue, messages: list[StoredMessage]) -> None:
        """Do it."""

    def has_more(self, held: HeldQueue) -> bool:
        """Whether there is something to take now."""


class Turns:
    """Runs one worker."""

    def __init__(self, worker: Worker, concurrency: int) -> None:
        self._worker = worker
        self.concurrency = concurrency
        self._tasks = Tasks()
        self._running = 0
        self._stopped = False
        self._waiting: deque[HeldQueue] = deque()
        self._in_line: set[HeldQueue] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def offer(self, held: HeldQueue) -> None:
        """The queue has something to do."""
        self._line_up(held)
        self._serve()

    def resize(self, concurrency: int) -> None:
        self.concurrency = concurrency
        self._serve()

    def stop(self) -> None:
        """Begin nothing."""
        self._stopped = True

    def go_on(self) -> None:
        self._stopped = False
        self._serve()

    async def close(self, timeout_ms: int) -> None:
        """Begin nothing; wait for what runs, but not longer than this; then cancel what can be cancelled, and leave the
        rest alone.
        """
        self.stop()
        may_end = wait_at_most(self._idle, timeout_ms)
        if not await saying_if_slow(may_end, lambda: self._what_runs(timeout_ms)):
            log.warning(
                "%d calls of the listener still run after %g s; their messages will come again",
                *(self._running, timeout_ms / 1000),
            )
        await self._tasks.close_within(CANCELLED_MS)

    def _what_runs(self, timeout_ms: int) -> str:
        return f"{self._running} calls of the listener to end, for {timeout_ms / 1000:g} s at most"

    def _line_up(self, held: HeldQueue) -> None:
        if held.takes_work and held not in self._in_line:
            self._in_line.add(held)
            self._waiting.append(held)

    def _serve(self) -> None:
        while self._running < self.concurrency and self._waiting and not self._stopped:
            held = self._waiting.popleft()
            self._in_line.discard(held)
            if not held.takes_work or not (messages := self._worker.take(held)):
                continue
            if self._worker.has_more(held):
                self._line_up(held)
            self._running += 1
            self._idle.clear()
            self._tasks.start(self._run(held, messages), f"listener of {held.queue}")

    async def _run(self, held: HeldQueue, messages: list[StoredMessage]) -> None:
        try:
            await self._worker.work(held, messages)
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
            self._serve()
