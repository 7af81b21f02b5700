"""TableFiles: the tables of a broker, each with its file in `config/`, written on one thread."""

import asyncio
import logging
import os
from concurrent.futures import Executor
from typing import TypeVar

from bolide.broker.part import Work
from bolide.broker.table_writer import TableWriter
from bolide.model.clock import Clock
from bolide.net.trouble import Trouble
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
        """Done when the file holds the table as it is now, or newer, however long that takes."""
        return self._writers[table].written()

    def saved(self, table: PersistedTable) -> "asyncio.Future[None]":
        """The same, but `StoreUnavailable` when the file cannot be written now."""
        return self._writers[table].saved()

    def work(self) -> list[Work]:
        return [(os.path.basename(table.file.path), writer.run()) for table, writer in self._writers.items()]

    def close(self) -> list[str]:
        """Write down what no background work has written; says and returns what could not be."""
        self._thread.shutdown(wait=True)
        left: list[str] = []
        for table in self._writers:
            try:
                table.persist()
            except Exception as error:  # the others can be
                left.append(table.file.path)
                Trouble(log, f"{table.file.path} is left as it was written last").met(error)
        return left
