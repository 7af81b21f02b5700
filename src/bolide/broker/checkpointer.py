"""Checkpointer: makes queue files durable now and then, and writes down how far a recovery need not look.

It has a thread of its own, because syncing thousands of queue files takes its time and nobody may wait for that: not
the log, whose sync answers senders, and not the tables.  A failed sync of a queue file is as final as one of the log:
the entries in it can only be trusted again after a recovery.
"""

import asyncio
import logging
from collections.abc import Callable

from bolide.broker.config import BrokerConfig
from bolide.broker.sync_thread import SyncThread
from bolide.model.errors import StoreUnavailable
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import ticks
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import in_turns
from bolide.store.disk import NOT_OF_THE_DISK
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)

LOOK_S = 1.0
BEHIND_BYTES_MAX = 512 * 1024**2
"""More of the log than this is not left without a checkpoint: recovery walks a gigabyte in about a second."""

PAUSE_MS = 5_000
"""Between two checkpoints, however much is written: with many queues each one is hard work for the disk."""


class Checkpointer:
    def __init__(
        self,
        store: MessageStore,
        settings: Callable[[], BrokerConfig],
        surroundings: Surroundings,
        on_failure: Callable[[], None],
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = surroundings.clock
        self._on_failure = on_failure
        threads = surroundings.threads("bolide-checkpoint")
        self._thread = SyncThread(threads, "the consume queues", store.durability, NOT_OF_THE_DISK)
        # What a recovery has found is not left waiting for the next one.
        waits_ms = 0 if store.checkpoints.end < store.log.end else settings().flush_queues_thorough_ms
        self._due_ms = self._clock.monotonic_ms() + waits_ms
        self._last_ms = self._clock.monotonic_ms()
        self._unsynced = Trouble(
            log, "cannot open consume queues to sync them, and a recovery would take longer"
        )
        self._unwritten = Trouble(log, "cannot write the checkpoint, and a recovery would take longer")
        self._unforeseen = Trouble(log, "a checkpoint met an unforeseen error and is tried again")
        self._turn = asyncio.Lock()

    @goes_on("making checkpoints")
    async def run(self) -> None:
        """Checkpoint for ever; ends when a sync has failed."""
        async for _ in ticks(LOOK_S):
            if self._store.durability.failure is not None:
                return
            if self._is_due():
                try:
                    await self.checkpoint()
                except Exception as error:  # a recovery would only take longer
                    self._unforeseen.met(error)
                else:
                    self._unforeseen.over()
                self._last_ms = self._clock.monotonic_ms()
                self._due_ms = self._last_ms + self._settings().flush_queues_thorough_ms

    async def checkpoint(self) -> None:
        """One checkpoint, now."""
        async with self._turn:
            await self._checkpoint()

    async def _checkpoint(self) -> None:
        try:
            point = await in_turns(self._store.checkpointing())
        except StoreUnavailable:  # a queue cannot be written; whoever writes behind has said so
            return
        if point is None:
            return
        try:
            await self._thread.sync(point.sync)
        except OSError as error:
            if self._thread.is_final(error):
                self._thread.failed(error)
                self._on_failure()
            else:
                self._unsynced.met(error)
            return
        self._unsynced.over()
        try:
            await self._thread.write(point.write)
        except OSError as error:
            self._unwritten.met(error)
            return
        self._unwritten.over()
        self._store.checkpoint_reached(point)

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    def _is_due(self) -> bool:
        now_ms = self._clock.monotonic_ms()
        checkpoints, durable = self._store.checkpoints, self._store.durability.durable
        if now_ms >= self._due_ms:
            return True
        return durable - checkpoints.end >= BEHIND_BYTES_MAX and now_ms >= self._last_ms + PAUSE_MS
