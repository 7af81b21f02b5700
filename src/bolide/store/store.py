"""MessageStore: the log, its queues and what is durable, as one thing.

Appending writes the record and its queue entry in the same step, so whoever waits for a message can have it at
once.  Queue entries are written to their files behind (`write_behind`), the log is made durable by syncs that the
broker runs on its sync thread (`durability`).
"""

import logging
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from bolide.model.clock import Clock
from bolide.model.errors import ServiceUnavailable, StoreError
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.send_rows import COLUMNS, RECORDS_AT, RECORDS_COUNT
from bolide.record.codec import encode_record, tags_code_of
from bolide.store.append import (
    NEEDS_GENERAL_PATH,
    SEGMENT_FULL,
    Appender,
    QueueTail,
    TopicLane,
)
from bolide.store.disk import Disk, DiskLock
from bolide.store.flush import Durability
from bolide.store.folders import make_folder
from bolide.store.index_file import IndexSizes
from bolide.store.index_keys import KeyIndex, LogState
from bolide.store.log import CommitLog
from bolide.store.queue_index import ConsumeQueue, QueueIndex
from bolide.store.reading import StoreReader
from bolide.store.recover import Recovery, recover
from bolide.store.small_file import write_whole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoreOptions:
    root: str
    store_host: bytes
    properties_suffix: bytes
    body_bytes_max: int
    segment_bytes: int = 1024**3
    queue_file_bytes: int = 6_000_000
    sync_flush: bool = False
    recent_bytes: int = 8 * 1024**3  # so much of the log's end counts as being in memory
    index: IndexSizes | None = None  # None: messages are not found by their keys


@dataclass(frozen=True, slots=True)
class NewMessage:
    """What the general path appends: everything decided but its place."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    reconsume_times: int = 0
    prepared_offset: int = 0


@dataclass(frozen=True, slots=True)
class Appended:
    log_offset: LogOffset
    queue_offset: QueueOffset
    end: LogOffset


class MessageStore:
    """Single writer; every method is called by the thread that owns the store."""

    def __init__(self, disk: Disk, options: StoreOptions, clock: Clock) -> None:
        self._disk = disk
        self._options = options
        self._clock = clock
        self._lock: DiskLock | None = None
        self._last_store_ms = 0
        self._refusal: str | None = None
        self._appender = Appender(options.store_host, options.properties_suffix, options.body_bytes_max)
        self.log = CommitLog(disk, os.path.join(options.root, "commitlog"), options.segment_bytes)
        self.queues = QueueIndex(disk, os.path.join(options.root, "consumequeue"), options.queue_file_bytes)
        self.touched: list[QueueTail] = []
        self.messages_appended = 0
        self.index: KeyIndex | None = None
        self.disk_refusal: str | None = None
        """Why the disk is too full for more messages, or None; whoever watches the disk sets it."""

    # ---- opening and closing -------------------------------------------------------------------------------

    def open(self) -> Recovery:
        """Take the directory, find out what is true, and be ready to append."""
        root = self._options.root
        make_folder(self._disk, os.path.join(root, "config"))
        try:
            self._lock = self._disk.lock(os.path.join(root, "lock"))
        except BlockingIOError:
            raise StoreError(f"another broker uses the store {root}") from None
        try:
            return self._open_files()
        except BaseException:
            self._lock.release()
            raise

    def _open_files(self) -> Recovery:
        clean = not self._disk.exists(self._abort_path)
        self.log.open()
        self.queues.open()
        recovery = recover(self.log, self.queues, clean=clean)
        self.durability = Durability(self.log)
        self.reader = StoreReader(
            self.log,
            self.queues,
            self.durability,
            durable_only=self._options.sync_flush,
            recent_bytes=self._options.recent_bytes,
        )
        if not clean:  # what was walked may not have reached the disk before
            self.durability.durable = self.log.start
        self._write_recovered()
        self._open_index(clean)
        self._last_store_ms = self._newest_store_ms()
        write_whole(self._disk, self._abort_path, str(os.getpid()).encode())
        return recovery

    def _write_recovered(self) -> None:
        """Entries that recovery made go to their files now: the next walk may begin behind their records."""
        for queue in self.queues:
            try:
                queue.write_behind()
            except (
                OSError
            ) as error:  # a full disk: reading works, and writing is tried again with the next message
                log.warning("recovered queue entries stay in memory: %s", error.strerror or error)
                queue.tail.touched = True
                self.touched.append(queue.tail)

    def _open_index(self, clean: bool) -> None:
        if self._options.index is not None:
            folder = os.path.join(self._options.root, "index")
            self.index = KeyIndex(self._disk, folder, self._options.index, self._clock)
            state = LogState(self.log.start, self.log.end, clean, 0, self.reader.head_at)
            self.index.open(state)

    def _newest_store_ms(self) -> int:
        """When the last message was stored: times along the log never go back, not even with the clock."""
        entries = (queue.entry(queue.end - 1) for queue in self.queues if queue.end > queue.start)
        newest = max((entry[0] for entry in entries if entry is not None), default=None)
        head = None if newest is None else self.reader.head_at(newest)
        return 0 if head is None else head.store_timestamp_ms

    def close(self) -> None:
        """Everything to disk; the files then say that the stop was clean."""
        point = self.durability.next_point()
        if point is not None:
            point.run()
            self.durability.reached(point)
        if self.index is not None:
            self.index.close(self.log)
        self.queues.close()
        self.log.close()
        self._disk.delete(self._abort_path)
        if self._lock is not None:
            self._lock.release()

    @property
    def _abort_path(self) -> str:
        return os.path.join(self._options.root, "abort")

    # ---- appending -----------------------------------------------------------------------------------------

    def lane(self, topic: str, queues: int, write_queues: int) -> TopicLane:
        """A fast path for plain messages of a topic."""
        tails = [self.queues.get(topic, queue_id).tail for queue_id in range(queues)]
        return TopicLane(topic.encode(), tails, max(1, write_queues))

    def append_run(
        self,
        rows: "array[int]",
        log_offsets: "array[int]",
        buffer: bytearray,
        properties: bytearray,
        lanes: Sequence[TopicLane | None],
        first: int,
        count: int,
        born_host: bytes,
    ) -> tuple[int, bool]:
        """Append rows from `first`; returns the first row not appended and whether it needs the general path.

        Log offsets are valid for the rows of this call only.
        """
        self._check_open()
        segment = self.log.current
        row, position, why = self._appender.append_run(
            rows,
            log_offsets,
            buffer,
            properties,
            lanes,
            first,
            count,
            segment.view,
            self.log.position,
            segment.base,
            born_host,
            self._store_time_ms(),
            self.touched,
        )
        self.log.advance(position)
        if row > first:
            last = (row - 1) * COLUMNS
            self.messages_appended += rows[last + RECORDS_AT] + rows[last + RECORDS_COUNT]
        if why == SEGMENT_FULL and row == first:
            if position == 0:
                return row, True  # larger than a segment: the general path says so
            self.log.roll()
            return self.append_run(rows, log_offsets, buffer, properties, lanes, first, count, born_host)
        return row, why == NEEDS_GENERAL_PATH

    def append(self, messages: Sequence[NewMessage]) -> list[Appended]:
        """Append messages one behind the other, all or none, in one segment."""
        self._check_open()
        now_ms = self._store_time_ms()
        tail = self.queues.get(messages[0].topic, messages[0].queue_id).tail
        sizes = [len(self._encode(message, 0, 0, now_ms)) for message in messages]
        self.log.reserve(sum(sizes))
        segment = self.log.current
        appended: list[Appended] = []
        for message in messages:
            at = self.log.position
            log_offset = segment.base + at
            record = self._encode(message, tail.next_offset, log_offset, now_ms)
            segment.view[at : at + len(record)] = record
            self.log.advance(at + len(record))
            queue_offset = QueueOffset(tail.next_offset)
            tail.append(log_offset, len(record), tags_code_of(message.properties))
            appended.append(Appended(LogOffset(log_offset), queue_offset, self.log.end))
        if not tail.touched:
            tail.touched = True
            self.touched.append(tail)
        self.messages_appended += len(messages)
        return appended

    def take_touched(self) -> list[QueueTail]:
        """Queues that got entries since the last call."""
        touched, self.touched = self.touched, []
        for tail in touched:
            tail.touched = False
        return touched

    def write_behind(self, tails: Sequence[QueueTail]) -> None:
        """Write the entries of these queues to their files.

        While that fails (a full disk) nothing more is appended, so that memory stays bounded; the first write
        that works ends it.
        """
        for tail in tails:
            queue = tail.owner
            assert isinstance(queue, ConsumeQueue)
            try:
                queue.write_behind()
            except OSError as error:
                self._refusal = f"cannot write a consume queue: {error.strerror or error}"
                raise ServiceUnavailable(self._refusal) from error
        self._refusal = None

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise ServiceUnavailable(self._refusal)
        if self.disk_refusal is not None:
            raise ServiceUnavailable(self.disk_refusal)
        if self.durability.failure is not None:
            raise ServiceUnavailable(f"syncing the log failed: {self.durability.failure}")

    def _encode(self, message: NewMessage, queue_offset: int, log_offset: int, now_ms: int) -> bytes:
        return encode_record(
            topic=message.topic.encode(),
            body=message.body,
            properties=message.properties,
            queue_id=message.queue_id,
            flag=message.flag,
            queue_offset=queue_offset,
            log_offset=log_offset,
            sys_flag=message.sys_flag,
            born_timestamp_ms=message.born_timestamp_ms,
            born_host=message.born_host,
            store_timestamp_ms=now_ms,
            store_host=self._options.store_host,
            reconsume_times=message.reconsume_times,
            prepared_offset=message.prepared_offset,
        )

    @property
    def newest_stored_ms(self) -> int | None:
        """When the newest message was stored, as far as the log goes."""
        return self._last_store_ms or None

    def _store_time_ms(self) -> int:
        """Never goes back along the log, whatever the clock does."""
        self._last_store_ms = max(self._last_store_ms, self._clock.now_ms())
        return self._last_store_ms

    # ---- the rest ------------------------------------------------------------------------------------------

    def delete_topic(self, topic: str) -> None:
        """Forget a topic's queues; its records stay in the log until they expire."""
        self.touched = [tail for tail in self.touched if tail.key[0] != topic]
        self.queues.delete_topic(topic)

    def runtime(self) -> dict[str, str]:
        """State as text, under the names that admin tools know."""
        return {
            "commitLogMinOffset": str(self.log.start),
            "commitLogMaxOffset": str(self.log.end),
            "commitLogDiskRatio": f"{self._disk.used_ratio(self._options.root):.4f}",
            "consumeQueueDiskRatio": f"{self._disk.used_ratio(self._options.root):.4f}",
            "remainHowManyDataToFlush": f"{self.log.end - self.durability.durable} B",
            "dispatchBehindBytes": "0",
            "putMessageTimesTotal": str(self.messages_appended),
        }
