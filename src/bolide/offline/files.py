"""A store directory from outside: which files are there, opened so that nothing can change them.

For the tools that look into a store while no broker runs on it (`survey.py`, `verify.py`, `export.py`).  Takes any
directory that bolide or Apache RocketMQ with file consume queues has left behind, in whatever state: sizes come from
the files themselves unless they are given, and nothing is believed that was not looked at.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bolide.model.errors import NotAStore, StoreError
from bolide.model.limits import QUEUE_FILES_MISSING_MAX, SEGMENTS_MISSING_MAX, STORE_FILE_BYTES_MAX
from bolide.model.printable import printable
from bolide.offline.open_files import OpenFiles
from bolide.store.checkpoint import is_foreign
from bolide.store.deletions import FILE as DELETIONS_FILE
from bolide.store.deletions import decode_deletions
from bolide.store.disk import ReadingDisk
from bolide.store.file_names import PLACE_DIGITS, name_of, number_of, place_of, queue_id_of
from bolide.store.index_layout import HEADER_BYTES, SLOT_BYTES
from bolide.store.index_layout import file_bytes as index_file_bytes
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE

SEGMENT_BYTES = 1024**3
QUEUE_FILE_BYTES = 6_000_000
ENTRIES_PER_SLOT = 4
"""Of an index file, as the original's default settings have it."""

EMPTY_ENTRY = bytes(ENTRY_BYTES)

QueueKey = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes that the broker's configuration gives; None is found out from the files."""

    segment_bytes: int | None = None
    queue_file_bytes: int | None = None
    index_slots: int | None = None
    index_entries: int | None = None


@dataclass(frozen=True, slots=True)
class OddFile:
    """A file that does not belong to its row."""

    path: str
    what: str
    harmless: bool = False


class FileRow:
    """Files of one size, each named by the position of its first byte in the whole row."""

    def __init__(self, files: OpenFiles, folder: str, bases: list[int], file_bytes: int) -> None:
        self._files = files
        self._paths = {base: _path_in(folder, base) for base in bases}
        self.folder = folder
        self.bases = bases
        self.file_bytes = file_bytes

    @property
    def start(self) -> int:
        return self.bases[0] if self.bases else 0

    @property
    def limit(self) -> int:
        """Where the last file ends."""
        return self.bases[-1] + self.file_bytes if self.bases else 0

    def base_of(self, at: int) -> int | None:
        """The file that holds a position."""
        base = at - at % self.file_bytes if self.file_bytes else 0
        return base if base in self._paths else None

    def path(self, base: int) -> str:
        return _path_in(self.folder, base)

    def used_bytes(self, base: int) -> int:
        """Where the zeros at the end of a file begin."""
        return self._files.used_bytes(self._paths[base])

    def written(self, base: int) -> Sequence[tuple[int, int]]:
        """The parts of a file that were ever written: nobody has to look at the others."""
        return self._files.written(self._paths[base])

    def view(self, base: int) -> memoryview:
        """The bytes of a file, as far as they have a place in the row."""
        return self._files.view(self._paths[base])[: self.file_bytes]


class OfflineQueue(FileRow):
    """One consume queue."""

    def __init__(
        self, files: OpenFiles, folder: str, bases: list[int], file_bytes: int, key: QueueKey
    ) -> None:
        super().__init__(files, folder, bases, file_bytes)
        self.key = key
        self._end: int | None = None

    @property
    def first(self) -> int:
        """The first offset that the files have room for."""
        return self.start // ENTRY_BYTES

    def end(self) -> int:
        """The offset behind the last entry that is not empty."""
        if self._end is None:
            self._end = self.first
            for base in reversed(self.bases):
                used = self.used_bytes(base)
                if used:
                    self._end = (base + used + ENTRY_BYTES - 1) // ENTRY_BYTES
                    break
        return self._end

    def sound_end(self) -> int:
        """The same by a search instead of a look at everything: right where no entry is missing."""
        if not self.bases:
            return 0
        low, high = 0, len(self.view(self.bases[-1])) // ENTRY_BYTES
        first = self.bases[-1] // ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            if self.entry(first + middle)[1] > 0:
                low = middle + 1
            else:
                high = middle
        return first + low

    def points_before(self, place: int) -> bool:
        """Whether there are entries of messages before this place in the log: the first or the last one tells."""
        if place <= 0 or not self.bases:
            return False
        entries = (self.entry(offset) for offset in (self.first, self.sound_end() - 1))
        return any(0 < size != GAP_SIZE and log_offset < place for log_offset, size, _ in entries)

    def first_kept(self, end: int, log_start: int) -> int:
        """The first entry whose record is still in the log."""
        low, high = self.first, end
        while low < high:
            middle = (low + high) // 2
            log_offset, size, _ = self.entry(middle)
            if log_offset < log_start or (log_offset, size) == (0, GAP_SIZE):
                low = middle + 1
            else:
                high = middle
        return low

    def read(self, first: int, last: int) -> bytes:
        """Entries `first` to `last - 1`; those of missing or short files are empty."""
        parts: list[bytes] = []
        at, end = first * ENTRY_BYTES, last * ENTRY_BYTES
        while at < end:
            base = self.base_of(at)
            stop = min(end, at - at % self.file_bytes + self.file_bytes)
            found = b"" if base is None else bytes(self.view(base)[at - base : stop - base])
            parts.append(found.ljust(stop - at, b"\0"))
            at = stop
        return b"".join(parts)

    def entry(self, offset: int) -> tuple[int, int, int]:
        """(log offset, size, tags code); zeros where nothing is."""
        log_offset, size, tags_code = ENTRY.unpack(self.read(offset, offset + 1))
        return log_offset, size, tags_code

    def entries(self, first: int, last: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Offset and entry, in order, without holding many at once."""
        step = 50_000
        for low in range(first, last, step):
            data = self.read(low, min(last, low + step))
            yield from enumerate(ENTRY.iter_unpack(data), low)


class StoreFiles:
    """Everything in a store directory."""

    def __init__(self, disk: ReadingDisk, root: str, geometry: Geometry | None = None) -> None:
        self.geometry = geometry = geometry or Geometry()
        self.disk = disk
        self.root = _root_of(disk, root)
        self.files = OpenFiles(disk)
        self._odd: list[OddFile] = []
        self.is_foreign = is_foreign(self.read_small("checkpoint"))
        self.deleted = self._find_deletions()
        """Places in the log by topic: records of theirs before are those of deleted topics."""
        self.is_clean = not disk.exists(self.path("abort"))
        self.is_locked = disk.is_locked(self.path("lock"))
        self.log = self._find_log(geometry.segment_bytes)
        self._index_names = [
            name for name in self._sizes_in(self.path("index")) if number_of(name) is not None
        ]

    @property
    def odd(self) -> list[OddFile]:
        """Files that do not belong to their rows, those of queues included."""
        _ = self.queues  # finding them tells
        return self._odd

    @cached_property
    def queues(self) -> dict[QueueKey, OfflineQueue]:
        """All of them, found when they are first asked for: there may be many."""
        return self._find_queues()

    @cached_property
    def queue_file_bytes(self) -> int:
        return (
            self.geometry.queue_file_bytes
            or _most_common(self._queue_files.values(), ENTRY_BYTES)
            or QUEUE_FILE_BYTES
        )

    def queue(self, key: QueueKey) -> OfflineQueue | None:
        """One queue, without a look at the others if the size of queue files was given."""
        if "queues" in self.__dict__ or self.geometry.queue_file_bytes is None:
            return self.queues.get(key)
        sizes = self._sizes_in(self.path("consumequeue", key[0], str(key[1])))
        queue = self._open_queue(key, sizes) if sizes else None
        gone_before = self.deleted.get(key[0].encode(), 0)
        return None if queue is not None and queue.points_before(gone_before) else queue

    def path(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    def read_small(self, *names: str) -> bytes | None:
        """A small file; None also for one that cannot be read, which `verify_tables` tells."""
        try:
            return self.disk.read_whole(self.path(*names))
        except StoreError:
            return None

    def name(self, path: str) -> str:
        """A path as reports show it."""
        return printable(os.path.relpath(path, self.root))

    def check(self) -> None:
        """Raises when a part of what was read so far could not be: ask before a result is given away."""
        self.files.check()

    def close(self) -> None:
        self.files.close()

    def index_paths(self) -> list[str]:
        return [self.path("index", name) for name in self._index_names]

    def index_slots(self, size: int) -> int:
        """How many slots an index file of this size has; 0 when it is the size of none."""
        slots, entries = self.geometry.index_slots, self.geometry.index_entries
        if slots and entries:
            return slots if size == index_file_bytes(slots, entries) else 0
        slots = (size - HEADER_BYTES) // (SLOT_BYTES + ENTRIES_PER_SLOT * ENTRY_BYTES)
        return slots if slots > 0 and size == index_file_bytes(slots, ENTRIES_PER_SLOT * slots) else 0

    def config_paths(self) -> list[str]:
        """The tables that have a file, or only its copy."""
        names = {name.removesuffix(".bak") for name in self.disk.list(self.path("config"))}
        return [self.path("config", name) for name in sorted(names) if name.endswith(".json")]

    def _find_deletions(self) -> dict[bytes, int]:
        data = None if self.is_foreign else self.read_small(DELETIONS_FILE)
        places = decode_deletions(data or b"") or {}
        return {topic.encode(): place for topic, place in places.items()}

    def _find_log(self, wanted: int | None) -> FileRow:
        folder = self.path("commitlog")
        sizes = self._sizes_in(folder)
        names = sorted(sizes)
        file_bytes = wanted or _most_common([sizes]) or SEGMENT_BYTES
        if names and sizes[names[-1]] < file_bytes and self._is_blank(os.path.join(folder, names[-1])):
            path = os.path.join(folder, names.pop())
            self._odd.append(
                OddFile(path, "was being made at the last stop; nothing is in it", harmless=True)
            )
        bases = self._row(folder, {name: sizes[name] for name in names}, file_bytes, SEGMENTS_MISSING_MAX)
        if wanted is None and file_bytes % 4096:
            self._odd.append(OddFile(folder, f"has files of {file_bytes} bytes: no whole number of pages"))
        return FileRow(self.files, folder, bases, file_bytes)

    def _is_blank(self, path: str) -> bool:
        return self.files.used_bytes(path) == 0

    def _find_queues(self) -> dict[QueueKey, OfflineQueue]:
        return self._without_deleted(
            {key: self._open_queue(key, sizes) for key, sizes in self._queue_files.items()}
        )

    @cached_property
    def _queue_files(self) -> dict[QueueKey, dict[str, int]]:
        """Names and sizes."""
        found: dict[QueueKey, dict[str, int]] = {}
        for topic in self.disk.list(self.path("consumequeue")):
            folder = self.path("consumequeue", topic)
            if printable(topic) != topic:
                self._odd.append(
                    OddFile(folder, "has a name that no topic has; it is not looked at", harmless=True)
                )
                continue
            for number in self.disk.list(folder):
                queue_id = queue_id_of(number)
                sizes = {} if queue_id is None else self._sizes_in(os.path.join(folder, number))
                if queue_id is not None and sizes:
                    found[topic, queue_id] = sizes
        return found

    def _open_queue(self, key: QueueKey, sizes: dict[str, int]) -> OfflineQueue:
        folder = self.path("consumequeue", key[0], str(key[1]))
        bases = self._row(folder, sizes, self.queue_file_bytes, QUEUE_FILES_MISSING_MAX, blank_too=False)
        return OfflineQueue(self.files, folder, bases, self.queue_file_bytes, key)

    def _without_deleted(self, queues: dict[QueueKey, OfflineQueue]) -> dict[QueueKey, OfflineQueue]:
        """Power loss may have brought back the folder of a topic that was deleted; the next start deletes it again."""
        gone = {
            key[0]
            for key, queue in queues.items()
            if queue.points_before(self.deleted.get(key[0].encode(), 0))
        }
        for topic in sorted(gone):
            what = "is of a topic that was deleted; the next start takes it away"
            self._odd.append(OddFile(self.path("consumequeue", topic), what, harmless=True))
        return {key: queue for key, queue in queues.items() if key[0] not in gone}

    def _sizes_in(self, folder: str) -> dict[str, int]:
        """The files of a row by name.  What cannot be one is told, and not opened: a pipe, a device, a folder, a file
        that is larger than any."""
        sizes: dict[str, int] = {}
        for name in self.disk.list(folder):
            if not name.isdigit():
                continue
            path = os.path.join(folder, name)
            try:
                size = self.disk.size_of(path)
            except (StoreError, OSError) as error:
                self._odd.append(OddFile(path, f"cannot be read: {error}"))
                continue
            if size > STORE_FILE_BYTES_MAX:
                what = f"has {size} bytes, more than the {STORE_FILE_BYTES_MAX} that a file may have"
                self._odd.append(OddFile(path, what))
            else:
                sizes[name] = size
        return sizes

    def _row(
        self, folder: str, sizes: dict[str, int], file_bytes: int, missing_max: int, *, blank_too: bool = True
    ) -> list[int]:
        """First bytes of the files that have a place in a row: the most that have few missing among them.

        Files in which nothing was ever written may be left out: they take no room, and looking at them takes time.
        """
        bases = sorted(
            int(name) for name, size in sizes.items() if self._fits(folder, name, size, file_bytes)
        )
        if not blank_too:
            bases = [base for base in bases if self.disk.written(_path_in(folder, base))] or bases[:1]
        kept = max(_runs(bases, file_bytes, missing_max), key=len, default=[])
        for base in sorted(set(bases) - set(kept)):
            what = "is too far from the others to belong to them"
            self._odd.append(OddFile(_path_in(folder, base), what))
        return kept

    def _fits(self, folder: str, name: str, size: int, file_bytes: int) -> bool:
        """Whether a file has a place in its row, though it may be too short; tells what is odd about it."""
        path = os.path.join(folder, name)
        base = place_of(name)
        if base is None or not file_bytes or base % file_bytes:
            what = f"is not named by a multiple of {file_bytes} in {PLACE_DIGITS} digits"
            self._odd.append(OddFile(path, what))
            return False
        if size != file_bytes:
            self._odd.append(OddFile(path, f"has {size} bytes where it should have {file_bytes}"))
        return True


def _root_of(disk: ReadingDisk, root: str) -> str:
    """The directory itself, or the one named `store` in it, as `bolide up` and the original lay it out."""
    for path in (root, os.path.join(root, "store")):
        if disk.list(os.path.join(path, "commitlog")) or disk.exists(os.path.join(path, "lock")):
            return path
    raise NotAStore(f"{root} is no store directory: there is no commitlog in it")


def _runs(bases: Sequence[int], file_bytes: int, missing_max: int) -> list[list[int]]:
    """The files in parts, none of which has more than so many missing."""
    runs: list[list[int]] = []
    missing = 0
    for base in bases:
        missing += (base - runs[-1][-1]) // file_bytes - 1 if runs else 0
        if not runs or missing > missing_max:
            runs.append([])
            missing = 0
        runs[-1].append(base)
    return runs


def _path_in(folder: str, base: int) -> str:
    return os.path.join(folder, name_of(base))


def _most_common(rows: Iterable[dict[str, int]], unit: int = 1) -> int:
    """The size of most files, of those that have a whole number of units and a name that is a multiple of it."""
    counted: Counter[int] = Counter()
    for sizes in rows:
        for name, size in sizes.items():
            place = place_of(name)
            counted[size] += place is not None and size > 0 and size % unit == place % size == 0
    counted = +counted
    return max(counted, key=lambda size: (counted[size], size), default=0)
