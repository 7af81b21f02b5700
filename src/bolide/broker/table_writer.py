"""TableWriter: keeps a table's file in step with the table, without holding up the event loop.

The file is written some time after a change, or at once when somebody waits for it.  Its text is made on the loop that
owns the table, a piece per turn; writing it takes a sync, so that runs on a thread.
"""

import asyncio
import logging
from concurrent.futures import Executor

from bolide.net.turns import join_pieces
from bolide.store.tables.persisted import PersistedTable

log = logging.getLogger(__name__)


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
        self._waiting: list[asyncio.Future[None]] = []

    def written(self) -> "asyncio.Future[None]":
        """Done when the file holds the table as it is now, or newer."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self._soon.set()
        self._behind.set()
        return future

    async def run(self) -> None:
        """Write for ever.  While the disk refuses, those who wait go on waiting."""
        while True:
            await self._behind.wait()
            try:
                async with asyncio.timeout(self._period_ms / 1000):
                    await self._soon.wait()
            except TimeoutError:
                pass
            self._soon.clear()
            self._behind.clear()
            waiting, self._waiting = self._waiting, []
            if await self._write():
                for future in waiting:
                    if not future.done():
                        future.set_result(None)
            else:
                self._waiting = waiting + self._waiting

    async def _write(self) -> bool:
        if not self._table.take_dirty():
            return True
        try:
            data = await join_pieces(self._table.pieces())
            await asyncio.get_running_loop().run_in_executor(self._thread, self._table.file.save, data)
        except OSError as error:
            log.error("cannot write %s, trying again: %s", self._table.file.path, error)
            self._table.mark_dirty()
            return False
        except asyncio.CancelledError:
            self._table.mark_dirty()
            raise
        except Exception:  # what cannot be written must not end the writing of what can
            log.exception("cannot write %s, trying again", self._table.file.path)
            self._table.mark_dirty()
            return False
        return True
