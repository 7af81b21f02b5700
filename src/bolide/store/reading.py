"""StoreReader: everything that reads messages and queues of an open store, and never changes one.

A pull looks up queue entries, chooses among them by tag and limits, and copies the records they point at.  Consumers
see what is durable under SYNC_FLUSH, everything otherwise.
"""

from array import array
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.codec import RecordHead, inspect_record
from bolide.store.append import QueueTail, gather, select_entries
from bolide.store.flush import Durability
from bolide.store.log import CommitLog
from bolide.store.queue_index import ConsumeQueue, QueueIndex

SCAN_ENTRIES = 800
"""Entries that one pull looks at when a filter drops most of them."""


class PullStatus(Enum):
    """How a read ended; the names travel to clients as the remark (RocketMQ: GetMessageStatus)."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"


class PullLimits(NamedTuple):
    """How much one pull may bring: more from recent messages, which are in memory, than from old ones."""

    hot_count: int
    hot_bytes: int
    cold_count: int
    cold_bytes: int
    hot_bytes_behind: int


@dataclass(slots=True)
class PullResult:
    status: PullStatus
    next_offset: int
    offset_min: int
    offset_max: int
    data: bytes = b""
    count: int = 0


class StoreReader:
    def __init__(
        self,
        log: CommitLog,
        queues: QueueIndex,
        durability: Durability,
        *,
        durable_only: bool,
        recent_bytes: int,
    ) -> None:
        self._log = log
        self._queues = queues
        self._durability = durability
        self._durable_only = durable_only
        self._recent_bytes = recent_bytes

    @property
    def readable_end(self) -> LogOffset:
        """The part of the log that consumers may see."""
        return self._durability.durable if self._durable_only else self._log.end

    def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        limits: PullLimits,
        codes: frozenset[int] | None,
    ) -> PullResult:
        """Messages of a queue from an offset, as stored bytes."""
        queue = self._queues.find(topic, queue_id)
        start, end = (queue.start, queue.end) if queue is not None else (0, 0)
        if queue is None or end == 0:
            return PullResult(PullStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        if offset < start:
            return PullResult(PullStatus.OFFSET_TOO_SMALL, start, start, end)
        if offset == end:
            return PullResult(PullStatus.OFFSET_OVERFLOW_ONE, offset, start, end)
        if offset > end:
            return PullResult(PullStatus.OFFSET_OVERFLOW_BADLY, end, start, end)
        entries = queue.read(offset, max(SCAN_ENTRIES if codes else 0, limits.hot_count))
        if not entries:
            return PullResult(PullStatus.OFFSET_FOUND_NULL, queue.following(offset), start, end)
        if self._log.end - int.from_bytes(entries[:8], "big") <= limits.hot_bytes_behind:
            count_max, size_bytes_max = limits.hot_count, limits.hot_bytes
        else:
            count_max, size_bytes_max = limits.cold_count, limits.cold_bytes
        scanned, total, chosen = select_entries(entries, codes, count_max, size_bytes_max, self.readable_end)
        if scanned == 0:  # nothing durable yet
            return PullResult(PullStatus.OFFSET_OVERFLOW_ONE, offset, start, offset)
        if not chosen:
            return PullResult(PullStatus.NO_MATCHED_MESSAGE, offset + scanned, start, end)
        data = self._gather(chosen, total)
        status = PullStatus.FOUND if data else PullStatus.MESSAGE_WAS_REMOVING
        return PullResult(status, offset + scanned, start, end, data, len(chosen) // 2)

    def _gather(self, chosen: "array[int]", total: int) -> bytes:
        segment = self._log.segment_of(chosen[0])
        if segment is not None and segment is self._log.segment_of(chosen[-2]):
            return gather(segment.view, segment.base, chosen, total)
        records = (self._log.read(chosen[at], chosen[at + 1]) for at in range(0, len(chosen), 2))
        return b"".join(record for record in records if record is not None)

    def is_readable(self, tail: QueueTail, readable_end: int) -> bool:
        """Whether consumers may see all messages of a queue."""
        queue = tail.owner
        assert isinstance(queue, ConsumeQueue)
        last = queue.entry(tail.next_offset - 1)
        return last is None or last[0] + last[1] <= readable_end

    def read_at(self, log_offset: int) -> bytes | None:
        """The record that begins at this place of the log."""
        head = self.head_at(log_offset)
        return None if head is None else self._log.read(log_offset, head.size)

    def queue_range(self, topic: str, queue_id: int) -> tuple[QueueOffset, QueueOffset]:
        """First and next offset of a queue; (0, 0) for one that was never written."""
        queue = self._queues.find(topic, queue_id)
        return (QueueOffset(0), QueueOffset(0)) if queue is None else (queue.start, queue.end)

    def store_time(self, topic: str, queue_id: int, offset: int) -> int | None:
        """When a queue's message was stored."""
        queue = self._queues.find(topic, queue_id)
        entry = queue.entry(offset) if queue is not None and offset >= queue.start else None
        head = self.head_at(entry[0]) if entry is not None else None
        return None if head is None else head.store_timestamp_ms

    def first_is_in_memory(self, topic: str, queue_id: int) -> bool:
        """Whether a queue still has its very first message, and recent enough to be read from memory."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.start > 0:
            return False
        entry = queue.entry(0)
        return entry is not None and self._log.end - entry[0] <= self._recent_bytes

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        start, end = self.queue_range(topic, queue_id)
        found = self.store_time(topic, queue_id, start) if end > start else None
        return -1 if found is None else found

    def search_offset(
        self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False
    ) -> QueueOffset:
        """The first message stored at or after a time; with `upper`, the last one at or before it."""
        low, high = self.queue_range(topic, queue_id)
        first, last = low, high
        while low < high:
            middle = QueueOffset((low + high) // 2)
            stored = self.store_time(topic, queue_id, middle)
            before = stored is None or (stored <= timestamp_ms if upper else stored < timestamp_ms)
            if before:
                low = QueueOffset(middle + 1)
            else:
                high = middle
        return QueueOffset(max(first, low - 1)) if upper and last > first else low

    def head_at(self, log_offset: int) -> RecordHead | None:
        """The fixed part of the record that begins at this place of the log."""
        segment = self._log.segment_of(log_offset)
        if segment is None or not self._log.start <= log_offset < self._log.end:
            return None
        head = inspect_record(segment.view, log_offset - segment.base, segment.size, False)
        return head if isinstance(head, RecordHead) and head.log_offset == log_offset else None
