"""MessageStore: the log, its queues and what is durable, as one thing.

Appending writes the record and its queue entry in the same step, so whoever waits for a message can have it at
once.  Queue entries are written to their files behind (`write_behind`), the log is made durable by syncs that the
broker runs on its sync thread (`durability`).
"""

import logging
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from bolide.model import end_rows
from bolide.model.clock import Clock
from bolide.model.delay_levels import DEFAULT_LEVELS, DelayLevels
from bolide.model.errors import StoreError, StoreUnavailable
from bolide.model.names import HALF_TOPIC, OP_HALF_TOPIC
from bolide.model.offsets import LogOffset
from bolide.model.send_rows import COLUMNS, RECORDS_AT, RECORDS_COUNT, TOPIC
from bolide.model.steps import Steps, at_once
from bolide.record.layout import CHECK_SUMS
from bolide.store.abort_file import AbortFile
from bolide.store.append import (
    DONE,
    NEEDS_GENERAL_PATH,
    NEEDS_QUEUE,
    Appender,
    FindDetour,
    QueueTail,
    TopicLane,
)
from bolide.store.checkpoint import Checkpoints, NextCheckpoint
from bolide.store.disk import NOT_NOW, Disk, DiskLock
from bolide.store.ends import FindTails, encode_ends
from bolide.store.failed_sync import FailedSync
from bolide.store.figures import StoreFigures
from bolide.store.flush import Durability
from bolide.store.folders import make_folder, make_root
from bolide.store.index_file import IndexSizes
from bolide.store.index_keys import KeyIndex, LogState
from bolide.store.log import CommitLog
from bolide.store.marks import Marks, Promise
from bolide.store.new_message import Appended, NewMessage
from bolide.store.progress import LoggedProgress, Progress
from bolide.store.queue_index import ConsumeQueue, QueueIndex
from bolide.store.reading import StoreReader
from bolide.store.recover import Recovery, recover

log = logging.getLogger(__name__)

STEP_QUEUES = 16
"""Queues whose entries are written in one step: one that has no file yet takes up to a millisecond of the disk."""

SCRATCH_BYTES = 6 * 1024 * 1024
"""Where records are made before they are written: more than the largest request.  Memory only where it was used."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    root: str
    store_host: bytes
    properties_suffix: bytes
    body_bytes_max: int
    segment_bytes: int = 1024**3
    queue_file_bytes: int = 6_000_000
    promise: Promise = Promise.APPENDED
    sealed: bool = False  # records get a checksum of the whole
    check: int = CHECK_SUMS  # what of a record is checked when it is read, see record/layout.py
    index: IndexSizes | None = None  # None: messages are not found by their keys
    delay_levels: DelayLevels = DEFAULT_LEVELS  # when delayed messages are due
    pid: int = field(default_factory=os.getpid)  # who was running, for those who find the abort file


class MessageStore:
    """Single writer; every method is called by the thread that owns the store."""

    def __init__(self, disk: Disk, options: StoreOptions, clock: Clock) -> None:
        self._disk = disk
        self._options = options
        self._clock = clock
        self._lock: DiskLock | None = None
        self._last_store_ms = 0
        self._refusal: str | None = None
        self._appender = Appender(
            options.store_host,
            options.properties_suffix,
            options.body_bytes_max,
            options.sealed,
            options.delay_levels,
        )
        self._scratch = bytearray(SCRATCH_BYTES)
        self._scratch_view = memoryview(self._scratch)
        folder = os.path.join(options.root, "commitlog")
        self.log = CommitLog(disk, folder, options.segment_bytes, ahead=options.promise is Promise.APPENDED)
        self.queues = QueueIndex(disk, options.root, options.queue_file_bytes)
        self.checkpoints = Checkpoints(disk, options.root)
        self._failed_sync = FailedSync(disk, options.root)
        self._abort = AbortFile(disk, options.root, options.pid)
        self.touched: list[QueueTail] = []  # with new entries that nobody has asked for yet
        self._unwritten: dict[QueueTail, None] = {}  # asked for, with entries that are not in their files
        self.messages_appended = 0
        self.index: KeyIndex | None = None
        self.disk_refusal: str | None = None
        """Why the disk is too full for more messages, or None; whoever watches the disk sets it."""

    # ---- opening and closing -------------------------------------------------------------------------------

    def open(self, progress: Progress | None = None) -> Recovery:
        """Take the directory, find out what is true, and be ready to append."""
        root = self._options.root
        make_root(self._disk, root)
        make_folder(self._disk, config := os.path.join(root, "config"))
        # Tables that a killed process has written are read as if they were durable.
        self._disk.sync_dir(config)
        try:
            self._lock = self._disk.lock(os.path.join(root, "lock"))
        except BlockingIOError:
            raise StoreError(
                f"another broker uses the store {root}: stop it, or choose another directory"
            ) from None
        try:
            return self._open_files(progress or LoggedProgress(self._clock))
        except PermissionError as error:
            self._lock.release()
            raise StoreError(f"the store {root} is closed to this user: {error}") from error
        except OSError as error:
            self._failed_sync.note()
            self._lock.release()
            raise StoreError(f"the disk failed while the store {root} was opened: {error}") from error
        except BaseException:
            self._lock.release()
            raise

    def _open_files(self, progress: Progress) -> Recovery:
        clean = not self._abort.is_there
        if not self.log.open():
            self.queues.destroy()
        self._abort.write()  # before anything is changed: half a recovery is not a clean stop
        checkpoint = self.checkpoints.load()
        self.queues.deletions.load(is_foreign=self.checkpoints.is_foreign)
        found = recover(
            self.log,
            self.queues,
            checkpoint,
            clean=clean,
            sync_has_failed=self._failed_sync.is_noted,
            levels=self._options.delay_levels,
            progress=progress,
            forget=self.checkpoints.forget,
        )
        self.queues.deletions.fit(int(self.log.start), found.end)
        if self._failed_sync.is_noted:
            self.log.write_again(found.start)
            self._failed_sync.clear()
        # What was walked may not have reached the disk before: the next sync is for all of it.
        self.durability = Durability(
            self.log, LogOffset(found.start), found.start_record, self._failed_sync.note
        )
        self.checkpoints.end = found.start
        self.marks = Marks(self.log, self.durability, self._options.promise)
        if not self.marks.at_once:  # or nobody could read it before somebody sends
            self.sync_log()
        self.reader = StoreReader(self.log, self.queues, self.marks, check=self._options.check)
        unwritten = [queue.tail for queue in self.queues if queue.tail.start < queue.end]
        for tail in unwritten:  # the disk was full: tried again with the next message
            tail.touched = True
        self.touched += unwritten
        newest = self.log.head_at(self.log.last_record) if self.log.last_record >= 0 else None
        # Times along the log never go back, not even with the clock.
        self._last_store_ms = 0 if newest is None else newest.store_timestamp_ms
        self._open_index(clean)
        if self.checkpoints.is_odd:
            self._make_ours()
        return found

    def _make_ours(self) -> None:
        """Write a checkpoint now: from here on it tells whether the original has run again, as deletions must know."""
        try:
            self.sync_log()
            self._write_checkpoint()
        except StoreUnavailable as error:
            log.warning("the checkpoint gets our mark later: %s", error)
        except OSError as error:
            if error.errno not in NOT_NOW:
                raise
            log.warning("the checkpoint gets our mark later: %s", error.strerror or error)

    def _open_index(self, clean: bool) -> None:
        if self._options.index is not None:
            folder = os.path.join(self._options.root, "index")
            self.index = KeyIndex(self._disk, folder, self._options.index, self._clock)
            self.index.log_durable = lambda: self.durability.durable
            index_ms, index_end = self.checkpoints.index_ms, self.checkpoints.index_end
            state = LogState(self.log.start, self.log.end, clean, index_ms, self.log.head_at, index_end)
            self.index.open(state)

    def next_checkpoint(self) -> NextCheckpoint | None:
        """`checkpointing`, in one go."""
        return at_once(self.checkpointing())

    def checkpointing(self) -> Steps[NextCheckpoint | None]:
        """What to sync and to write so that the next recovery begins here; None when nothing has changed.

        Here is where the log is durable at the first step.  Whoever runs it says `checkpoint_reached` when both have
        worked.
        """
        end, last_record = self.durability.durable, self.durability.last_record
        unwritten = [*self._unwritten, *self.touched]
        for first in range(0, len(unwritten), STEP_QUEUES):
            self.write_behind(unwritten[first : first + STEP_QUEUES])
            yield
        if self.index is not None:
            self.checkpoints.index_ms, self.checkpoints.index_end = self.index.durable
        return self.checkpoints.next(self.log, self.queues, end, last_record)

    def checkpoint_reached(self, point: NextCheckpoint) -> None:
        self.checkpoints.reached(point, self.queues)

    def close(self) -> None:
        """Everything to disk; the files then say that the stop was clean."""
        try:
            self._close_files()
        except OSError as error:
            self.durability.failed(error)
            raise
        finally:
            if self._lock is not None:
                self._lock.release()

    def abandon(self) -> None:
        """Let go of the directory and leave it as a kill would: the next start recovers it."""
        self.queues.close()
        self.log.close()
        if self._lock is not None:
            self._lock.release()

    def sync_now(self) -> None:
        """Make all of the log durable, at the end of a broker's life; does nothing once that has failed."""
        if self.durability.failure is None:
            try:
                self.sync_log()
            except OSError as error:
                self.durability.failed(error)

    def sync_log(self) -> None:
        """Here and now; while the broker serves, its sync thread does this."""
        point = self.durability.next_point()
        if point is not None:
            point.run()
            self.durability.reached(point)

    def _write_checkpoint(self) -> None:
        """Likewise."""
        checkpoint = self.next_checkpoint()
        if checkpoint is not None:
            checkpoint.sync()
            checkpoint.write()
            self.checkpoint_reached(checkpoint)

    def _close_files(self) -> None:
        self.sync_log()
        if self.index is not None:
            self.index.close(self.log)
        self.queues.trash.settle()
        self._write_checkpoint()
        self.queues.trim()
        self.queues.close()
        self.log.discard_next()
        self.log.close()
        self._abort.delete()

    # ---- appending -----------------------------------------------------------------------------------------

    def lane(self, topic: str, queues: int, write_queues: int) -> TopicLane:
        """A fast path for plain messages of a topic; it knows tags alone, so delayed messages never take it."""
        return TopicLane(topic.encode(), self.queues.tails(topic, queues), max(1, write_queues))

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
        find: FindDetour | None = None,
        texts_used: int = 0,
    ) -> tuple[int, bool]:
        """Append rows from `first`; returns the first row not appended and whether it needs the general path.

        Log offsets, and the texts behind those that are used, are valid for the rows of this call only.
        """
        self._check_open()
        segment, position = self.log.current, self.log.position
        row, size, why = self._appender.append_run(
            rows,
            log_offsets,
            buffer,
            properties,
            lanes,
            first,
            count,
            self._scratch,
            segment.size - position,
            segment.base + position,
            born_host,
            self._store_time_ms(),
            self.touched,
            find,
            texts_used,
        )
        if row > first:
            last = (row - 1) * COLUMNS
            records = rows[last + RECORDS_AT] + rows[last + RECORDS_COUNT]
            self._write(self._scratch_view[:size], records, log_offsets[records - 1])
        if row > first or why in (DONE, NEEDS_GENERAL_PATH):
            return row, why == NEEDS_GENERAL_PATH
        if why == NEEDS_QUEUE:
            lane = lanes[rows[row * COLUMNS + TOPIC]]
            assert lane is not None, "a row without a lane needs the general path"
            lane.open_missing(self.tail(lane.topic.decode(), lane.missing))
        elif self.log.position == 0:
            return row, True  # larger than a segment: the general path says so
        else:
            self._reserve(self.log.room)  # a blank record needs some of it, so this begins the next segment
        return self.append_run(
            rows, log_offsets, buffer, properties, lanes, first, count, born_host, find, texts_used
        )

    def append_ends(
        self,
        ends: "array[int]",
        texts: bytearray,
        first: int,
        last: int,
        halves: range,
        size_max: int,
        find: FindTails,
        marked_as: bytes,
    ) -> int:
        """Append what plain ends of transactions store, from row `first` on; the first row that is not plain: it ends
        none of these half messages, or a larger one, or needs a new segment or queue, or a look into another segment.
        """
        self._check_open()
        queue, marks = self.queues.find(HALF_TOPIC, 0), self.queues.find(OP_HALF_TOPIC, 0)
        half_segment = self.log.segment_of(ends[first * end_rows.COLUMNS + end_rows.HALF_AT])
        if queue is None or marks is None or half_segment is None or halves.start < queue.start:
            return first
        segment, position = self.log.current, self.log.position
        row, size, records, last_record = encode_ends(
            ends,
            texts,
            first,
            last,
            queue.read(halves.start, len(halves)),
            halves.start,
            half_segment.view,
            half_segment.base,
            self.queues.deletions.place_of(HALF_TOPIC),
            self.log.end,
            self._options.check,
            size_max,
            find,
            marks.tail,
            marked_as,
            self._clock.now_ms(),
            self._options.store_host,
            self._options.sealed,
            self._scratch,
            segment.size - position,
            segment.base + position,
            self._store_time_ms(),
            self.touched,
        )
        if records:
            self._write(self._scratch_view[:size], records, last_record)
        return row

    def append(self, messages: Sequence[NewMessage]) -> list[Appended]:
        """Append messages one behind the other, each to its own queue, all or none, in one segment."""
        self._check_open()
        now_ms = self._store_time_ms()
        self._reserve(self._appender.records_size(messages))  # what is refused here makes no queue
        tails = [self.tail(message.topic, message.queue_id) for message in messages]
        data, appended = self._appender.encode(messages, tails, int(self.log.end), now_ms, self.touched)
        self._write(data, len(appended), int(appended[-1].log_offset) if appended else self.log.last_record)
        return appended

    def _write(self, records: bytes | memoryview, count: int, last_record: int) -> None:
        try:
            self.log.write(records)
        except OSError as error:
            raise self._failed(error) from error
        self.log.last_record = last_record
        self.messages_appended += count

    def tail(self, topic: str, queue_id: int) -> QueueTail:
        """The tail of a queue that is about to be written to."""
        try:
            return self.queues.get(topic, queue_id).tail
        except OSError as error:  # the topic was deleted a moment ago, and that cannot be made to last
            if error.errno in NOT_NOW:
                raise StoreUnavailable(f"the topic {topic} is still being deleted: {error}") from error
            raise self._failed(error) from error

    def _reserve(self, size: int) -> None:
        try:
            self.log.reserve(size)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> StoreUnavailable:
        """The log could not be written.  That is final: nobody knows how much of it is there."""
        self.durability.failed(error)
        return StoreUnavailable(f"the commit log failed: {error.strerror or error}")

    def take_touched(self) -> list[QueueTail]:
        """Queues that got entries since the last call."""
        touched, self.touched = self.touched, []
        for tail in touched:
            tail.touched = False
        self._unwritten.update(dict.fromkeys(touched))
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
                self._unwritten.pop(tail, None)
            except OSError as error:
                self._refusal = f"cannot write a consume queue: {error.strerror or error}"
                raise StoreUnavailable(self._refusal) from error
        self._refusal = None

    def _check_open(self) -> None:
        if self._refusal is not None:
            raise StoreUnavailable(self._refusal)
        if self.disk_refusal is not None:
            raise StoreUnavailable(self.disk_refusal)
        if self.durability.failure is not None:
            raise StoreUnavailable(f"the commit log failed: {self.durability.failure}")

    @property
    def newest_stored_ms(self) -> int | None:
        """When the newest message was stored, as far as the log goes."""
        return self._last_store_ms or None

    def _store_time_ms(self) -> int:
        """Never goes back along the log, whatever the clock does."""
        now_ms = self._clock.now_ms()
        if now_ms > self._last_store_ms:
            self._last_store_ms = now_ms
        return self._last_store_ms

    # ---- the rest ------------------------------------------------------------------------------------------

    def delete_topic(self, topic: str, *, others_wait: bool = False, host: str | None = None) -> None:
        """Forget a topic's queues; its records stay in the log until they expire, and nobody sees them any more.

        The files are moved away here and deleted later: somebody runs `queues.trash.settle` and `clear_some` on a
        thread.  Until `settle` has worked power loss may bring the topic back, as it was; from then on nothing does.
        A topic without messages leaves nothing to remember unless others wait; for the rest `host` has a share of room.

        A failed move is final, like a failure of the log: nobody knows whether the queues are there, and they might
        give their numbers anew.  A topic that cannot even begin to be moved stays as it is.
        """
        place = int(self.log.end) if others_wait or self.queues.has_had_messages(topic) else None
        if place is not None:
            self.queues.deletions.make_room(topic, int(self.log.start), host)
        try:
            self.queues.delete_topic(topic, place, host)
        except OSError as error:
            self.durability.failed(error)
            why = error.strerror or error
            raise StoreUnavailable(f"the queues of {topic} cannot be deleted: {why}") from error
        self.touched = [tail for tail in self.touched if tail.key[0] != topic]

    def figures(self) -> StoreFigures:
        """Where the store stands."""
        return StoreFigures(
            log_start=int(self.log.start),
            log_end=int(self.log.end),
            undurable_bytes=self.log.end - self.durability.durable,
            unindexed_bytes=max(0, self.log.end - self.index.position) if self.index else 0,
            messages_appended=self.messages_appended,
            damaged_passed_over=self.reader.damaged,
            rolls=self.log.rolls,
            rolls_in_place=self.log.rolls_in_place,
            disk_used_ratio=self._disk.used_ratio(self._options.root),
        )
