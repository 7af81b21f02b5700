"""WriteTable: which batch of each bulk writer is under way, and where in the log it began; `config/bulkWrites.json`.

A bulk writer (a streaming query of Spark, for example) numbers its batches and writes one after the other.  What a
batch has stored lies behind the place where it began, so whoever tries a batch again finds there what is stored
already.  An entry is durable before its batch stores anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest
from bolide.model.limits import WRITERS_MAX
from bolide.model.numbers import is_int64
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, member_table


@dataclass(frozen=True, slots=True)
class BatchBegun:
    """A batch, the end of the log when it first began here, and the brokers that it may have written to."""

    batch: int
    log_offset: int
    brokers: frozenset[str]


class WriteTable(PersistedTable):
    """By writer; the one whose batch began longest ago goes when there are too many."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._writers: dict[str, BatchBegun] = {}

    def get(self, writer: str) -> BatchBegun | None:
        return self._writers.get(writer)

    def put(self, writer: str, begun: BatchBegun) -> None:
        self._writers.pop(writer, None)
        self._writers[writer] = begun
        while len(self._writers) > WRITERS_MAX:
            del self._writers[next(iter(self._writers))]
        self._changed()

    def members(self) -> dict[str, Any]:
        return {
            "dataVersion": self.version.as_json(),
            "writers": {
                name: {"batch": begun.batch, "logOffset": begun.log_offset, "brokers": sorted(begun.brokers)}
                for name, begun in self._writers.items()
            },
        }

    def _take(self, members: Mapping[str, Any]) -> None:
        self._writers = {
            name: _begun(name, entry) for name, entry in member_table(members, "writers").items()
        }


def _begun(name: str, entry: object) -> BatchBegun:
    if isinstance(entry, Mapping):
        batch, log_offset, brokers = entry.get("batch"), entry.get("logOffset"), entry.get("brokers")
        if is_int64(batch) and is_int64(log_offset) and isinstance(brokers, list):
            return BatchBegun(batch, log_offset, frozenset(map(str, brokers)))
    raise InvalidRequest(f"the entry of the writer {name[:255]!r} is no batch that began")
