"""Consume queues: for each queue of a topic, where its messages are in the log.

An entry is 20 bytes (`queue_entry.py` has them).  Entry n of a queue is at byte 20 n of its logical file, which is cut
into files of equal size named by their first byte.  The files have full length but are sparse.  New entries stay in
memory (`QueueTail`) and are written behind, in runs; whoever reads does not notice.  Losing them in a crash costs
nothing: recovery rebuilds them from the log.
"""

import os
from collections.abc import Callable, Iterator

from bolide.model.errors import StoreError
from bolide.model.limits import STORE_FILE_BYTES_MAX
from bolide.model.offsets import QueueOffset
from bolide.record.codec import RecordHead
from bolide.store.append import QueueTail
from bolide.store.deletions import Deletions
from bolide.store.disk import Disk
from bolide.store.file_names import name_of, place_of, queue_id_of
from bolide.store.folders import make_folder
from bolide.store.handles import FileHandles, Unsynced
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE
from bolide.store.trash import Trash

GAP_ENTRIES_MAX = 1_000_000
"""More missing entries than this are not filled: the queue begins anew behind them."""

_GAP = ENTRY.pack(0, GAP_SIZE, 0)
_PAGE_ENTRIES = 200
_PAGE_BYTES = _PAGE_ENTRIES * ENTRY_BYTES


def _count_while(count: int, holds: Callable[[int], bool]) -> int:
    """How many of the numbers from 0 to `count` - 1 something holds for, when it holds up to one of them.

    Few are found with few questions.
    """
    step = 1
    while step <= count and holds(step - 1):
        step *= 2
    low, high = step // 2, min(step - 1, count)
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            low = middle + 1
        else:
            high = middle
    return low


class ConsumeQueue:
    """One queue."""

    __slots__ = ("_file_bytes", "_files_end", "_folder", "_handles", "start", "tail")

    def __init__(
        self, handles: FileHandles, folder: str, file_bytes: int, key: tuple[str, int], end: int = 0
    ) -> None:
        self._handles = handles
        self._folder = folder
        self._file_bytes = file_bytes
        self._files_end = 0  # no file that may have to be erased lies behind this byte
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
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else None

    def points_at(self, offset: int, log_offset: int) -> bool:
        entry = self.entry(offset)
        return entry is not None and entry[0] == log_offset

    def is_own(self, offset: int, head: RecordHead) -> bool:
        """Whether a record says itself that it is this message of the queue."""
        topic, queue_id = self.tail.key
        return (head.topic, head.queue_id, head.queue_offset) == (topic.encode(), queue_id, offset)

    def filed(self, offset: int) -> tuple[int, int, int] | None:
        """What the file holds in the place of an entry, whether that counts or not."""
        at = offset * ENTRY_BYTES
        file = self._handles.get(self._path(at))
        data = b"" if file is None else file.read(at % self._file_bytes, ENTRY_BYTES)
        return ENTRY.unpack(data) if len(data) == ENTRY_BYTES else None

    def points_before(self, place: int) -> bool:
        """Whether the files of a queue that was loaded have entries of messages before this place in the log.

        The last entry tells, or the one that was not taken over because it is too new.
        """
        entries = [self.filed(offset) for offset in (self.end - 1, self.end) if offset >= 0]
        return any(entry is not None and 0 < entry[1] != GAP_SIZE and entry[0] < place for entry in entries)

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

    def erase_behind(self, *, again: bool = False) -> bool:
        """Make sure that the files hold nothing behind the end; tells whether they did.

        What is left there would be taken for entries once the queue has grown to it.  That a process erased it before
        and was killed does not make it durable; with `again`, not even the next sync would.
        """
        at = self.end * ENTRY_BYTES
        self._handles.distrust(self._path(at))
        in_file = at % self._file_bytes
        following = at - in_file
        found = False
        is_only_file = following == self.start * ENTRY_BYTES
        if in_file or is_only_file:  # that one stays: it tells the queue's number
            found = self._handles.erase(self._path(at), in_file, again=again)
            following += self._file_bytes
        if self._files_end > following:
            found |= self._handles.delete_from(self._folder, following)
            self._files_end = following
        return found

    def begin_anew(self) -> None:
        """Forget all entries: the next one is number 0.  What the files hold is overwritten or erased later."""
        written = self.tail.start * ENTRY_BYTES
        self._files_end = max(self._files_end, written - written % self._file_bytes + self._file_bytes)
        self.start = QueueOffset(0)
        self.tail.reset(0)

    def skip_to(self, offset: int, stand_in: tuple[int, int, int]) -> int:
        """Go on at `offset` although entries before it are missing.

        Their places are filled with `stand_in`, because an entry of zeros would end the queue at the next start.  A
        queue that has nothing, or much too little, begins here instead, with a first file filled as the original does
        it.  Tells how many stand-ins that took.
        """
        if self._begins_at(offset):
            at = offset * ENTRY_BYTES
            in_file = at % self._file_bytes
            if in_file:
                gap = _GAP * (in_file // ENTRY_BYTES)
                self._handles.write(self._path(at), 0, gap, self._file_bytes)
            self.start = QueueOffset(offset)
            self.tail.reset(offset)
            return 0
        missing = self.gap_to(offset)
        for _ in range(missing):
            self.tail.append(*stand_in)
        return missing

    def gap_to(self, offset: int) -> int:
        """How many stand-ins `skip_to` takes."""
        return 0 if self._begins_at(offset) else offset - self.end

    def _begins_at(self, offset: int) -> bool:
        return self.end == self.start or offset - self.end > GAP_ENTRIES_MAX

    def expire(self, log_start: int) -> None:
        """Begin at the first entry whose record is still in the log, which now begins at `log_start`.

        A queue that has none left keeps its number: it begins where it ends.
        """

        def is_expired(number: int) -> bool:
            entry = self.entry(self.start + number)
            if entry is None:  # a missing file says nothing
                return False
            log_offset, size, _ = entry
            only_fills_file = (log_offset, size) == (0, GAP_SIZE)
            return log_offset < log_start or only_fills_file

        if self.start < self.end and is_expired(0):
            self.start = QueueOffset(self.start + _count_while(self.end - self.start, is_expired))

    def delete_first_file(self) -> str | None:
        """Delete the first file if all its entries are expired; returns the folder that has to be synced then.

        The file with the last entry stays, whatever is in it: it tells the queue's number at the next start.
        """
        at = min(self.start, max(0, self.tail.start - 1)) * ENTRY_BYTES
        kept = at - at % self._file_bytes
        if kept == 0:
            return None
        return self._folder if self._handles.delete_first(self._folder, kept) else None

    def forget(self) -> None:
        """The queue is deleted.  Whoever still holds it finds it empty, and leaves alone what gets its name."""
        self.start = QueueOffset(0)
        self.tail.reset(0)

    def load(self, names: list[str], limit: int, log_start: int) -> None:
        """Find start and end of a queue that has files.

        The queue ends before its first entry that is empty or points at or behind `limit` in the log.  Whatever is
        in the files behind that was perhaps written, perhaps not: nobody asks it.
        """
        bases = [int(name) for name in names]
        end = bases[0]
        files = len(bases)
        if not self._kept(bases[-1], 0, 1, limit):
            files = _count_while(files - 1, lambda number: bool(self._kept(bases[number], 0, 1, limit)))
        if files:
            base = bases[files - 1]
            pages = -(-self._file_bytes // _PAGE_BYTES)
            page = _count_while(pages, lambda number: bool(self._kept(base, number, 1, limit))) - 1
            end = base + page * _PAGE_BYTES + ENTRY_BYTES * self._kept(base, page, _PAGE_ENTRIES, limit)
        self._files_end = bases[-1] + self._file_bytes
        self.start = QueueOffset(bases[0] // ENTRY_BYTES)
        self.tail.reset(end // ENTRY_BYTES)
        self.expire(log_start)

    def _kept(self, base: int, page: int, count: int, limit: int) -> int:
        """How many entries from the beginning of a page are there and point before `limit`."""
        file = self._handles.get(self._path(base))
        data = b"" if file is None else file.read(page * _PAGE_BYTES, count * ENTRY_BYTES)
        kept = 0
        for log_offset, size, _ in ENTRY.iter_unpack(data):
            if size <= 0 or not 0 <= log_offset < limit:
                break
            kept += 1
        return kept

    def _path(self, at: int) -> str:
        return f"{self._folder}{os.sep}{name_of(at - at % self._file_bytes)}"


class QueueIndex:
    """All consume queues of a store."""

    def __init__(self, disk: Disk, root: str, file_bytes: int) -> None:
        self._disk = disk
        self._folder = os.path.join(root, "consumequeue")
        # Whole entries, as in the original; and no more than a file may have.
        self._file_bytes = (
            min(-(-file_bytes // ENTRY_BYTES), STORE_FILE_BYTES_MAX // ENTRY_BYTES) * ENTRY_BYTES
        )
        self._handles = FileHandles(disk)
        self._topics: dict[str, dict[int, ConsumeQueue]] = {}
        self.deletions = Deletions(disk, root)
        self.trash = Trash(disk, os.path.join(root, "deleted"), self._folder, self.deletions)

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for queues in self._topics.values():
            yield from queues.values()

    def load(self, limit: int, log_start: int) -> None:
        """Take over the queues that have files, each up to its first entry that points at or behind `limit`.

        They begin at the first record that is still in the log, which begins at `log_start`.
        """
        make_folder(self._disk, self._folder)
        self._disk.sync_dir(self._folder)  # a process that was killed may have deleted topics
        self.trash.open()
        self._topics.clear()
        for topic in self._disk.list(self._folder):
            for number in self._disk.list(os.path.join(self._folder, topic)):
                queue_id = queue_id_of(number)
                names = [] if queue_id is None else self._files_of(os.path.join(self._folder, topic, number))
                if queue_id is not None and names:
                    self.get(topic, queue_id).load(names, limit, log_start)
            if self._came_back(topic):
                self.delete_topic(topic, self.deletions.place_of(topic))

    def _came_back(self, topic: str) -> bool:
        """Whether power loss has brought back the folder of a topic that was deleted.

        No queue is made before the deletion of the last one of its name lasts, so the folder is wholly old or new.
        """
        place = self.deletions.place_of(topic)
        queues = self._topics.get(topic, {}).values() if place else ()
        return any(queue.points_before(place) for queue in queues)

    def _files_of(self, folder: str) -> list[str]:
        """A queue's files; one without a length was being made when power was lost, and is made again in time."""
        names: list[str] = []
        for name in self._disk.list(folder):
            base = place_of(name)
            if base is None:
                continue
            size = self._disk.size_of(os.path.join(folder, name))
            if size == 0:
                self._handles.delete(os.path.join(folder, name))
            elif size != self._file_bytes or base % self._file_bytes:
                raise StoreError(
                    f"{folder} has files of another size than mappedFileSizeConsumeQueue,"
                    f" {self._file_bytes}; set it to the size that the files have"
                )
            else:
                names.append(name)
        return names

    def destroy(self) -> None:
        """Delete all queues: they belong to a log that is gone."""
        self._topics.clear()
        for topic in self._disk.list(self._folder):
            self._disk.delete_tree(os.path.join(self._folder, topic))

    def take_unsynced(self) -> Unsynced:
        """Files to sync for a checkpoint; `synced` is called when that has worked."""
        return self._handles.take_unsynced()

    def synced(self) -> None:
        self._handles.synced()

    def find(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        queues = self._topics.get(topic)
        return None if queues is None else queues.get(queue_id)

    def topics(self) -> list[str]:
        """Of which there are queues."""
        return list(self._topics)

    def of_topic(self, topic: str) -> list[ConsumeQueue]:
        """Its queues, whatever the table of topics says of it, in no order."""
        return list(self._topics.get(topic, {}).values())

    def tails(self, topic: str, count: int) -> list[QueueTail | None]:
        """The tails of the first so many queues; None for those that nobody has written to."""
        tails: list[QueueTail | None] = [None] * count
        for queue_id, queue in self._topics.get(topic, {}).items():
            if queue_id < count:
                tails[queue_id] = queue.tail
        return tails

    def grown_to(self, topic: str) -> int:
        """The next offsets of all its queues together."""
        return sum(queue.tail.next_offset for queue in self._topics.get(topic, {}).values())

    def end_of(self, topic: str, queue_id: int) -> int:
        """Where the queue's next message goes."""
        queue = self.find(topic, queue_id)
        return 0 if queue is None else queue.end

    def get(self, topic: str, queue_id: int) -> ConsumeQueue:
        """The queue; an unknown one exists in memory until something is written.

        A topic that was deleted a moment ago has none before that deletion lasts: recovery takes it for granted that
        no old entries come back under new messages.
        """
        queue = self.find(topic, queue_id)
        if queue is None:
            self.trash.let_in(topic)
            folder = os.path.join(self._folder, topic, str(queue_id))
            queue = ConsumeQueue(self._handles, folder, self._file_bytes, (topic, queue_id))
            self._topics.setdefault(topic, {})[queue_id] = queue
        return queue

    def has_had_messages(self, topic: str) -> bool:
        """Whether the topic has files, or messages of which no file has heard."""
        queues = self._topics.get(topic, {}).values()
        return any(queue.end for queue in queues) or self._disk.exists(os.path.join(self._folder, topic))

    def delete_topic(self, topic: str, log_end: int | None, host: str | None = None) -> None:
        """Move the files of the topic's queues to the trash and forget them; the log ends here, None for a topic that
        leaves nothing."""
        if log_end is not None:
            self.trash.take(topic, log_end, host)
        self._handles.forget_topic(os.path.join(self._folder, topic))
        for queue in self._topics.pop(topic, {}).values():
            queue.forget()

    def trim(self) -> None:
        """Delete all files that hold nothing but expired entries, as a cleaner does over time.

        Done at every stop, for the original: it looks for the first entry of a queue in the queue's first file only,
        and would tell its clients of messages that are gone.
        """
        folders: set[str] = set()
        for queue in self:
            while (folder := queue.delete_first_file()) is not None:
                folders.add(folder)
        for folder in sorted(folders):
            self._disk.sync_dir(folder)

    def close(self) -> None:
        self._handles.close()
