"""Consume queues: for each queue of a topic, where its messages are in the log.

An entry is 20 bytes: log offset (8), size of the record (4), hash of the tags (8).  Entry n of a queue is at byte
20 n of its logical file, which is cut into files of equal size named by their first byte.  The files have full
length but are sparse.  New entries stay in memory (`QueueTail`) and are written behind, in runs; whoever reads
does not notice.  Losing them in a crash costs nothing: recovery rebuilds them from the log.
"""

import os
import struct
from collections import OrderedDict
from collections.abc import Iterator

from bolide.model.errors import StoreError
from bolide.model.offsets import QueueOffset
from bolide.store.append import QueueTail
from bolide.store.disk import Disk, File

ENTRY_BYTES = 20
HANDLES_MAX = 512
"""Queue files open at once; half of the descriptors that a process usually gets."""

GAP_ENTRIES_MAX = 1_000_000
"""More missing entries than this are not filled: the queue begins anew behind them."""

GAP_SIZE = 0x7FFFFFFF
"""The size in an entry that stands for a message that is not there; readers skip it."""

_ENTRY = struct.Struct(">qiq")
_GAP = _ENTRY.pack(0, GAP_SIZE, 0)


class FileHandles:
    """Open files by path, at most so many; the one not used for longest is closed first."""

    def __init__(self, disk: Disk, handles_max: int = HANDLES_MAX) -> None:
        self._disk = disk
        self._handles_max = handles_max
        self._open: OrderedDict[str, File] = OrderedDict()
        self._unsynced: set[str] = set()

    def get(self, path: str, create_bytes: int = 0) -> File | None:
        """The file; made sparse with `create_bytes` when it is missing, else None."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        try:
            file = self._disk.open(path)
        except FileNotFoundError:
            if not create_bytes:
                return None
            self._disk.make_dirs(os.path.dirname(path))
            file = self._disk.create(path, create_bytes, reserve=False)
        self._open[path] = file
        if len(self._open) > self._handles_max:
            self._open.popitem(last=False)[1].close()
        return file

    def write(self, path: str, at: int, data: bytes, create_bytes: int) -> None:
        """Write to the file, made sparse with `create_bytes` when it is missing."""
        file = self.get(path, create_bytes)
        assert file is not None
        file.write(at, data)
        self._unsynced.add(path)

    def delete_first(self, folder: str, kept: int) -> bool:
        """Delete a queue's first file if that lies before the byte `kept`."""
        first = next((name for name in self._disk.list(folder) if name.isdigit()), None)
        if first is None or int(first) >= kept:
            return False
        path = os.path.join(folder, first)
        file = self._open.pop(path, None)
        if file is not None:
            file.close()
        self._unsynced.discard(path)
        self._disk.delete(path)
        return True

    def close_under(self, folder: str) -> None:
        for path in [path for path in self._open if path.startswith(folder + os.sep)]:
            self._open.pop(path).close()
        self._unsynced = {path for path in self._unsynced if not path.startswith(folder + os.sep)}

    def sync(self) -> None:
        """Make durable what was written, also to files that were closed meanwhile."""
        for path in sorted(self._unsynced):
            file = self.get(path)
            if file is not None:
                file.sync()
        self._unsynced.clear()

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


class ConsumeQueue:
    """One queue."""

    __slots__ = ("_file_bytes", "_folder", "_handles", "start", "tail")

    def __init__(
        self, handles: FileHandles, folder: str, file_bytes: int, key: tuple[str, int], end: int = 0
    ) -> None:
        self._handles = handles
        self._folder = folder
        self._file_bytes = file_bytes
        self.start = QueueOffset(0)
        self.tail = QueueTail(key, end, self)

    @property
    def end(self) -> QueueOffset:
        """The offset that the next message gets."""
        return QueueOffset(self.tail.next_offset)

    def read(self, first: int, count: int) -> bytes:
        """Up to `count` entries from `first`, as bytes; from one file, and from memory where that goes on."""
        tail = self.tail
        last = min(first + count, tail.next_offset)
        if first >= last:
            return b""
        if first >= tail.start:
            return tail.entries(first, last)
        at = first * ENTRY_BYTES
        in_file = at % self._file_bytes
        written = min(last, tail.start) - first
        size = min(written * ENTRY_BYTES, self._file_bytes - in_file)
        file = self._handles.get(self._path(at))
        data = b"" if file is None else file.read(in_file, size)
        if last > tail.start and len(data) == written * ENTRY_BYTES:
            data += tail.entries(tail.start, last)
        return data

    def following(self, offset: int) -> QueueOffset:
        """Where to go on when the file that should hold `offset` is gone: the next file, or what is in memory."""
        per_file = self._file_bytes // ENTRY_BYTES
        return QueueOffset(max(offset, min((offset // per_file + 1) * per_file, self.tail.start)))

    def entry(self, offset: int) -> tuple[int, int, int] | None:
        """(log offset, size, tags code) of one entry."""
        data = self.read(offset, 1)
        return _ENTRY.unpack(data) if len(data) == ENTRY_BYTES else None

    def write_behind(self) -> None:
        """Write the entries in memory to the file."""
        tail = self.tail
        while tail.start < tail.next_offset:
            at = tail.start * ENTRY_BYTES
            in_file = at % self._file_bytes
            room = (self._file_bytes - in_file) // ENTRY_BYTES
            last = min(tail.start + room, tail.next_offset)
            self._handles.write(self._path(at), in_file, tail.entries(tail.start, last), self._file_bytes)
            tail.drop_before(last)

    def cut(self, end: int) -> None:
        """Forget entries from `end` on; their bytes become zero, which is what ends a queue."""
        old = self.end
        self.tail.reset(end)
        while end < old:
            at = end * ENTRY_BYTES
            in_file = at % self._file_bytes
            count = min(old - end, (self._file_bytes - in_file) // ENTRY_BYTES)
            if self._handles.get(self._path(at)) is not None:
                self._handles.write(self._path(at), in_file, bytes(count * ENTRY_BYTES), self._file_bytes)
            end += count

    def skip_to(self, offset: int, log_offset: int) -> None:
        """Go on at `offset`, with the record at `log_offset`, although entries before it are missing.

        Their places are filled, because an entry of zeros would end the queue at the next start.  A queue that
        has nothing, or much too little, begins here instead, with a first file filled as the original does it.
        """
        missing = offset - self.end
        if self.end == self.start or missing > GAP_ENTRIES_MAX:
            at = offset * ENTRY_BYTES
            in_file = at % self._file_bytes
            if in_file:
                gap = _GAP * (in_file // ENTRY_BYTES)
                self._handles.write(self._path(at), 0, gap, self._file_bytes)
            self.start = QueueOffset(offset)
            self.tail.reset(offset)
            return
        for _ in range(missing):
            self.tail.append(log_offset, GAP_SIZE, 0)

    def expire(self, log_start: int) -> None:
        """Begin at the first entry whose record is still in the log, which now begins at `log_start`.

        A queue that has none left keeps its number: it begins where it ends.
        """
        low, high = int(self.start), int(self.end)
        while low < high:
            middle = (low + high) // 2
            entry = self.entry(middle)
            if entry is not None and entry[0] < log_start:  # a missing file says nothing
                low = middle + 1
            else:
                high = middle
        self.start = QueueOffset(low)

    def delete_first_file(self) -> str | None:
        """Delete the first file if all its entries are expired; returns the folder that has to be synced then.

        The file with the last entry stays, whatever is in it: it tells the queue's number at the next start.
        """
        at = min(self.start, max(0, self.tail.start - 1)) * ENTRY_BYTES
        kept = at - at % self._file_bytes
        if kept == 0:
            return None
        return self._folder if self._handles.delete_first(self._folder, kept) else None

    def load(self, names: list[str]) -> None:
        """Find start and end of a queue that has files: entries are there until the first empty one."""
        first, last = int(names[0]), int(names[-1])
        file = self._handles.get(os.path.join(self._folder, names[-1]))
        if file is None or file.size != self._file_bytes or last % self._file_bytes:
            raise StoreError(
                f"{self._folder} has files of another size than mappedFileSizeConsumeQueue,"
                f" {self._file_bytes}; set it to the size that the files have"
            )
        low, high = 0, self._file_bytes // ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            _, size, _ = _ENTRY.unpack(file.read(middle * ENTRY_BYTES, ENTRY_BYTES))
            if size > 0:
                low = middle + 1
            else:
                high = middle
        self.start = QueueOffset(first // ENTRY_BYTES)
        self.tail.reset(last // ENTRY_BYTES + low)

    def _path(self, at: int) -> str:
        return f"{self._folder}{os.sep}{at - at % self._file_bytes:020d}"


class QueueIndex:
    """All consume queues of a store."""

    def __init__(self, disk: Disk, folder: str, file_bytes: int) -> None:
        self._disk = disk
        self._folder = folder
        self._file_bytes = -(-file_bytes // ENTRY_BYTES) * ENTRY_BYTES
        self._handles = FileHandles(disk)
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}

    def __iter__(self) -> Iterator[ConsumeQueue]:
        return iter(self._queues.values())

    def open(self) -> None:
        self._disk.make_dirs(self._folder)
        for topic in self._disk.list(self._folder):
            for number in self._disk.list(os.path.join(self._folder, topic)):
                names = self._made(os.path.join(self._folder, topic, number))
                if number.isdigit() and names:
                    self.get(topic, int(number)).load(names)

    def _made(self, folder: str) -> list[str]:
        """A queue's files; one without a length was being made when power was lost, and is made again in time."""
        names = [name for name in self._disk.list(folder) if name.isdigit()]
        empty = {name for name in names if self._disk.size_of(os.path.join(folder, name)) == 0}
        for name in empty:
            self._disk.delete(os.path.join(folder, name))
        return [name for name in names if name not in empty]

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        return self._queues.get((topic, queue_id))

    def get(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue; an unknown one exists in memory until something is written."""
        key = (topic, queue_id)
        queue = self._queues.get(key)
        if queue is None:
            folder = os.path.join(self._folder, topic, str(queue_id))
            queue = ConsumeQueue(self._handles, folder, self._file_bytes, key)
            self._queues[key] = queue
        return queue

    def delete_topic(self, topic: str) -> None:
        for key in [key for key in self._queues if key[0] == topic]:
            queue = self._queues.pop(key)
            queue.tail.reset(queue.end)  # nothing of it is written behind any more
        folder = os.path.join(self._folder, topic)
        self._handles.close_under(folder)
        self._disk.delete_tree(folder)

    def close(self) -> None:
        for queue in self._queues.values():
            queue.write_behind()
        self._handles.sync()
        self._handles.close()
