"""Indexer: keeps the key index a moment behind the log, and answers questions to it, on a thread of its own.

The event loop owns the log, so it hands out what is to be indexed and where found records lie; the thread does
the rest.  Its jobs run one at a time, and nobody else touches the index while one runs.  A send costs nothing here, and
no send waits: while the disk is full, indexing pauses and catches up later.

Questions take turns, host after host and connection after connection, and a long search goes on behind the others: so
whoever asks once waits for a piece of everybody else's search, and not for all that somebody asks.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bolide.machines.fair_line import Places
from bolide.model.addresses import host_of
from bolide.model.limits import QUESTIONS_MAX, QUESTIONS_OF_ONE_MAX, QUESTIONS_SMALL
from bolide.model.steps import Steps
from bolide.net.fair_turn import FairTurns
from bolide.net.link import Link
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import pause, ticks
from bolide.net.trouble import Trouble, goes_on
from bolide.store.index_keys import KeyIndex
from bolide.store.index_query import Lookup, places_of, read_matching
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)

WAKE_S = 0.05
QUIET_S = 0.2
"""How much longer it waits while nobody writes; a question does not wait for it."""

RETRY_MS = 2_000
SYNC_MS = 30_000
"""A crash costs that what was indexed in about twice this time is indexed again."""

FIND_WAIT_MS = 1_000
"""How long a question waits until messages stored before it are indexed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """Records in the order of the log, and how far the index was."""

    records: Sequence[bytes] = ()
    last_stored_ms: int = 0
    last_offset: int = 0


class Indexer:
    def __init__(self, store: MessageStore, surroundings: Surroundings) -> None:
        self._store = store
        self._clock = surroundings.clock
        self._thread = surroundings.threads("bolide-index")
        self._turn = asyncio.Lock()
        self._questions = Places(
            "questions for messages by key", QUESTIONS_MAX, QUESTIONS_SMALL, QUESTIONS_OF_ONE_MAX
        )
        self._searching = FairTurns()
        self._log_start = 0
        self._synced_ms = self._clock.monotonic_ms()
        self._retry_ms = 0
        self._trouble = Trouble(log, "indexing messages pauses")

    @goes_on("indexing messages")
    async def run(self) -> None:
        """Index for ever; ends at once in a store without an index, and when a sync of the index has failed."""
        index = self._store.index
        if index is None:
            return
        end = -1
        async for _ in ticks(WAKE_S):
            if self._store.log.end == end:  # nobody writes
                await pause(QUIET_S)
            end = self._store.log.end
            now_ms = self._clock.monotonic_ms()
            if index.failure is not None:
                return
            if now_ms < self._retry_ms:
                continue
            try:
                await self._round(index, now_ms)
                self._trouble.over()
            except OSError as error:
                self._retry_ms = now_ms + RETRY_MS
                self._trouble.met(error)

    async def find(self, link: Link, lookup: Lookup) -> Found:
        """The messages that were stored before this was asked, as far as they can be indexed in a moment.  Nothing, for
        whoever has gone before his turn."""
        index = self._store.index
        if index is None:
            return Found()
        with self._questions.place(host_of(link.remote), link):
            await self._catch_up(index)
            search = index.finding(lookup.hash, lookup.count_max, lookup.begin_ms, lookup.end_ms)
            while link.is_open:
                async with self._searching.turn(link):
                    async with self._turn:
                        offsets, last = await self._do(lambda: (_next_of(search), index.last_update))
                    if offsets is not None:
                        return Found(await self._read(lookup, offsets), *last)
            return Found()

    async def _read(self, lookup: Lookup, offsets: Sequence[int]) -> Sequence[bytes]:
        start = self._store.queues.deletions.place_of(lookup.topic)
        places = places_of(self._store.log, offsets, start, self._store.reader.readable_end)
        return await self._do(lambda: read_matching(lookup, places)) if places else []

    def close(self) -> None:
        self._thread.shutdown(wait=True)

    async def _round(self, index: KeyIndex, now_ms: int) -> None:
        limit = self._store.reader.readable_end
        while await self._add_part(index, limit):
            pass
        if now_ms >= self._synced_ms + SYNC_MS:
            self._synced_ms = now_ms
            async with self._turn:
                if index.is_dirty:
                    await self._do(index.sync)
        if self._store.log.start > self._log_start:
            self._log_start = log_start = self._store.log.start
            async with self._turn:
                await self._do(lambda: index.drop_before(log_start))

    async def _catch_up(self, index: KeyIndex) -> None:
        limit = self._store.reader.readable_end
        deadline_ms = self._clock.monotonic_ms() + FIND_WAIT_MS
        try:
            while await self._add_part(index, limit) and self._clock.monotonic_ms() < deadline_ms:
                pass
        except OSError as error:  # what is indexed already can be found on a full disk too
            self._trouble.met(error)

    async def _add_part(self, index: KeyIndex, limit: int) -> bool:
        """Index some more; False when everything before the limit is indexed."""
        async with self._turn:
            if index.needs_repair:
                await self._do(index.repair)
            part = index.next_part(self._store.log, limit)
            if part is None:
                return False
            await self._do(lambda: index.add(part))
            return True

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _next_of(search: Steps[Sequence[int]]) -> Sequence[int] | None:
    """One step; what was found after the last one, None before."""
    try:
        next(search)
    except StopIteration as end:
        found: Sequence[int] = end.value
        return found
    return None
