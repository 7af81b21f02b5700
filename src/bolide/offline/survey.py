"""What is in a store: segments, topics, queues, groups, index files, checkpoint, tables.

Looks at names, sizes, the ends of queues and a few records, so it is fast whatever the store holds; only
`count_records` reads the whole log.  Believes what it reads: whether that is sound is the business of `verify.py`.
"""

from dataclasses import dataclass, field

from bolide.model.data_version import DataVersion
from bolide.offline.files import OfflineQueue, QueueKey, StoreFiles
from bolide.offline.scan import LogScan, Progress, Stretch, is_topic, sound_at
from bolide.offline.table_files import Tables, read_tables
from bolide.store.append import QueueTail
from bolide.store.checkpoint import Checkpoint
from bolide.store.disk import ReadingDisk
from bolide.store.index_layout import HEADER_BYTES, IndexHeader
from bolide.store.queue_entry import ENTRY, GAP_SIZE
from bolide.store.walk import LIMIT, LogWalk


@dataclass(frozen=True, slots=True)
class SegmentSurvey:
    file: str
    base: int
    size_bytes: int
    allocated_bytes: int
    first_ms: int  # 0 when nothing is in it


@dataclass(frozen=True, slots=True)
class QueueSurvey:
    topic: str
    queue_id: int
    offset_min: int
    offset_max: int
    first_ms: int
    last_ms: int

    @property
    def messages(self) -> int:
        return self.offset_max - self.offset_min


@dataclass(frozen=True, slots=True)
class ProgressSurvey:
    """How far a group has come in one queue."""

    group: str
    topic: str
    queue_id: int
    offset: int
    lag: int


@dataclass(frozen=True, slots=True)
class IndexSurvey:
    file: str
    header: IndexHeader
    size_bytes: int
    allocated_bytes: int

    @property
    def entries(self) -> int:
        return max(0, self.header.next_entry - 1)


@dataclass(frozen=True, slots=True)
class Survey:
    root: str
    is_clean: bool
    is_running: bool
    log_start: int
    log_end: int
    segment_bytes: int
    last_ms: int
    segments: list[SegmentSurvey]
    queues: list[QueueSurvey]
    groups: list[ProgressSurvey]
    index: list[IndexSurvey]
    checkpoint: Checkpoint | None
    tables: dict[str, DataVersion | None]
    odd: list[tuple[str, str]]
    size_bytes: int
    allocated_bytes: int


def survey(disk: ReadingDisk, root: str, *, topic: str | None = None) -> Survey:
    """Look around in a store; with `topic` only its queues and groups are told."""
    store = StoreFiles(disk, root)
    try:
        return _look(store, topic)
    finally:
        store.close()


def _look(store: StoreFiles, topic: str | None) -> Survey:
    tables = read_tables(store.disk, store.config_paths())
    ends = {key: queue.sound_end() for key, queue in store.queues.items()}
    queues = [_look_at_queue(store, queue, ends[key]) for key, queue in sorted(store.queues.items())]
    end, last_ms = _log_end(store, ends)
    size_bytes, allocated_bytes = store.disk.tree_bytes(store.root)
    found = Survey(
        root=store.root,
        is_clean=store.is_clean,
        is_running=store.is_locked,
        log_start=store.log.start,
        log_end=end,
        segment_bytes=store.log.file_bytes,
        last_ms=last_ms,
        segments=[_look_at_segment(store, base) for base in store.log.bases],
        queues=[queue for queue in queues if topic in (None, queue.topic)],
        groups=[group for group in _groups(tables, ends) if topic in (None, group.topic)],
        index=[_look_at_index(store, path) for path in store.index_paths()],
        checkpoint=_checkpoint(store),
        tables=tables.versions or {},
        odd=[(store.name(odd.path), odd.what) for odd in store.odd],
        size_bytes=size_bytes,
        allocated_bytes=allocated_bytes,
    )
    store.check()
    return found


def _look_at_segment(store: StoreFiles, base: int) -> SegmentSurvey:
    path = store.log.path(base)
    head = sound_at(store, base)
    return SegmentSurvey(
        store.name(path),
        base,
        store.disk.size_of(path),
        store.disk.allocated_bytes(path),
        0 if head is None else head.store_timestamp_ms,
    )


def _look_at_queue(store: StoreFiles, queue: OfflineQueue, end: int) -> QueueSurvey:
    first = queue.first_kept(end, store.log.start)
    times = [_stored_ms(store, queue.entry(offset)) if first < end else 0 for offset in (first, end - 1)]
    return QueueSurvey(*queue.key, first, end, *times)


def _stored_ms(store: StoreFiles, entry: tuple[int, int, int]) -> int:
    head = sound_at(store, entry[0]) if 0 < entry[1] < GAP_SIZE else None
    return 0 if head is None else head.store_timestamp_ms


def _log_end(store: StoreFiles, ends: dict[QueueKey, int]) -> tuple[int, int]:
    """Where the log ends and the time of its last message: from the newest queue entry on, records are walked."""
    last = [store.queues[key].entry(end - 1) for key, end in ends.items() if end > store.queues[key].first]
    at = max((log_offset for log_offset, size, _ in last if size < GAP_SIZE), default=store.log.start)
    if sound_at(store, at) is None:  # nothing to go by: the newest segment that has anything
        at = next((base for base in reversed(store.log.bases) if sound_at(store, base)), store.log.start)
    walk = LogWalk(_ignored, lambda tail, number, log_offset: False)
    base = store.log.base_of(at)
    while base is not None:
        position, why = walk.go(store.log.view(base), base, at - base, store.log.file_bytes, False)
        end = base + position
        if position > at - base and why == LIMIT:
            at = end
        else:
            following = base + store.log.file_bytes
            if sound_at(store, following) is None:
                return end, walk.store_timestamp_ms
            at = following
        base = store.log.base_of(at)
    return at, walk.store_timestamp_ms


def _ignored(topic: bytes, queue_id: int) -> QueueTail | None:
    return QueueTail(("", 0), -1, None) if is_topic(topic) else None


def _groups(tables: Tables, ends: dict[QueueKey, int]) -> list[ProgressSurvey]:
    offsets = sorted((tables.offsets or {}).items())
    return [
        ProgressSurvey(group, topic, queue_id, offset, max(0, ends.get((topic, queue_id), 0) - offset))
        for (group, topic, queue_id), offset in offsets
    ]


def _look_at_index(store: StoreFiles, path: str) -> IndexSurvey:
    size = store.disk.size_of(path)
    header = IndexHeader(0, 0, 0, 0, 0, 0)
    if size >= HEADER_BYTES:
        header = IndexHeader.read(store.files.view(path))
    return IndexSurvey(store.name(path), header, size, store.disk.allocated_bytes(path))


def _checkpoint(store: StoreFiles) -> Checkpoint | None:
    data = store.read_small("checkpoint")
    return None if data is None else Checkpoint.decode(data)


@dataclass(slots=True)
class RecordCount:
    """What the whole log holds of one queue, whether or not its entries are still there."""

    records: int = 0
    size_bytes: int = 0
    tail: QueueTail | None = field(default=None, repr=False)


def count_records(
    disk: ReadingDisk, root: str, *, progress: Progress | None = None
) -> dict[QueueKey, RecordCount]:
    """Read the whole log and count."""
    counts: dict[QueueKey, RecordCount] = {}

    def find(topic: bytes, queue_id: int) -> QueueTail | None:
        if not is_topic(topic):
            return None
        count = counts.setdefault((topic.decode(), queue_id), RecordCount())
        if count.tail is None:
            count.tail = QueueTail((topic.decode(), queue_id), 0, count)
        return count.tail

    def mend(tail: QueueTail, number: int, log_offset: int) -> bool:
        _take(tail)
        tail.reset(number)
        return True

    store = StoreFiles(disk, root)
    try:
        for step in LogScan(store, LogWalk(find, mend), progress).run():
            if isinstance(step, Stretch):
                for count in counts.values():
                    assert count.tail is not None
                    _take(count.tail)
        store.check()
    finally:
        store.close()
    return counts


def _take(tail: QueueTail) -> None:
    """Count the entries that the walk has put into a tail."""
    count = tail.owner
    assert isinstance(count, RecordCount)
    data = tail.entries(tail.start, tail.next_offset)
    count.records += tail.next_offset - tail.start
    count.size_bytes += sum(size for _, size, _ in ENTRY.iter_unpack(data))
    tail.drop_before(tail.next_offset)
