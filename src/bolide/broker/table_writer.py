"""TableWriter: keeps a table's file in step with the table, without holding up the event loop.

The file is written some time after a change, or at once when somebody waits for it.  Its text is made on the loop that
owns the table, a piece per turn; writing it takes a sync, so that runs on a thread.
"""

import asyncio
import logging
import os
from concurrent.futures import Executor

from bolide.model.errors import StoreUnavailable
from bolide.net.trouble import Trouble
from bolide.net.turns import join_pieces
from bolide.store.tables.persisted import PersistedTable

log = logging.getLogger(__name__)

RETRY_MS = 1_000
"""A disk that refuses is not asked more often than this, unless somebody waits."""

Waiting = list["asyncio.Future[None]"]


class TableWriter:
    def __init__(self, table: PersistedTable, period_ms: int, thread: Executor) -> None:
        self._table = table
        self._period_ms = period_ms
        self._thread = thread
        self._soon = asyncio.Event()
        self._behind = asyncio.Event()
        if table.is_dirty:
            self._behind.set()
        table.on_dirty = self._behind.set
        self._waiting: Waiting = []  # until it is written
        self._asking: Waiting = []  # until it was tried
        self._trouble = Trouble(log, f"cannot write {table.file.path}, trying again")

    def written(self) -> "asyncio.Future[None]":
        """Done when the file holds the table as it is now, or newer, however long that takes."""
        return self._wait(self._waiting)

    def saved(self) -> "asyncio.Future[None]":
        """The same, but `StoreUnavailable` when the file cannot be written now."""
        return self._wait(self._asking)

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await self._behind.wait()
            period_ms = max(self._period_ms, RETRY_MS) if self._trouble else self._period_ms
            try:
                async with asyncio.timeout(period_ms / 1000):
                    await self._soon.wait()
            except TimeoutError:
                pass
            self._soon.clear()
            self._behind.clear()
            waiting, self._waiting = self._waiting, []
            asking, self._asking = self._asking, []
            try:
                await self._write()
            except Exception as error:  # what cannot be written must not end the writing of what can
                self._table.mark_dirty()
                self._waiting = waiting + self._waiting
                _refuse(asking, os.path.basename(self._table.file.path), self._trouble.met(error))
            except asyncio.CancelledError:
                self._table.mark_dirty()
                raise
            else:
                self._trouble.over()
                _tell(waiting + asking)

    async def _write(self) -> None:
        if self._table.take_dirty():
            data = await join_pieces(self._table.pieces())
            await asyncio.get_running_loop().run_in_executor(self._thread, self._table.file.save, data)

    def _wait(self, among: Waiting) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        among.append(future)
        self._soon.set()
        self._behind.set()
        return future


def _tell(waiting: Waiting) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)


def _refuse(asking: Waiting, name: str, reason: str) -> None:
    for future in asking:
        if not future.done():
            future.set_exception(
                StoreUnavailable(
                    f"what was asked for is done, but {name} cannot be written: {reason}; unless it can be before the"
                    " broker ends, a restart brings back what was before"
                )
            )
