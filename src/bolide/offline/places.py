"""Places of a log: where it ends, where it can be cut in two, where the messages of a queue begin.

For whoever reads parts of a log by themselves.  A record begins where a queue's entry and the record say so both; bytes
of a body that look like a record are none.  Nothing here believes an entry that was not held against its record.
"""

import itertools
from collections.abc import Iterator

from bolide.offline.files import OfflineQueue, QueueKey, StoreFiles
from bolide.offline.scan import LogScan, is_topic, sound_at
from bolide.record.codec import RecordHead
from bolide.store.append import QueueTail
from bolide.store.checkpoint import Checkpoint
from bolide.store.queue_entry import GAP_SIZE
from bolide.store.walk import LogWalk

NEVER = 2**63 - 1

CUTTERS_MAX = 8
"""So many queues, the longest ones, are asked where a log can be cut."""


def walk_of_nothing() -> LogWalk:
    """A walk that looks at records and keeps nothing of them."""
    return LogWalk(_no_tail, lambda tail, number, log_offset: False)


def _no_tail(topic: bytes, queue_id: int) -> QueueTail | None:
    return QueueTail(("", 0), -1, None) if is_topic(topic) else None


def newest_place(store: StoreFiles) -> int:
    """A record near the end of the log: the newest that has a queue entry, else the first of the last segment."""
    at = -1
    for queue in store.queues.values():
        end = queue.sound_end()
        log_offset, size, _ = queue.entry(end - 1) if end > queue.first else (-1, 0, 0)
        at = max(at, log_offset if 0 < size < GAP_SIZE else -1)
    if sound_at(store, at) is None:
        at = next((base for base in reversed(store.log.bases) if sound_at(store, base)), store.log.start)
    return at


def log_end(store: StoreFiles) -> int:
    """Behind the last whole record.  A log that is being written has more in a moment, and never less."""
    scan = LogScan(store, walk_of_nothing())
    for _ in scan.run(newest_place(store)):
        pass
    return scan.end


def complete_before(store: StoreFiles, end: int) -> int:
    """All records before this place have their queue entries on the disk, unless these are damaged."""
    if store.is_clean and not store.is_locked:
        return end
    checkpoint = Checkpoint.decode(store.read_small("checkpoint") or b"")
    if checkpoint.mark is not None:
        return min(checkpoint.mark.end, end)
    bases = [base for base in store.log.bases if base < end]
    for base in reversed(bases):
        head = sound_at(store, base)
        if head is not None and head.store_timestamp_ms <= checkpoint.safe_ms:
            return base
    return store.log.start


def record_of(store: StoreFiles, queue: OfflineQueue, offset: int) -> RecordHead | None:
    """The record that is the queue's message of this number; None where entry or record is not sound."""
    log_offset, size, _ = queue.entry(offset)
    head = sound_at(store, log_offset) if 0 < size < GAP_SIZE else None
    if head is None or (head.size, head.queue_id, head.queue_offset) != (size, queue.key[1], offset):
        return None
    return head if head.topic == queue.key[0].encode() else None


def opening(store: StoreFiles, key: QueueKey) -> int | None:
    """Records of the queue before this place of the log are of an earlier topic that had its name.

    None where there is no such queue, though there may be records that it will have.
    """
    floor = store.deleted.get(key[0].encode(), 0)
    queue = store.queue(key)
    if queue is None:
        return None
    end = queue.sound_end()
    first = queue.first_kept(end, store.log.start)
    head = record_of(store, queue, first) if first < end else None
    return floor if head is None else max(floor, head.log_offset)


def first_behind(queue: OfflineQueue, place: int) -> int:
    """The first entry of a record at this place or behind it."""
    low, high = queue.first, queue.sound_end()
    while low < high:
        middle = (low + high) // 2
        log_offset, size, _ = queue.entry(middle)
        if log_offset < place or size == GAP_SIZE:
            low = middle + 1
        else:
            high = middle
    return low


def cuts(store: StoreFiles, begin: int, end: int, piece_bytes: int) -> list[int]:
    """Places from `begin` to `end`, both included, where records begin, about so far from each other.

    Every segment begins a new piece.  Where no queue knows a record, a piece stays as long as it is.
    """
    queues = sorted(store.queues.values(), key=lambda queue: queue.first - queue.sound_end())[:CUTTERS_MAX]
    found = [begin]
    for base in store.log.bases:
        limit = min(base + store.log.file_bytes, end)
        if limit <= begin or base >= end:
            continue
        if base > begin:
            found.append(base)
        for target in range(max(base, begin) + piece_bytes, limit - piece_bytes // 2, piece_bytes):
            place = _record_behind(store, queues, target, limit)
            if place is not None and place > found[-1]:
                found.append(place)
    return [*found, end] if end > begin else []


def _record_behind(store: StoreFiles, queues: list[OfflineQueue], target: int, limit: int) -> int | None:
    """The first record at or behind a place that one of these queues knows of."""
    known = (record_of(store, queue, first_behind(queue, target)) for queue in queues)
    places = [head.log_offset for head in known if head is not None and target <= head.log_offset < limit]
    return min(places, default=None)


def time_at(store: StoreFiles, place: int) -> int | None:
    """When the record at this place was stored; None where there is none."""
    head = sound_at(store, place)
    return None if head is None else head.store_timestamp_ms


def in_time(store: StoreFiles, places: list[int], since_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
    """The pieces between neighbouring places that can have a record of this time: times never go back along a log."""
    times = [time_at(store, place) for place in places]
    for (begin, end), (first_ms, next_ms) in zip(
        itertools.pairwise(places), itertools.pairwise(times), strict=True
    ):
        if not (first_ms is not None and first_ms >= until_ms) and not (
            next_ms is not None and next_ms < since_ms
        ):
            yield begin, end
