"""TopicRemover: deletes topics for good, on a thread of its own.

On the event loop a topic's folder is only moved to the trash (`store/trash.py`), however many files it has.  Making
that last and deleting the files follows here; so does what an earlier process has left.  Whoever deletes a topic can
wait until it is gone for good: its records stay in the log until they expire, but nobody goes over them any more
(`store/deletions.py`).
"""

import asyncio
import logging
from collections.abc import Callable

from bolide.broker.sync_thread import SyncThread
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import pause
from bolide.net.trouble import Trouble, goes_on
from bolide.store.disk import NOT_NOW
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)

RETRY_S = 1.0


class TopicRemover:
    def __init__(
        self, store: MessageStore, surroundings: Surroundings, on_failure: Callable[[], None]
    ) -> None:
        self._store = store
        self._trash = store.queues.trash
        self._on_failure = on_failure
        threads = surroundings.threads("bolide-delete")
        self._thread = SyncThread(threads, "the deletion of topics", store.durability, NOT_NOW)
        self._waiting: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        self._trouble = Trouble(log, "the files of deleted topics stay for the moment")

    def delete(self, topic: str, *, others_wait: bool = False) -> "asyncio.Future[None]":
        """Forget the topic's queues now, and what waits for it, if any messages wait; the result comes when that is
        durable."""
        self._store.delete_topic(topic, others_wait=others_wait)
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(gone)
        self._wanted.set()
        return gone

    @goes_on("deleting topics")
    async def run(self) -> None:
        """Delete for ever; ends when the store has failed."""
        self._wanted.set()  # a stop may have left something, or an error
        while self._store.durability.failure is None:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._settle()
                await self._clear()
                self._trouble.over()
            except OSError as error:
                if self._store.durability.failure is None:
                    self._trouble.met(error)
                    await pause(RETRY_S)
                    self._wanted.set()

    async def _settle(self) -> None:
        """One sync for all topics that were deleted before it began."""
        waiting, self._waiting = self._waiting, []
        try:
            await self._thread.sync(self._trash.settle)
        except Exception as error:
            self._waiting = waiting + self._waiting
            if isinstance(error, OSError) and self._thread.is_final(error):
                self._thread.failed(error)
                self._on_failure()
            raise
        for gone in waiting:
            if not gone.done():
                gone.set_result(None)

    async def _clear(self) -> None:
        """One topic after the other, unless somebody waits for a sync: that is short and goes first."""
        while not self._wanted.is_set() and await self._thread.write(self._trash.clear_one):
            pass

    def close(self) -> None:
        """End the thread."""
        self._thread.close()
