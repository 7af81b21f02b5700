"""What can be done about a damaged store, and doing it.

The plan is made from an examination (`verify.py`); nothing is written until `apply`.  What cannot be undone is
bridged, so that everything behind it stays readable and no recovery ends there:

    a hole in the log     becomes filler records that belong to no queue (rolled back, as after a transaction), or a
                          blank record where it reaches to the end of its segment
    a queue entry whose record is lost     becomes a gap, or a copy of its neighbour's (`verify_queues` says why)
    queue entries that are wrong or missing     are written again from the records
    index files           are made again from the log when anything about them or the log is wrong
    a damaged table       is replaced by its `.bak`
    the checkpoint        is written again at the end, so that no recovery has to come by what was repaired

Everything that is replaced is kept under `repair-<time>/`, as whole files or as `<file>.at-<position>`.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from bolide.model.clock import Clock
from bolide.model.errors import StoreError
from bolide.model.message import BODY_BYTES_MAX, SysFlag
from bolide.offline.files import Geometry, StoreFiles
from bolide.offline.repair_index import rebuild_index
from bolide.offline.scan import Hole, Progress
from bolide.offline.verify import Examination, examine
from bolide.offline.verify_queues import FixKind, QueueFix
from bolide.offline.verify_tables import table_state
from bolide.record.codec import encode_record
from bolide.record.layout import FIXED_BYTES, HOST_V4_BYTES, MAGIC_BLANK, RECORD_CHECKSUM_BYTES
from bolide.store.checkpoint import Checkpoint, Mark
from bolide.store.deletions import FILE as DELETIONS_FILE
from bolide.store.disk import Disk, DiskLock, File, ReadingDisk
from bolide.store.file_names import name_of, place_of
from bolide.store.folders import make_folder
from bolide.store.index_file import IndexSizes
from bolide.store.index_layout import entry_at
from bolide.store.queue_entry import ENTRY_BYTES
from bolide.store.small_file import write_whole

FILLER_TOPIC = b"_"
FILLER_BYTES_MIN = FIXED_BYTES + len(FILLER_TOPIC)
FILLER_BYTES_MAX = BODY_BYTES_MAX
_COPY_BYTES = 8 * 1024 * 1024
_NUMBER_AT = 20  # the queue offset in a record


class RepairDisk(Disk, ReadingDisk, Protocol):
    """A disk that can do both: look without changing anything, and change."""


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One thing to do; `run` does it and keeps what it replaces."""

    file: str
    what: str
    run: Callable[["Keeper"], None] = field(repr=False)


class Keeper:
    """Keeps what is replaced."""

    def __init__(self, disk: RepairDisk, root: str, folder: str) -> None:
        self.disk = disk
        self.root = root
        self.folder = folder

    def keep(self, file: File, at: int, size: int) -> None:
        """A part of a file, in pieces; those of zeros are not worth it."""
        name = os.path.relpath(file.path, self.root)
        for low in range(at, at + size, _COPY_BYTES):
            data = file.read(low, min(_COPY_BYTES, at + size - low))
            if data.strip(b"\0"):
                self._write(f"{name}.at-{low}", data)

    def keep_copy(self, path: str) -> None:
        """All of a file, without the zeros at its end; once."""
        target = os.path.join(self.folder, os.path.relpath(path, self.root))
        if self.disk.exists(target):
            return
        make_folder(self.disk, os.path.dirname(target))
        source = self.disk.open_for_reading(path)
        try:
            end = max((last for _, last in self.disk.written(path)), default=0)
            copy = self.disk.create(target, end, reserve=False)
            try:
                _copy(self.disk, source, copy)
            finally:
                copy.close()
        finally:
            source.close()
        self.disk.sync_dir(os.path.dirname(target))

    def move(self, path: str) -> str:
        """Take a file away; returns where it is now."""
        target = os.path.join(self.folder, os.path.relpath(path, self.root))
        make_folder(self.disk, os.path.dirname(target))
        self.disk.rename(path, target)
        self.disk.sync_dir(os.path.dirname(target))
        self.disk.sync_dir(os.path.dirname(path))
        return target

    def _write(self, name: str, data: bytes) -> None:
        target = os.path.join(self.folder, name)
        make_folder(self.disk, os.path.dirname(target))
        write_whole(self.disk, target, data)


class Repair:
    """The plan for one store.  `steps` may be shown and forgotten, or applied."""

    def __init__(
        self,
        disk: RepairDisk,
        root: str,
        clock: Clock,
        progress: Progress | None = None,
        *,
        geometry: Geometry | None = None,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._lock: DiskLock | None = None
        self._store = StoreFiles(disk, root, geometry)
        if self._store.is_locked:
            raise StoreError(f"a broker is running on {self._store.root}: stop it before repairing its store")
        self.found = examine(self._store, progress)
        self.steps = list(self._plan(self.found))

    def apply(self) -> str:
        """Do it all; returns the folder that keeps what was replaced.  Refuses while a broker has the store."""
        try:
            self._lock = self._disk.lock(self._store.path("lock"))
        except BlockingIOError:
            raise StoreError(
                f"a broker is running on {self._store.root}: stop it before repairing its store"
            ) from None
        try:
            folder = self._store.path(f"repair-{self._clock.now_ms()}")
            make_folder(self._disk, folder)
            keeper = Keeper(self._disk, self._store.root, folder)
            for step in self.steps:
                step.run(keeper)
                self._store.check()
            self._write_checkpoint(keeper)
            return folder
        finally:
            self._lock.release()

    def close(self) -> None:
        self._store.close()

    def _write_checkpoint(self, keeper: Keeper) -> None:
        """Everything is in step and durable now: no recovery has to come by what was repaired."""
        store = StoreFiles(self._disk, self._store.root, self._store.geometry)
        try:
            found = examine(store)
        finally:
            store.close()
        path = self._store.path("checkpoint")
        before = Checkpoint.decode(self._disk.read_whole(path) or b"")
        if found.holes or found.fixes or found.last_record < 0:
            return
        says = Checkpoint(
            log_ms=found.newest_ms,
            queues_ms=found.newest_ms,
            index_ms=min(before.index_ms, found.newest_ms),
            master_flushed=before.master_flushed,
            confirmed=before.confirmed,
            mark=Mark(found.log_end, found.last_record),
        )
        deletions = self._store.path(DELETIONS_FILE)
        if self._store.is_foreign and self._disk.exists(deletions):
            keeper.move(deletions)  # with our checkpoint it would count again
        write_whole(self._disk, path, says.encode())

    # ---- the plan ------------------------------------------------------------------------------------------

    def _plan(self, found: Examination) -> Iterator[RepairStep]:
        yield from self._mend_files()
        for hole in found.holes:
            yield from self._mend_hole(hole)
        for blank in found.blanks:
            yield self._write_blank(blank.at, blank.room, "write the blank record again")
        if found.behind_end > found.log_end:
            yield from self._mend_end(found)
        elif not self._store.is_clean:
            yield from self._cut_tail(found)
        for log_offset, number in found.renumbered:
            yield self._renumber(log_offset, number)
        for fix in found.fixes:
            yield self._mend_entries(fix)
        yield from self._mend_index(found)
        yield from self._mend_tables(found)

    def _mend_files(self) -> Iterator[RepairStep]:
        """Files of a wrong length or with a wrong name."""
        store = self._store
        for odd in store.odd:
            if odd.harmless:
                continue
            name = os.path.basename(odd.path)
            row = store.log if os.path.dirname(odd.path) == store.log.folder else None
            row = row or next(
                (one for one in store.queues.values() if os.path.dirname(odd.path) == one.folder), None
            )
            is_index = os.path.dirname(odd.path) == store.path("index")
            if not is_index and (row is None or not name.isdigit()):
                continue
            if row is not None and place_of(name) in row.bases:
                what, size = f"give it its {row.file_bytes} bytes", row.file_bytes
                yield RepairStep(store.name(odd.path), what, _resize(odd.path, size))
            else:
                yield RepairStep(store.name(odd.path), "take it away", _move(odd.path))

    def _mend_hole(self, hole: Hole) -> Iterator[RepairStep]:
        size = hole.end - hole.at
        if hole.fills_segment:
            yield self._write_blank(
                hole.at, size, "end the segment here with a blank record", hole.is_missing
            )
        elif size >= FILLER_BYTES_MIN:
            yield self._write_filler(hole.at, hole.end, hole.stored_ms, "bridge it")

    def _mend_end(self, found: Examination) -> Iterator[RepairStep]:
        """Records at the very end of a store that was stopped cleanly: their numbers must not be given again."""
        at, file_bytes = found.log_end, self._store.log.file_bytes
        while at < found.behind_end:
            limit = at - at % file_bytes + file_bytes
            is_missing = self._store.log.base_of(at) is None
            if limit <= found.behind_end:
                what = "end the damaged segment with a blank record"
                yield self._write_blank(at, limit - at, what, is_missing)
            elif found.behind_end - at >= FILLER_BYTES_MIN:
                what = "bridge the damaged end of the log"
                yield self._write_filler(at, found.behind_end, found.newest_ms, what, is_missing)
            at = limit

    def _cut_tail(self, found: Examination) -> Iterator[RepairStep]:
        base = self._store.log.base_of(found.log_end)
        if base is None:
            return
        path, at = self._store.log.path(base), found.log_end - base
        size = self._store.log.used_bytes(base) - at
        if size <= 0:
            return
        what = f"cut the torn tail: {size} bytes from {at} on"
        yield RepairStep(self._store.name(path), what, _erase(path, at, size))

    def _write_blank(self, at: int, room: int, what: str, is_missing: bool = False) -> RepairStep:
        log = self._store.log
        base = at - at % log.file_bytes
        path = log.path(base)
        data = room.to_bytes(4, "big") + MAGIC_BLANK.to_bytes(4, "big")

        def run(keeper: Keeper) -> None:
            if is_missing:
                _create(keeper, path, log.file_bytes)
            _patch(keeper, path, at - base, [data], kept_bytes=0 if is_missing else room)

        return RepairStep(self._store.name(path), f"{what} (at {at - base})", run)

    def _write_filler(
        self, at: int, end: int, stored_ms: int, what: str, is_missing: bool = False
    ) -> RepairStep:
        log = self._store.log
        base = at - at % log.file_bytes
        path = log.path(base)
        text = f"{what}: {end - at} bytes from {at - base} on become filler records"

        def run(keeper: Keeper) -> None:
            if is_missing:
                _create(keeper, path, log.file_bytes)
            _patch(
                keeper, path, at - base, fillers(at, end, stored_ms), kept_bytes=0 if is_missing else end - at
            )

        return RepairStep(self._store.name(path), text, run)

    def _renumber(self, log_offset: int, number: int) -> RepairStep:
        base = self._store.log.base_of(log_offset)
        assert base is not None
        path, at = self._store.log.path(base), log_offset - base + _NUMBER_AT
        what = f"give the record at {log_offset - base} its number {number} back"
        data = number.to_bytes(8, "big")
        return RepairStep(
            self._store.name(path),
            what,
            lambda keeper: _patch(keeper, path, at, [data], kept_bytes=len(data)),
        )

    def _mend_entries(self, fix: QueueFix) -> RepairStep:
        topic, queue_id = fix.key
        queue = self._store.queues.get(fix.key)
        file_bytes = self._store.queue_file_bytes
        folder = self._store.path("consumequeue", topic, str(queue_id)) if queue is None else queue.folder

        def run(keeper: Keeper) -> None:
            make_folder(keeper.disk, folder)
            at, data = fix.first * ENTRY_BYTES, bytes(fix.entries)
            while data:
                base = at - at % file_bytes
                path = os.path.join(folder, name_of(base))
                part, data = data[: base + file_bytes - at], data[base + file_bytes - at :]
                if keeper.disk.exists(path):
                    keeper.keep_copy(path)
                else:
                    _create(keeper, path, file_bytes)
                _patch(keeper, path, at - base, [part])
                at += len(part)

        return RepairStep(self._store.name(folder), _intent(fix), run)

    def _mend_index(self, found: Examination) -> Iterator[RepairStep]:
        paths = self._store.index_paths()
        is_damaged = any(damage.file.startswith("index") for damage in found.findings.damages)
        if not paths or not (is_damaged or found.holes or found.behind_end):
            return
        sizes = self._index_sizes(paths)
        root, segment_bytes = self._store.root, self._store.log.file_bytes
        end = max(found.log_end, found.behind_end)

        def run(keeper: Keeper) -> None:
            for path in paths:
                keeper.move(path)
            rebuild_index(keeper.disk, root, sizes, segment_bytes, end, self._clock)

        yield RepairStep("index", f"make the index again from the log: {len(paths)} files", run)

    def _index_sizes(self, paths: list[str]) -> IndexSizes:
        """Those of the files there are; the original's where none has a size that it could have."""
        for size in map(self._disk.size_of, paths):
            slots = self._store.index_slots(size)
            if slots:
                return IndexSizes(slots, (size - entry_at(slots, 0)) // ENTRY_BYTES)
        return IndexSizes()

    def _mend_tables(self, found: Examination) -> Iterator[RepairStep]:
        for path in self._store.config_paths():
            copy = path + ".bak"
            is_good, copy_is_good = (_is_good(self._store, name) for name in (path, copy))
            if is_good is False and copy_is_good:
                yield RepairStep(self._store.name(path), "put its .bak in its place", _restore(path, copy))
            elif is_good and copy_is_good is False:
                yield RepairStep(self._store.name(copy), "take the damaged copy away", _move(copy))
        damaged = {damage.file for damage in found.findings.damages}
        for name, what in (("checkpoint", "write it again"), (DELETIONS_FILE, "take it away")):
            if name in damaged:
                yield RepairStep(name, what, _move(self._store.path(name)))


def _intent(fix: QueueFix) -> str:
    many = fix.last > fix.first
    which = f"entries {fix.first} to {fix.last}" if many else f"entry {fix.first}"
    if fix.kind is FixKind.LOST:
        return f"mark {which} as lost, so that consumers pass over {'them' if many else 'it'}"
    return (
        f"erase {which}, which no record explains" if fix.kind is FixKind.ERASED else f"write {which} again"
    )


def fillers(at: int, end: int, stored_ms: int) -> Iterator[bytes]:
    """Records for a part of the log that no queue has: rolled back, so that nothing dispatches them."""
    while at < end:
        size = end - at
        if size > FILLER_BYTES_MAX:
            size = min(FILLER_BYTES_MAX, size - FILLER_BYTES_MIN)
        is_sealed = size >= FILLER_BYTES_MIN + RECORD_CHECKSUM_BYTES
        yield encode_record(
            topic=FILLER_TOPIC,
            body=bytes(size - FILLER_BYTES_MIN - (RECORD_CHECKSUM_BYTES if is_sealed else 0)),
            properties=b"",
            queue_id=0,
            flag=0,
            queue_offset=0,
            log_offset=at,
            sys_flag=SysFlag.ROLLBACK,
            born_timestamp_ms=stored_ms,
            born_host=bytes(HOST_V4_BYTES),
            store_timestamp_ms=stored_ms,
            store_host=bytes(HOST_V4_BYTES),
            reconsume_times=0,
            prepared_offset=0,
            sealed=is_sealed,
        )
        at += size


def _is_good(store: StoreFiles, path: str) -> bool | None:
    """Whether a table can be read; None when there is no such file."""
    return not table_state(store, path) if store.disk.exists(path) else None


def _patch(keeper: Keeper, path: str, at: int, pieces: Iterable[bytes], *, kept_bytes: int = 0) -> None:
    """Write into a file, durably; so much of what was there is kept."""
    file = keeper.disk.open(path)
    try:
        keeper.keep(file, at, kept_bytes)
        for piece in pieces:
            file.write(at, piece)
            at += len(piece)
        file.sync()
    finally:
        file.close()


def _erase(path: str, at: int, size: int) -> Callable[[Keeper], None]:
    """Zeros, in pieces."""

    def run(keeper: Keeper) -> None:
        pieces = (bytes(min(_COPY_BYTES, size - done)) for done in range(0, size, _COPY_BYTES))
        _patch(keeper, path, at, pieces, kept_bytes=size)

    return run


def _copy(disk: ReadingDisk, source: File, target: File) -> None:
    """What was ever written to a file into a blank one, as far as that reaches, durably."""
    for first, last in disk.written(source.path):
        for at in range(first, min(last, target.size), _COPY_BYTES):
            data = source.read(at, min(_COPY_BYTES, last - at, target.size - at))
            if data.strip(b"\0"):
                target.write(at, data)
    target.sync()


def _create(keeper: Keeper, path: str, size: int) -> None:
    """A new file; one that was only begun gives way."""
    if keeper.disk.exists(path):
        keeper.move(path)
    keeper.disk.create(path, size, reserve=False).close()
    keeper.disk.sync_dir(os.path.dirname(path))


def _resize(path: str, size: int) -> Callable[[Keeper], None]:
    """The same bytes in a file of the right length."""

    def run(keeper: Keeper) -> None:
        old = keeper.disk.open(keeper.move(path))
        new = keeper.disk.create(path, size, reserve=False)
        try:
            _copy(keeper.disk, old, new)
        finally:
            old.close()
            new.close()
        keeper.disk.sync_dir(os.path.dirname(path))

    return run


def _move(path: str) -> Callable[[Keeper], None]:
    def run(keeper: Keeper) -> None:
        keeper.move(path)

    return run


def _restore(path: str, copy: str) -> Callable[[Keeper], None]:
    def run(keeper: Keeper) -> None:
        keeper.move(path)
        write_whole(keeper.disk, path, keeper.disk.read_whole(copy) or b"")

    return run
