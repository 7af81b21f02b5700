"""SyncThread: one thread that syncs, and what it last met.

A task that waits for a sync can be cancelled, the sync itself cannot.  When it then fails nobody is left to hear of
it, and whoever synced the same files again would be told that all is well.  So `close` hands the failure over.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future


class SyncThread:
    def __init__(self, thread: Executor) -> None:
        self._thread = thread
        self._syncing: Future[None] | None = None

    async def sync(self, work: Callable[[], None]) -> None:
        """Run a sync; its `OSError` comes here, or out of `close`."""
        self._syncing = self._thread.submit(work)
        await asyncio.wrap_future(self._syncing)

    async def write(self, work: Callable[[], None]) -> None:
        """Run something whose failure leaves everything as true as it was."""
        self._syncing = None
        await asyncio.wrap_future(self._thread.submit(work))

    def close(self) -> OSError | None:
        """End the thread; the failure of its last sync, whether somebody heard of it before or not."""
        self._thread.shutdown(wait=True)
        if self._syncing is None or self._syncing.cancelled():
            return None
        error = self._syncing.exception()
        return error if isinstance(error, OSError) else None
