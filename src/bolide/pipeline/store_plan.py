"""Which parts of a log a read of store files has, decided once, on the driver.

The end of the log is fixed here, so a read that is computed again gives the same rows although the broker goes on.  A
part is read from its first record to its last (`walk`).  Where the wanted messages are few among many, their queue
entries are followed instead (`jumps`), which a broker may not have written yet for the newest part of the log: that
part is always walked.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_TASKS_MAX
from bolide.model.names import DEAD_LETTER_PREFIX, is_system_topic
from bolide.offline.files import Geometry, OfflineQueue, QueueKey, StoreFiles
from bolide.offline.places import NEVER, complete_before, cuts, first_behind, in_time, log_end, opening
from bolide.offline.scan import is_topic
from bolide.offline.table_files import Tables, read_tables
from bolide.pipeline.store_options import StoreOptions
from bolide.store.disk_os import OsDisk

JUMP_BYTES = 4096
"""To follow an entry to its record costs as much as to walk over so many bytes."""

FEW = 4
"""Where more than one in so many messages is wanted, nobody counts them."""


@dataclass(frozen=True)
class EntryRange:
    """Entries of one queue, from `first` to before `last`."""

    topic: str
    queue_id: int
    first: int
    last: int


@dataclass(frozen=True)
class StorePart:
    """What a task reads: the log from `begin`, where a record begins, to `end`; with `jumps`, only these of it."""

    begin: int
    end: int
    geometry: Geometry
    broker_name: str
    jumps: tuple[EntryRange, ...] | None = None

    def __str__(self) -> str:
        return f"the log from {self.begin} to {self.end}"


def open_store(options: StoreOptions, geometry: Geometry | None = None) -> StoreFiles:
    return StoreFiles(OsDisk(), options.path, geometry)


class Openings:
    """From which place of the log on the records of a queue are rows of the read."""

    def __init__(self, store: StoreFiles, options: StoreOptions) -> None:
        self._store = store
        self._options = options
        self._tables: Tables | None = None

    def __call__(self, topic: bytes, queue_id: int) -> int:
        if not is_topic(topic) or not takes(self._options, topic.decode()):
            return NEVER
        key = topic.decode(), queue_id
        place = opening(self._store, key)
        if place is not None:
            return place
        if self._tables is None:
            self._tables = read_tables(self._store.disk, self._store.config_paths())
        if self._tables.topics is not None and key[0] not in self._tables.topics:
            return NEVER  # deleted, by a broker that does not write down where
        return self._store.deleted.get(topic, 0)


def takes(options: StoreOptions, topic: str) -> bool:
    """Whether a topic is read.  Dead letters are meant only by who names them, as in reads through brokers."""
    if options.topics:
        return topic in options.topics
    if is_system_topic(topic) and not options.includes_system_topics:
        return False
    if options.pattern is not None and not re.fullmatch(options.pattern, topic):
        return False
    names_them = options.pattern is not None and options.pattern.startswith(DEAD_LETTER_PREFIX[0])
    return names_them or options.includes_system_topics or not topic.startswith(DEAD_LETTER_PREFIX)


def plan_parts(options: StoreOptions) -> list[StorePart]:
    """The parts that tasks read, one each."""
    store = open_store(options)
    try:
        return _plan(store, options)
    finally:
        store.close()


def _plan(store: StoreFiles, options: StoreOptions) -> list[StorePart]:
    tables = read_tables(store.disk, store.config_paths())
    _check_topics(store, tables, options)
    begin, end = store.log.start, log_end(store)
    piece_bytes = min(options.part_bytes_max, max(1, -(-(end - begin) // options.min_partitions)))
    places = cuts(store, begin, end, piece_bytes)
    pieces = list(in_time(store, places, options.since_ms, options.until_ms))
    known_before = complete_before(store, end)
    geometry = Geometry(store.log.file_bytes, store.queue_file_bytes)
    broker_name = options.broker_name or tables.broker_name
    wanted = _few(store, options)
    parts: list[StorePart] = []
    for first, last in pieces:
        part = StorePart(first, last, geometry, broker_name)
        if wanted is not None and last <= known_before:
            jumping = replace(part, jumps=tuple(_entries(wanted, first, last)))
            part = jumping if _count(jumping) * JUMP_BYTES < last - first else part
        if part.jumps != ():
            parts.append(part)
    store.check()
    parts = _joined(parts, options)
    if len(parts) > SPARK_TASKS_MAX:
        raise ConfigError(
            f"{len(parts)} parts of the log would be as many tasks, and Spark gets at most {SPARK_TASKS_MAX}:"
            " raise maxBytesPerPartition"
        )
    return parts


def _check_topics(store: StoreFiles, tables: Tables, options: StoreOptions) -> None:
    """A topic that is named and not there is a mistake, not an empty table."""
    there = {key[0] for key in store.queues} | set(tables.topics or ())
    missing = sorted(set(options.topics) - there)
    if missing and tables.topics is not None:
        raise ConfigError(f"the store {store.root} has no topic {', '.join(missing)}")


def _few(store: StoreFiles, options: StoreOptions) -> list[OfflineQueue] | None:
    """The wanted queues if they have few of all messages, else None."""
    wanted: list[OfflineQueue] = []
    count = total = 0
    for key, queue in store.queues.items():
        messages = queue.sound_end() - queue.first
        total += messages
        if takes(options, key[0]):
            wanted.append(queue)
            count += messages
    return wanted if count * FEW < total else None


def _entries(queues: Sequence[OfflineQueue], begin: int, end: int) -> Iterator[EntryRange]:
    for queue in queues:
        first, last = first_behind(queue, begin), first_behind(queue, end)
        if first < last:
            yield EntryRange(*queue.key, first, last)


def _count(part: StorePart) -> int:
    return sum(one.last - one.first for one in part.jumps or ())


def _joined(parts: list[StorePart], options: StoreOptions) -> list[StorePart]:
    """Neighbours with a few messages each become one task."""
    if len(parts) <= options.min_partitions:
        return parts
    joined: list[StorePart] = []
    for part in parts:
        if joined and _count(joined[-1]) + _count(part) <= options.part_bytes_max // JUMP_BYTES:
            before = joined[-1]
            if before.jumps is not None and part.jumps is not None:
                joined[-1] = replace(before, end=part.end, jumps=_united(before.jumps, part.jumps))
                continue
        joined.append(part)
    return joined


def _united(before: tuple[EntryRange, ...], after: tuple[EntryRange, ...]) -> tuple[EntryRange, ...]:
    """Ranges of both, one for each queue: nothing lies between them."""
    ranges: dict[QueueKey, EntryRange] = {(one.topic, one.queue_id): one for one in before}
    for one in after:
        key = one.topic, one.queue_id
        first = ranges[key].first if key in ranges else one.first
        ranges[key] = EntryRange(*key, first, one.last)
    return tuple(ranges.values())
