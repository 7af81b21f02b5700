"""SyncThread: one thread that syncs, and what becomes of a sync that fails.

That is final: whoever synced the same files again would be told that all is well.  So the store has failed with it,
unless the error says that the sync was not even begun.  A task that waits for a sync can be cancelled, the sync itself
cannot; when it then fails nobody is left to hear of it, and `close` sees to it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future
from typing import TypeVar

from bolide.store.flush import Durability

log = logging.getLogger(__name__)

T = TypeVar("T")


class SyncThread:
    def __init__(
        self, thread: Executor, what: str, durability: Durability, harmless: Collection[int] = ()
    ) -> None:
        """`what` is synced here; the numbers of `harmless` errors are those after which it can be tried again."""
        self._thread = thread
        self._what = what
        self._durability = durability
        self._harmless = harmless
        self._syncing: Future[object] | None = None

    async def sync(self, work: Callable[[], object]) -> None:
        """Run a sync; its `OSError` comes here, or to `close`."""
        self._syncing = self._thread.submit(work)
        await asyncio.wrap_future(self._syncing)

    async def write(self, work: Callable[[], T]) -> T:
        """Run something whose failure leaves everything as true as it was."""
        self._syncing = None
        return await asyncio.wrap_future(self._thread.submit(work))

    def is_final(self, error: OSError) -> bool:
        return error.errno not in self._harmless

    def failed(self, error: OSError) -> None:
        """A sync has failed for good."""
        log.critical("syncing %s failed: %s", self._what, error)
        self._durability.failed(error)

    def close(self) -> None:
        """End the thread.  A sync that outlived its task may have failed since."""
        self._thread.shutdown(wait=True)
        if self._syncing is None or self._syncing.cancelled() or self._durability.failure is not None:
            return
        error = self._syncing.exception()
        if isinstance(error, OSError) and self.is_final(error):
            self.failed(error)
