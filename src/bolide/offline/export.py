"""Messages of a store as their records, in the order of the log, without a broker.

Given is what consumers would get after the next start: records that their queues have an entry for, records that
came too late for one, and records whose entry is damaged.  Records of topics that were deleted are not given, though
the log still has them, nor are halves of transactions.  Holes in the log are passed over and counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bolide.offline.files import OfflineQueue, QueueKey, StoreFiles
from bolide.offline.scan import Hole, LogScan, Progress, Stretch, is_topic, sound_at
from bolide.offline.table_files import read_tables
from bolide.offline.verify_index import store_time_of
from bolide.store.append import QueueTail
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES
from bolide.store.walk import LogWalk

BLOCK_BYTES = 4 * 1024 * 1024
TIME_MS_MAX = 2**63 - 1

_UNSEEN = -(2**62)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which messages; None takes all."""

    topic: str | None = None
    queue_id: int | None = None
    since_ms: int = 0
    until_ms: int = TIME_MS_MAX  # stored before this

    def takes(self, key: QueueKey) -> bool:
        return self.topic in (None, key[0]) and self.queue_id in (None, key[1])


class _Wanted:
    """A queue that is exported: the entries that the walk has met and nobody has taken yet."""

    def __init__(self, key: QueueKey, disk: OfflineQueue | None, is_known: bool) -> None:
        self.key = key
        self.disk = disk
        self.is_known = is_known
        self.end = 0 if disk is None else disk.end()
        self.newest = disk.entry(self.end - 1)[0] if disk is not None and self.end > disk.first else -1
        self.tail = QueueTail(key, _UNSEEN, self)


class Export:
    """One pass over a store."""

    def __init__(self, store: StoreFiles, selection: Selection, progress: Progress | None = None) -> None:
        self._store = store
        self._selection = selection
        self._progress = progress
        self._tables = read_tables(store.disk, store.config_paths())
        self._wanted: dict[QueueKey, _Wanted] = {}
        self._places: list[tuple[int, int]] = []
        self.messages = 0
        self.holes: list[Hole] = []

    @property
    def broker_name(self) -> str:
        """The broker's name, if its tables tell."""
        return self._tables.broker_name

    @property
    def is_of_nothing(self) -> bool:
        """Whether a topic is wanted that the store has no queue of, and its tables do not name."""
        topic, topics = self._selection.topic, self._tables.topics
        if topic is None or topics is None or topic in topics:
            return False
        return all(topic != key[0] for key in self._store.queues)

    def blocks(self) -> Iterator[bytes]:
        """Records back to back, some megabytes at a time."""
        walk = LogWalk(self._find, self._mend, None, self._store.deleted)
        for step in LogScan(self._store, walk, self._progress).run(self._start()):
            if isinstance(step, Hole):
                self.holes.append(step)
            elif isinstance(step, Stretch):
                for block in self._drain():
                    self._store.check()
                    yield block
                head = sound_at(self._store, step.at)
                if head is not None and head.store_timestamp_ms >= self._selection.until_ms:
                    break  # store times never go back along the log

    # ---- what the walk calls -------------------------------------------------------------------------------

    def _find(self, topic: bytes, queue_id: int) -> QueueTail | None:
        if not is_topic(topic):
            return None
        key = topic.decode(), queue_id
        if not self._selection.takes(key):
            return QueueTail(key, _UNSEEN, None)
        wanted = self._wanted.get(key)
        if wanted is None:
            topics = self._tables.topics
            known = topics is None or key[0] in topics
            wanted = self._wanted[key] = _Wanted(key, self._store.queues.get(key), known)
        return wanted.tail

    def _mend(self, tail: QueueTail, number: int, log_offset: int) -> bool:
        wanted = tail.owner
        if not isinstance(wanted, _Wanted):
            return False
        self._take(wanted)
        tail.reset(number)
        return True

    # ---- from entries to records ---------------------------------------------------------------------------

    def _start(self) -> int | None:
        """A record before which nothing is wanted; None is the beginning of the log."""
        starts = [base for base in self._store.log.bases if self._is_before(base)]
        since = starts[-1] if starts else self._store.log.start
        if self._selection.topic is None or not self._store.is_clean:
            return since
        firsts = []
        for key, queue in self._store.queues.items():
            if self._selection.takes(key):
                end = queue.sound_end()
                first = queue.first_kept(end, self._store.log.start)
                head = sound_at(self._store, queue.entry(first)[0]) if first < end else None
                if head is None and first < end:
                    return since  # nothing to go by
                firsts += [] if head is None else [head.log_offset]
        return max(since, min(firsts, default=since))

    def _is_before(self, base: int) -> bool:
        head = sound_at(self._store, base)
        return head is not None and head.store_timestamp_ms < self._selection.since_ms

    def _take(self, wanted: _Wanted) -> None:
        """Choose among the entries of a queue."""
        tail = wanted.tail
        first, last = tail.start, tail.next_offset
        if first == last:
            return
        entries = tail.entries(first, last)
        tail.drop_before(last)
        found = bytes(len(entries)) if wanted.disk is None else wanted.disk.read(first, last)
        for at in range(0, len(entries), ENTRY_BYTES):
            log_offset, size, _ = ENTRY.unpack_from(entries, at)
            same = entries[at : at + 12] == found[at : at + 12]
            if same or self._is_visible(wanted, first + at // ENTRY_BYTES, log_offset, found, at):
                self._places.append((log_offset, size))

    def _is_visible(self, wanted: _Wanted, number: int, log_offset: int, found: bytes, at: int) -> bool:
        """Whether a record without an entry of its own will have one, or had one before it was damaged."""
        if wanted.disk is None:
            return wanted.is_known
        if number >= wanted.end:
            return log_offset > wanted.newest
        head = sound_at(self._store, ENTRY.unpack_from(found, at)[0])
        is_newer = head is not None and (head.topic.decode(), head.queue_id, head.queue_offset) == (
            *wanted.key,
            number,
        )
        return not is_newer  # else the topic was deleted and made again, and this record is of the old one

    def _drain(self) -> Iterator[bytes]:
        for wanted in self._wanted.values():
            self._take(wanted)
        places = sorted(self._places)
        self._places = []
        block: list[bytes] = []
        size_bytes = 0
        for log_offset, size in places:
            record = self._read(log_offset, size)
            if self._selection.since_ms <= store_time_of(record) < self._selection.until_ms:
                block.append(record)
                size_bytes += size
                self.messages += 1
            if size_bytes >= BLOCK_BYTES:
                yield b"".join(block)
                block, size_bytes = [], 0
        if block:
            yield b"".join(block)

    def _read(self, log_offset: int, size: int) -> bytes:
        base = self._store.log.base_of(log_offset)
        assert base is not None
        return bytes(self._store.log.view(base)[log_offset - base : log_offset - base + size])
