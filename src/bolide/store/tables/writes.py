"""WriteTable: which batch of each bulk writer is under way, and where in the log it began; `config/bulkWrites.json`.

A bulk writer (a streaming query of Spark, for example) numbers its batches and writes one after the other.  What a
batch has stored lies behind the place where it began, so whoever tries a batch again finds there what is stored
already.  An entry is durable before its batch stores anything.

Writers whose batch began of late stay: forgetting one would have its batch stored twice.  So a host brings no more of
them than stay free for others (`machines/bringers.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bolide.machines.bringers import Bringers
from bolide.model import java_json
from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest, TableFull
from bolide.model.json_pieces import Entries
from bolide.model.limits import WRITERS_BYTES_MAX, WRITERS_MAX
from bolide.model.numbers import is_int64
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, entries_of, member_table

ENTRY_BYTES, NAME_BYTES = 640, 128
"""What a writer takes beside the names, and what a name takes beside its text."""


WRITER_RECENT_MS = 3 * 24 * 3_600_000
"""A batch that began earlier is forgotten when others need its room."""

JUMP_MAX = 1_000_000
"""So many batches may have gone elsewhere in no time, by a clock that was set back."""


@dataclass(frozen=True, slots=True)
class BatchBegun:
    """A batch, the end of the log when it first began here, and the brokers that it may have written to."""

    batch: int
    log_offset: int
    brokers: frozenset[str]
    told_ms: int = 0
    """When that was told; 0 where nobody knows."""


class WriteTable(PersistedTable):
    """By writer; the one whose batch began longest ago goes when there are too many, or they take too much."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._writers: dict[str, BatchBegun] = {}
        self.bytes_kept = 0
        """About what all of them take in memory; the file takes less."""
        self._recent: dict[str, int] = {}  # of those, the ones that stay, and what they take
        self._recent_bytes = 0
        self._bringers = Bringers()

    def get(self, writer: str) -> BatchBegun | None:
        return self._writers.get(writer)

    def latest(self, known: BatchBegun) -> int:
        """The furthest batch that its writer may have come to since: no query begins one in each millisecond."""
        return known.batch + max(0, self._clock.now_ms() - known.told_ms) + JUMP_MAX

    def put(self, writer: str, begun: BatchBegun, host: str = "") -> None:
        """`TableFull` where others need the room; whoever is known and brings no more than before has it always."""
        now_ms, size = self._clock.now_ms(), _bytes_of(writer, begun)
        self._retire(now_ms)
        had = self._recent.get(writer, 0)
        if host and size > had:
            count, taken = len(self._recent) - (had > 0), self._recent_bytes - had
            if not self._bringers.may_bring(
                writer, host, size, count=(WRITERS_MAX, count), bytes_taken=(WRITERS_BYTES_MAX, taken)
            ):
                raise TableFull(
                    f"{host} has as many writers under way as others still can: what is free is for them; those whose"
                    f" batch began more than {WRITER_RECENT_MS // 86_400_000} days ago make room"
                )
        if writer in self._writers:
            self._drop(writer)
        self._writers[writer] = replace(begun, told_ms=now_ms)
        self.bytes_kept += size
        self._recent[writer] = size
        self._recent_bytes += size
        if host:
            self._bringers.brought(writer, host, size)
        while len(self._writers) > WRITERS_MAX or self.bytes_kept > WRITERS_BYTES_MAX:
            self._drop(next(iter(self._writers)))
        self._changed()

    def _retire(self, now_ms: int) -> None:
        """Those that began long ago have no claim to their room any more."""
        while self._recent:
            writer = next(iter(self._recent))
            if now_ms - self._writers[writer].told_ms <= WRITER_RECENT_MS:
                break
            self._give_up(writer)

    def _give_up(self, writer: str) -> None:
        self._recent_bytes -= self._recent.pop(writer, 0)
        self._bringers.forget(writer)

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
            (
                name,
                {
                    "batch": begun.batch,
                    "logOffset": begun.log_offset,
                    "brokers": sorted(begun.brokers),
                    "toldMs": begun.told_ms,
                },
            )
            for name, begun in entries_of(self._writers)
        )
        return {"dataVersion": self.version.as_json(), "writers": Entries(entries)}

    def _drop(self, writer: str) -> None:
        self.bytes_kept -= _bytes_of(writer, self._writers.pop(writer))
        self._give_up(writer)

    def _take(self, members: Mapping[str, Any]) -> None:
        now_ms = self._clock.now_ms()
        read = [_begun(name, entry, now_ms) for name, entry in member_table(members, "writers").items()]
        self._writers = dict(sorted(read, key=lambda entry: entry[1].told_ms))
        self._recent = {name: _bytes_of(name, begun) for name, begun in self._writers.items()}
        self.bytes_kept = self._recent_bytes = sum(self._recent.values())


def _bytes_of(writer: str, begun: BatchBegun) -> int:
    names = sum(NAME_BYTES + len(java_json.key_text(name).encode()) for name in begun.brokers)
    return ENTRY_BYTES + len(java_json.key_text(writer).encode()) + names


def _begun(name: str, entry: object, now_ms: int) -> tuple[str, BatchBegun]:
    """A time that is still to come counts as this moment."""
    if isinstance(entry, Mapping):
        batch, log_offset, brokers = entry.get("batch"), entry.get("logOffset"), entry.get("brokers")
        told_ms = entry.get("toldMs", 0)
        if is_int64(batch) and is_int64(log_offset) and is_int64(told_ms) and isinstance(brokers, list):
            return name, BatchBegun(batch, log_offset, frozenset(map(str, brokers)), min(told_ms, now_ms))
    raise InvalidRequest(f"the entry of the writer {name[:255]!r} is no batch that began")
