"""TopicRemover: deletes topics for good, on a thread of its own.

On the event loop a topic's folder is only moved to the trash (`store/trash.py`), however many files it has.  Making
that last and deleting the files follows here; so does what an earlier process has left, and forgetting what groups did
in the topic, some in each turn.  Whoever deletes a topic can wait until it is gone for good: its records stay in the
log until they expire, but nobody goes over them any more (`store/deletions.py`).

Until then the topic is leaving, and there is none of its name (`broker/new_topics.py`): the first message of a new one
would have to wait for the disk, and its groups would go on where they were in the old one.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from bolide.broker.sync_thread import SyncThread
from bolide.broker.table_files import TableFiles
from bolide.model.errors import StoreUnavailable
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import pause
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import in_turns
from bolide.store.disk import NOT_NOW
from bolide.store.store import MessageStore
from bolide.store.tables import OffsetTable

log = logging.getLogger(__name__)

RETRY_S = 1.0


class TopicRemover:
    def __init__(
        self,
        store: MessageStore,
        offsets: OffsetTable,
        files: TableFiles,
        surroundings: Surroundings,
        on_failure: Callable[[], None],
    ) -> None:
        self._store = store
        self._offsets = offsets
        self._files = files
        self._trash = store.queues.trash
        self._trash.is_attended = True
        self._on_failure = on_failure
        threads = surroundings.threads("bolide-delete")
        self._thread = SyncThread(threads, "the deletion of topics", store.durability, NOT_NOW)
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._leaving: dict[str, asyncio.Future[None]] = {}
        self._wanted = asyncio.Event()
        self._trouble = Trouble(log, "the files of deleted topics stay for the moment")

    def delete(
        self, topic: str, *, others_wait: bool = False, host: str | None = None
    ) -> "asyncio.Future[None]":
        """Forget the topic's queues now, and what waits for it, if any messages do; the result comes when that is
        durable, and nobody's progress in the topic is left.  `host` is who wants it."""
        self._store.delete_topic(topic, others_wait=others_wait, host=host)
        return self.forget(topic)

    def forget(self, topic: str) -> "asyncio.Future[None]":
        """The same for a topic that was never written to."""
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((topic, gone))
        self._leaving[topic] = gone
        self._wanted.set()
        return gone

    def is_leaving(self, topic: str) -> bool:
        """Whether the topic is deleted and not gone yet."""
        return topic in self._leaving

    def when_gone(self, topic: str, tell: Callable[[], None]) -> None:
        """Be called once when a topic that is leaving is gone."""
        self._leaving[topic].add_done_callback(lambda _: tell())

    async def gone(self, topic: str) -> None:
        """Wait until the topic is gone, if it is leaving."""
        gone = self._leaving.get(topic)
        if gone is not None:
            await asyncio.shield(gone)  # who waits may be cancelled, and others wait for the same

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
            await self._forget_progress([topic for topic, _ in waiting])
        except Exception as error:
            self._waiting = waiting + self._waiting
            if isinstance(error, OSError) and self._thread.is_final(error):
                self._thread.failed(error)
                self._on_failure()
            raise
        for topic, gone in waiting:
            if self._leaving.get(topic) is gone:
                del self._leaving[topic]
            if not gone.done():
                gone.set_result(None)

    async def _forget_progress(self, topics: Sequence[str]) -> None:
        for topic in topics:
            await in_turns(self._offsets.dropping_topic(topic))
        if topics:
            with suppress(StoreUnavailable):  # whoever deletes a topic hears of that
                await self._files.saved(self._offsets)

    async def _clear(self) -> None:
        """A piece at a time, and when somebody waits for a sync no more than one: that is short and goes first."""
        while await self._thread.write(self._trash.clear_some) and not self._wanted.is_set():
            pass

    def close(self) -> None:
        """End the thread.  What is left is done when the tables are written and the store is closed."""
        self._thread.close()
        self._trash.is_attended = False
        for topic in self._leaving:
            self._offsets.drop_topic(topic)
