"""TableFiles: the tables of a broker, each with its file in `config/`, written on one thread."""

import asyncio
import logging
import os
from concurrent.futures import Executor
from typing import TypeVar

from bolide.broker.part import Work
from bolide.broker.table_writer import TableWriter
from bolide.model.clock import Clock
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable

log = logging.getLogger(__name__)

T = TypeVar("T", bound=PersistedTable)


class TableFiles:
    def __init__(self, disk: Disk, root: str, clock: Clock, thread: Executor) -> None:
        self._disk = disk
        self._folder = os.path.join(root, "config")
        self._clock = clock
        self._thread = thread
        self._writers: dict[PersistedTable, TableWriter] = {}

    def open(self, kind: type[T], name: str, period_ms: int) -> T:
        """A table with what its file holds; a change is in the file after `period_ms`, or sooner if somebody waits."""
        table = kind(self._disk, os.path.join(self._folder, name), self._clock)
        table.load()
        self._writers[table] = TableWriter(table, period_ms, self._thread)
        return table

    def written(self, table: PersistedTable) -> "asyncio.Future[None]":
        """Done when the file holds the table as it is now, or newer."""
        return self._writers[table].written()

    def work(self) -> list[Work]:
        return [(os.path.basename(table.file.path), writer.run()) for table, writer in self._writers.items()]

    def close(self) -> None:
        """Write down what no background work has written.  What cannot be written is said."""
        self._thread.shutdown(wait=True)
        for table in self._writers:
            try:
                table.persist()
            except OSError as error:
                log.error("%s is left as it was written last: %s", table.file.path, error.strerror or error)
            except Exception:  # a stop always reaches the store
                log.exception("%s is left as it was written last", table.file.path)
