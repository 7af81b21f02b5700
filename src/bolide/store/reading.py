"""StoreReader: everything that reads messages and queues of an open store, and never changes one.

A pull looks up queue entries, chooses among them by filter and limits, and copies the records they point at.  Consumers
see what `store/marks.py` calls readable.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from bolide.model.filter import EVERYTHING, Filter
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import CHECK_SUMS
from bolide.store.append import QueueTail
from bolide.store.collect import collect
from bolide.store.log import CommitLog
from bolide.store.marks import Marks
from bolide.store.queue_entry import ENTRY_BYTES, PLACE
from bolide.store.queue_index import ConsumeQueue, QueueIndex
from bolide.store.segment import Segment

log = logging.getLogger(__name__)

_NOWHERE = memoryview(b"")
_SHARED_PREFIX = "%LMQ%"  # the original's light queues, whose entries point at messages of other topics

WINDOW_ENTRIES = 800
"""Entries read from a queue at once, and looked at by one pull when a filter drops most of them.  Two dozen pulls of a
consumer that catches up need one read."""


LOOKS_MAX = 1024
"""Entries that a search by time looks at, on the loop, those without a sound record among them; files that are missing
count as one."""

PLACE_OFFSETS, PLACES_TOLD = 1024, 4096
"""Damage is told once for so many offsets of a queue, and so many such places are remembered."""


class PullStatus(Enum):
    """How a read ended (RocketMQ: GetMessageStatus)."""

    FOUND = "FOUND"
    NO_MATCHED_MESSAGE = "NO_MATCHED_MESSAGE"
    MESSAGE_WAS_REMOVING = "MESSAGE_WAS_REMOVING"
    NO_MESSAGE_IN_QUEUE = "NO_MESSAGE_IN_QUEUE"
    OFFSET_OVERFLOW_ONE = "OFFSET_OVERFLOW_ONE"
    OFFSET_OVERFLOW_BADLY = "OFFSET_OVERFLOW_BADLY"
    OFFSET_TOO_SMALL = "OFFSET_TOO_SMALL"
    OFFSET_FOUND_NULL = "OFFSET_FOUND_NULL"
    OFFSET_RESET = "OFFSET_RESET"


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


class QueueCursor:
    """Where somebody reads a queue, with the entries that come next.

    Entries never change while a queue lives, so those read ahead stay true; whoever keeps a cursor drops it when its
    topic is deleted.
    """

    __slots__ = ("_first", "entries", "queue", "queue_id", "segment", "topic")

    def __init__(self, queue: ConsumeQueue | None) -> None:
        self.queue = queue
        topic, self.queue_id = ("", 0) if queue is None else queue.tail.key
        self.topic = b"" if topic.startswith(_SHARED_PREFIX) else topic.encode()
        self.segment: Segment | None = None
        self.entries = b""
        self._first = 0

    def release(self) -> None:
        """Keep nothing in memory until the next pull."""
        self.segment = None
        self.entries = b""

    def seek(self, queue: ConsumeQueue, offset: int, count: int) -> int:
        """Where the entry of `offset` is among `entries`, with `count` from there on; -1 if it is lost."""
        at = offset - self._first
        if at < 0 or len(self.entries) < (at + count) * ENTRY_BYTES:
            self.entries = queue.read(offset, max(count, WINDOW_ENTRIES))
            self._first = offset
            return 0 if self.entries else -1
        return at


class StoreReader:
    def __init__(
        self,
        log: CommitLog,
        queues: QueueIndex,
        marks: Marks,
        *,
        check: int = CHECK_SUMS,
    ) -> None:
        self._log = log
        self._queues = queues
        self._marks = marks
        self.check = check
        self.damaged = 0  # entries that were passed over because their records are not there, or damaged
        self._told: dict[tuple[str, int, int], None] = {}  # where that was, the place told first in front

    @property
    def readable_end(self) -> LogOffset:
        """The part of the log that consumers may see."""
        return self._marks.readable

    def cursor(self, topic: str, queue_id: int) -> "QueueCursor":
        """A place to read a queue from, for one pull or many."""
        return QueueCursor(self._queues.find(topic, queue_id))

    def pull(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        limits: PullLimits,
        filter: Filter = EVERYTHING,
    ) -> PullResult:
        """Messages of a queue from an offset, as stored bytes, all of one segment."""
        return self.pull_at(self.cursor(topic, queue_id), offset, limits, filter)

    def pull_at(self, cursor: "QueueCursor", offset: int, limits: PullLimits, filter: Filter) -> PullResult:
        queue = cursor.queue
        end = 0 if queue is None else queue.tail.next_offset
        if queue is None or end == 0:
            return PullResult(PullStatus.NO_MESSAGE_IN_QUEUE, 0, 0, 0)
        start = queue.start
        if offset < start:
            return PullResult(PullStatus.OFFSET_TOO_SMALL, start, start, end)
        if offset == end:
            return PullResult(PullStatus.OFFSET_OVERFLOW_ONE, offset, start, end)
        if offset > end:
            return PullResult(PullStatus.OFFSET_OVERFLOW_BADLY, end, start, end)
        first = cursor.seek(queue, offset, min(limits.hot_count, end - offset))
        if first < 0:
            return PullResult(PullStatus.OFFSET_FOUND_NULL, queue.following(offset), start, end)
        log_offset, size = PLACE.unpack_from(cursor.entries, first * ENTRY_BYTES)
        log_start, log_end = self._log.start, self._log.end
        is_recent = log_end - log_offset <= limits.hot_bytes_behind
        segment = cursor.segment  # most often that of the last pull, unless it has been deleted since
        if segment is None or segment.base < log_start or not 0 <= log_offset - segment.base < segment.size:
            segment = cursor.segment = self._log.segment_of(log_offset)
        scanned, count, damaged, data = collect(
            cursor.entries,
            first,
            filter,
            limits.hot_count if is_recent else limits.cold_count,
            limits.hot_bytes if is_recent else limits.cold_bytes,
            self.readable_end,
            log_start,
            _NOWHERE if segment is None else segment.view,
            0 if segment is None else segment.base,
            cursor.topic,
            cursor.queue_id,
            offset,
            self.check,
        )
        if scanned == 0:
            if log_offset + size <= log_end and segment is not None:  # not durable yet
                return PullResult(PullStatus.OFFSET_OVERFLOW_ONE, offset, start, offset)
            scanned = damaged = 1  # the entry points nowhere
        if damaged:
            self.pass_over(queue, offset, damaged)
        if count:
            return PullResult(PullStatus.FOUND, offset + scanned, start, end, data, count)
        is_gone = damaged or log_offset < log_start
        status = PullStatus.MESSAGE_WAS_REMOVING if is_gone else PullStatus.NO_MATCHED_MESSAGE
        return PullResult(status, offset + scanned, start, end)

    def pass_over(self, queue: ConsumeQueue, offset: int, damaged: int = 1) -> None:
        """Count what a reader leaves out, and say it once for each place: everybody who reads there meets it again."""
        self.damaged += damaged
        topic, queue_id = queue.tail.key
        place = (topic, queue_id, offset // PLACE_OFFSETS)
        if place in self._told:
            return
        self._told[place] = None
        if len(self._told) > PLACES_TOLD:
            del self._told[next(iter(self._told))]
        log.error(
            "queue %d of %s: %d messages from %d on are damaged or not where they should be: passed over",
            queue_id,
            topic,
            damaged,
            offset,
        )

    def is_readable(self, tail: QueueTail, readable_end: int) -> bool:
        """Whether consumers may see all messages of a queue."""
        queue = tail.owner
        assert isinstance(queue, ConsumeQueue)
        last = queue.entry(tail.next_offset - 1)
        return last is None or last[0] + last[1] <= readable_end

    def read_at(self, log_offset: int) -> bytes | None:
        """The sound record that begins at this place of the log, unless its topic was deleted since."""
        head = self.head_at(log_offset)
        return None if head is None else self._read(log_offset, head)

    def message_of(self, queue: ConsumeQueue, offset: int, log_offset: int) -> bytes | None:
        """The sound record there, if it is this message of the queue.

        An entry may lead to another one: a copy of its neighbour's stands in the place of one that is lost.
        """
        head = self.head_at(log_offset)
        return self._read(log_offset, head) if head is not None and queue.is_own(offset, head) else None

    def _read(self, log_offset: int, head: RecordHead) -> bytes | None:
        if self._queues.deletions.covers(head.topic, log_offset):
            return None
        record = self._log.read(log_offset, head.size)
        return None if record is None or self.inspect(record, log_offset) is None else record

    def inspect(self, record: bytes, log_offset: int) -> RecordHead | None:
        """What the bytes of one record say; None unless they are sound, and were written to this place of the log."""
        head = inspect_record(record, 0, len(record), self.check)
        return head if isinstance(head, RecordHead) and head.log_offset == log_offset else None

    def named_at(self, log_offset: int) -> bytes | None:
        """The message that somebody names by its place.

        A body may look like a record, so the message's own queue must lead to the place.
        """
        head = self.head_at(log_offset) if log_offset >= 0 else None
        if head is None:
            return None
        queue = self._queues.find(head.topic.decode("utf-8", "replace"), head.queue_id)
        if queue is None or not queue.start <= head.queue_offset < queue.end:
            return None
        entry = queue.entry(head.queue_offset)
        return self._read(log_offset, head) if entry is not None and entry[0] == log_offset else None

    def entry_at(
        self, topic: str, queue_id: int, offset: int, log_offset: int, size_max: int
    ) -> bytes | None:
        """The message of a queue at this offset, if that is where it is in the log and it has no more bytes."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or not queue.start <= offset < queue.end:
            return None
        entry = queue.entry(offset)
        if (
            entry is None
            or entry[0] != log_offset
            or entry[1] > size_max
            or self._queues.deletions.covers(topic.encode(), log_offset)
        ):
            return None
        record = self._log.read(log_offset, entry[1])
        head = None if record is None else self.inspect(record, log_offset)
        return record if head is not None and queue.is_own(offset, head) else None

    def queue_range(self, topic: str, queue_id: int) -> tuple[QueueOffset, QueueOffset]:
        """First and next offset of a queue; (0, 0) for one that was never written."""
        queue = self._queues.find(topic, queue_id)
        return (QueueOffset(0), QueueOffset(0)) if queue is None else (queue.start, queue.end)

    def range_from(self, topic: str, queue_id: int, log_offset: int) -> tuple[QueueOffset, QueueOffset]:
        """The offsets of a queue whose messages lie at this place of the log or behind it."""
        queue = self._queues.find(topic, queue_id)
        if queue is None:
            return QueueOffset(0), QueueOffset(0)
        low, high = queue.start, queue.end
        while low < high:
            middle = QueueOffset((low + high) // 2)
            entry = queue.entry(middle)
            if entry is None or entry[0] < log_offset:
                low = QueueOffset(middle + 1)
            else:
                high = middle
        return low, queue.end

    def store_time(self, topic: str, queue_id: int, offset: int) -> int | None:
        """When a queue's message was stored."""
        queue = self._queues.find(topic, queue_id)
        entry = queue.entry(offset) if queue is not None and offset >= queue.start else None
        head = self.head_at(entry[0]) if entry is not None else None
        return None if head is None else head.store_timestamp_ms

    def first_is_recent(self, topic: str, queue_id: int, recent_bytes: int) -> bool:
        """Whether a queue still has its very first message, and so near to the end of the log."""
        queue = self._queues.find(topic, queue_id)
        if queue is None or queue.start > 0:
            return False
        entry = queue.entry(0)
        return entry is not None and self._log.end - entry[0] <= recent_bytes

    def bytes_behind(self, topic: str, queue_id: int, offset: int) -> int:
        """How much of the log came after this message of a queue, or after the first that is there; 0 at its end."""
        queue = self._queues.find(topic, queue_id)
        entry = None if queue is None or offset >= queue.end else queue.entry(max(offset, queue.start))
        return 0 if entry is None else self._log.end - entry[0]

    def earliest_store_time(self, topic: str, queue_id: int) -> int:
        start, end = self.queue_range(topic, queue_id)
        found = self.store_time(topic, queue_id, start) if end > start else None
        return -1 if found is None else found

    def search_offset(
        self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False
    ) -> QueueOffset:
        """The first message stored at or after a time; with `upper`, the last one at or before it.

        In place of a message that is damaged or not there the next one is judged.  Where none is in reach, its
        time counts as a late one: who reads from there on gets rather too much than too little, and who reads up to
        there may get too little.
        """
        low, high = self.queue_range(topic, queue_id)
        first, last = low, high
        looks = iter(range(LOOKS_MAX))
        while low < high:
            middle = QueueOffset((low + high) // 2)
            found = self._timed_from(topic, queue_id, middle, high, looks)
            if found is not None and (found[1] <= timestamp_ms if upper else found[1] < timestamp_ms):
                low = QueueOffset(found[0] + 1)
            else:
                high = middle
        return QueueOffset(max(first, low - 1)) if upper and last > first else low

    def _timed_from(
        self, topic: str, queue_id: int, offset: int, end: int, looks: Iterator[int]
    ) -> tuple[int, int] | None:
        """The next message from an offset to before another whose record is there, and when it was stored."""
        queue = self._queues.find(topic, queue_id)
        for _ in looks:
            if queue is None or offset >= end:
                break
            entry = queue.entry(offset)
            head = None if entry is None else self.head_at(entry[0])
            if head is not None:
                return offset, head.store_timestamp_ms
            offset = max(offset + 1, queue.following(offset) if entry is None else 0)
        return None

    def head_at(self, log_offset: int) -> RecordHead | None:
        """The fixed part of the record that begins at this place of the log."""
        return self._log.head_at(log_offset) if self._log.start <= log_offset < self._log.end else None
