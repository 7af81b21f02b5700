"""WriteTable: which batch of each bulk writer is under way, and where in the log it began; `config/bulkWrites.json`.

A bulk writer (a streaming query of Spark, for example) numbers its batches and writes one after the other.  What a
batch has stored lies behind the place where it began, so whoever tries a batch again finds there what is stored
already.  An entry is durable before its batch stores anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bolide.model import java_json
from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest
from bolide.model.json_pieces import Entries
from bolide.model.limits import WRITERS_BYTES_MAX, WRITERS_MAX
from bolide.model.numbers import is_int64
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, entries_of, member_table

ENTRY_BYTES, NAME_BYTES = 640, 128
"""What a writer takes beside the names, and what a name takes beside its text."""


@dataclass(frozen=True, slots=True)
class BatchBegun:
    """A batch, the end of the log when it first began here, and the brokers that it may have written to."""

    batch: int
    log_offset: int
    brokers: frozenset[str]


class WriteTable(PersistedTable):
    """By writer; the one whose batch began longest ago goes when there are too many, or they take too much."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._writers: dict[str, BatchBegun] = {}
        self.bytes_kept = 0
        """About what all of them take in memory; the file takes less."""

    def get(self, writer: str) -> BatchBegun | None:
        return self._writers.get(writer)

    def put(self, writer: str, begun: BatchBegun) -> None:
        if writer in self._writers:
            self._drop(writer)
        self._writers[writer] = begun
        self.bytes_kept += _bytes_of(writer, begun)
        while len(self._writers) > WRITERS_MAX or self.bytes_kept > WRITERS_BYTES_MAX:
            self._drop(next(iter(self._writers)))
        self._changed()

    def fit(self, log_end: int) -> None:
        """After a start: power loss may have taken the end of the log, and batches that began behind where it ends now
        store what they bring from there on.
        """
        for writer, begun in list(self._writers.items()):
            place = min(max(begun.log_offset, 0), log_end)
            if place != begun.log_offset:
                self._writers[writer] = replace(begun, log_offset=place)
                self.mark_dirty()

    def members(self) -> dict[str, Any]:
        entries = (
            (name, {"batch": begun.batch, "logOffset": begun.log_offset, "brokers": sorted(begun.brokers)})
            for name, begun in entries_of(self._writers)
        )
        return {"dataVersion": self.version.as_json(), "writers": Entries(entries)}

    def _drop(self, writer: str) -> None:
        self.bytes_kept -= _bytes_of(writer, self._writers.pop(writer))

    def _take(self, members: Mapping[str, Any]) -> None:
        self._writers = {
            name: _begun(name, entry) for name, entry in member_table(members, "writers").items()
        }
        self.bytes_kept = sum(_bytes_of(name, begun) for name, begun in self._writers.items())


def _bytes_of(writer: str, begun: BatchBegun) -> int:
    names = sum(NAME_BYTES + len(java_json.key_text(name).encode()) for name in begun.brokers)
    return ENTRY_BYTES + len(java_json.key_text(writer).encode()) + names


def _begun(name: str, entry: object) -> BatchBegun:
    if isinstance(entry, Mapping):
        batch, log_offset, brokers = entry.get("batch"), entry.get("logOffset"), entry.get("brokers")
        if is_int64(batch) and is_int64(log_offset) and isinstance(brokers, list):
            return BatchBegun(batch, log_offset, frozenset(map(str, brokers)))
    raise InvalidRequest(f"the entry of the writer {name[:255]!r} is no batch that began")
