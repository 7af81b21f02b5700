"""Flusher: decides when the log is synced, on a thread of its own.

Under SYNC_FLUSH it syncs as soon as somebody waits, and one sync serves everybody whose record lies before it.
ASYNC_FLUSH syncs by interval once enough pages are dirty.  After a failed write or sync of the log, or any error that
ends the syncing, nothing is ever acknowledged again: `failure` is set and the broker ends.
"""

import asyncio
import logging
from collections.abc import Callable

from bolide.broker.config import BrokerConfig
from bolide.broker.safety import Safety
from bolide.broker.sync_thread import SyncThread
from bolide.net.surroundings import Surroundings
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)


class Flusher:
    def __init__(
        self,
        store: MessageStore,
        settings: Callable[[], BrokerConfig],
        surroundings: Surroundings,
        safety: Safety,
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = surroundings.clock
        self._safety = safety
        self._thread = SyncThread(surroundings.threads("bolide-sync"), "the commit log", store.durability)
        self._wanted = asyncio.Event()
        self._last_sync_ms = self._clock.monotonic_ms()
        self.failure: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    def wake(self) -> None:
        """Sync soon: somebody waits, or something has failed."""
        self._wanted.set()

    async def run(self) -> None:
        """Sync for ever; ends when the log has failed."""
        try:
            await self._sync_when_due()
        except Exception as error:  # a broker that syncs no more must not go on as if it did
            log.critical("syncing ended with an unforeseen error", exc_info=error)
            self._give_up(error)

    async def _sync_when_due(self) -> None:
        while not self.failure.done():
            interval_ms = self._settings().flush_interval_ms
            try:
                async with asyncio.timeout(interval_ms / 1000):
                    await self._wanted.wait()
            except TimeoutError:
                if self._store.durability.failure is None and not self._is_due():
                    continue
            self._wanted.clear()
            if self._store.durability.failure is not None:  # a write has failed
                self._give_up(self._store.durability.failure)
            else:
                await self._sync()

    def close(self) -> None:
        """End the thread."""
        self._thread.close()

    def _is_due(self) -> bool:
        config = self._settings()
        pages = self._store.durability.dirty_pages
        if pages == 0:
            return False
        thorough_ms = self._last_sync_ms + config.flush_thorough_ms
        return pages >= config.flush_pages_least or self._clock.monotonic_ms() >= thorough_ms

    async def _sync(self) -> None:
        durability = self._store.durability
        point = durability.next_point()
        if point is not None:
            try:
                await self._thread.sync(point.run)
            except OSError as error:
                durability.failed(error)
                self._give_up(error)
                return
            if durability.failure is not None:  # something else has failed meanwhile
                self._give_up(durability.failure)
                return
            durability.reached(point)
        self._last_sync_ms = self._clock.monotonic_ms()
        self._safety.moved()

    def _give_up(self, error: Exception) -> None:
        log.critical("the commit log failed, nothing more is acknowledged: %s", error)
        self._safety.abandon()
        self.failure.set_result(error)
