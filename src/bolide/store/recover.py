"""What is true after a stop, clean or not, as a function of the files alone.

The log is the truth.  Recovery begins at a place before which log and queues are known to be durable (`_begin`), goes
on while records are sound, and the log ends there.  What the queues hold behind that place is not asked: any of their
pages may be lost, so every record walked gives its entry again, and what is left behind the last one is erased.  The
log therefore cuts the queues, never the other way round.  Records of topics that were deleted behind them are passed
over (`deletions.py`).

Recovering twice changes nothing.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from bolide.model.delay_levels import DelayLevels
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.numbers import INT64_MAX
from bolide.model.offsets import QueueOffset
from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import BATCH_ITEM_FIXED_BYTES
from bolide.store.append import QueueTail
from bolide.store.checkpoint import Checkpoint, Mark
from bolide.store.entry_rules import entry_code
from bolide.store.file_names import NAME_BYTES_MAX
from bolide.store.log import CommitLog
from bolide.store.progress import Progress
from bolide.store.queue_entry import GAP_SIZE
from bolide.store.queue_index import GAP_ENTRIES_MAX, ConsumeQueue, QueueIndex
from bolide.store.torn import may_be_torn
from bolide.store.walk import BLANK, LIMIT, LogWalk

log = logging.getLogger(__name__)

ENTRIES_IN_MEMORY_MAX = 2_000_000
"""Rebuilt entries of all queues that wait to be written to their files, and what fills their gaps: 40 MB, and those of
one step more.  While the disk is full nothing can be written: then they take what the walk and its gaps bring."""

STEP_BYTES = 1024**2
"""So much of the log is walked between two reports of progress.  Whoever wants to interrupt it waits for the next."""

EVERYWHERE = INT64_MAX

MESSAGE_BYTES_MIN = BATCH_ITEM_FIXED_BYTES
"""Less of the log no message has taken, not even one of a batch that the original stores as one record."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What recovery found."""

    clean: bool
    start: int
    """Where the walk began; everything before is durable."""

    start_record: int
    """The record that ends there, -1 when that is not known."""

    end: int
    records: int
    entries: int
    """Queue entries that were made again, most often as they were before."""

    queues_cut: int
    """Queues that had something behind their last entry."""

    segments_deleted: int
    """Segments behind the end of the log that held something."""

    has_erased: bool
    """Whether something that is no sound record lay behind the end of the log."""


def recover(
    commit_log: CommitLog,
    queues: QueueIndex,
    checkpoint: Checkpoint,
    *,
    clean: bool,
    sync_has_failed: bool = False,
    levels: DelayLevels,
    progress: Progress,
    forget: Callable[[], None],
) -> Recovery:
    """Set the end of the log and bring the queues in step with it.

    `forget` makes the checkpoint durably invalid: queues that are made again from the whole log are not durable, and
    the mark says that they are.  When `sync_has_failed` before, what is erased is erased once more.
    """
    start, start_record = _begin(commit_log, queues, checkpoint, clean=clean)
    if start > commit_log.start and not any(True for _ in queues):
        log.warning("there are no consume queues: they are made again from the whole log")
        forget()
        start, start_record = int(commit_log.start), -1
    limit = EVERYWHERE
    while True:
        try:
            rebuild = _Rebuild(commit_log, queues, start, limit, levels, progress)
            end = rebuild.run()
            break
        except _EntriesMissing as missing:
            log.warning("%s; all queues are made again from the whole log", missing)
            forget()
            start, start_record = int(commit_log.start), -1
        except _Torn as torn:
            log.warning("%s", torn)
            limit = torn.log_offset
        queues.load(start, commit_log.start)
    progress(end - start, end - start)
    commit_log.last_record = rebuild.last_record if rebuild.records else start_record
    segments_deleted, has_erased = commit_log.cut(end, again=sync_has_failed)
    rebuild.write()
    queues_cut = 0
    if not (clean and end == start):
        queues_cut = sum(queue.erase_behind(again=sync_has_failed) for queue in queues)
    found = Recovery(
        clean,
        start,
        start_record,
        end,
        rebuild.records,
        rebuild.entries,
        queues_cut,
        segments_deleted,
        has_erased,
    )
    _report(found)
    return found


def _report(found: Recovery) -> None:
    """A line for what was found, and one for each thing that was cut."""
    if not found.clean or found.end > found.start:
        log.log(
            logging.INFO if found.clean else logging.WARNING,
            "%s; looked at the log from %d to %d, where it ends: %d messages",
            "the checkpoint is not ours" if found.clean else "the last stop was not clean",
            found.start,
            found.end,
            found.records,
        )
    if found.has_erased:
        log.warning("cut the log at %d: what lay behind was no sound message, and is erased", found.end)
    if found.segments_deleted:
        log.warning("deleted %d segments behind the end of the log", found.segments_deleted)
    if found.queues_cut:
        log.warning("cut %d consume queues that pointed behind the end of the log", found.queues_cut)


# ---- where to begin ------------------------------------------------------------------------------------------


def _begin(
    commit_log: CommitLog, queues: QueueIndex, checkpoint: Checkpoint, *, clean: bool
) -> tuple[int, int]:
    """The place before which everything is durable, the record that ends there (or -1), and the queues up to it."""
    mark = checkpoint.mark
    if mark is not None and _is_true(commit_log, mark):
        queues.load(mark.end, commit_log.start)
        return mark.end, mark.last_record
    if clean:  # by the original, which leaves what it has cut behind the end, in the log as in the queues
        start = _newest_segment(commit_log)
        queues.load(start, commit_log.start)
        if _newest_record(commit_log, queues) is not None:
            return start, -1
    start = _segment_by_time(commit_log, checkpoint)
    queues.load(start, commit_log.start)
    return start, -1


def _is_true(commit_log: CommitLog, mark: Mark) -> bool:
    """Whether the log has a sound record that ends at the mark: it is the log that the mark was made for."""
    if mark.last_record < 0:
        return mark.end == commit_log.start == 0
    head = commit_log.head_at(mark.last_record, check_crc=True)
    if head is None:
        return False
    behind = mark.last_record + head.size
    segment = commit_log.segment_of(mark.last_record)
    assert segment is not None
    if behind == mark.end:
        return True
    # The segment was full, and nothing was in the next one yet.
    is_blank = isinstance(inspect_record(segment.view, behind - segment.base, segment.size, False), int)
    return is_blank and mark.end == segment.base + segment.size


def _newest_segment(commit_log: CommitLog) -> int:
    """The newest segment that begins with a record: the log ends in it, or in the one behind."""
    for segment in reversed(commit_log.segments):
        if commit_log.head_at(segment.base, check_crc=True) is not None:
            return segment.base
    return int(commit_log.start)


def _newest_record(commit_log: CommitLog, queues: QueueIndex) -> RecordHead | None:
    """The record of the newest entry of all queues; None when they are of another log, or empty."""
    entries = (queue.entry(queue.end - 1) for queue in queues if queue.end > queue.start)
    newest = max((entry for entry in entries if entry is not None), default=None)
    head = None if newest is None else commit_log.head_at(newest[0])
    return head if head is not None and newest is not None and head.size == newest[1] else None


def _segment_by_time(commit_log: CommitLog, checkpoint: Checkpoint) -> int:
    """The newest segment that begins with a record from before the checkpoint; as the original chooses."""
    for segment in reversed(commit_log.segments):
        head = commit_log.head_at(segment.base, check_crc=True)
        if head is not None and 0 < head.store_timestamp_ms <= checkpoint.safe_ms:
            return segment.base
    return int(commit_log.start)


# ---- the walk ------------------------------------------------------------------------------------------------


class _EntriesMissing(Exception):
    """A queue lacks entries of records from before the place where the walk began."""


class _Torn(Exception):
    """A record looks sound but is not: the log ends before it."""

    def __init__(self, log_offset: int) -> None:
        super().__init__(f"the message at {log_offset} in the log is damaged")
        self.log_offset = log_offset


class _Jump(NamedTuple):
    """A record whose number is above the next one of its queue: the records between are gone, or the number is wrong.

    The queue's next record tells.  Behind a jump it has a number above; behind a wrong number, one that is not.
    """

    tail: QueueTail
    next_offset: int
    """Of the queue before it.  A queue that is elsewhere has gone on without it."""

    offset: int
    log_offset: int


class _Rebuild:
    """One walk over the log from `start`, at most to `limit`, into the queues."""

    def __init__(
        self,
        commit_log: CommitLog,
        queues: QueueIndex,
        start: int,
        limit: int,
        levels: DelayLevels,
        progress: Progress,
    ) -> None:
        self._log = commit_log
        self._queues = queues
        self._start = start
        self._limit = limit
        self._levels = levels
        self._progress = progress
        self._walk = LogWalk(self._find, self._mend, self._deliver, queues.deletions.by_name())
        self._loaded = {queue.tail.key: queue.end for queue in queues}
        self._had_entries = {queue.tail.key for queue in queues if queue.start < queue.end}
        self._restarts: dict[tuple[str, int], tuple[int, int]] = {}  # (end before, record that began anew)
        self._jumps: dict[tuple[str, int], _Jump] = {}  # undecided; one of a queue, which takes more itself
        self._placed = 0  # entries of records that had jumped
        self._stand_ins = 0  # entries that fill gaps
        self._entries_written = 0  # and stand-ins
        self._may_write = True

    @property
    def records(self) -> int:
        return self._walk.records

    @property
    def entries(self) -> int:
        return self._walk.entries + self._placed

    @property
    def last_record(self) -> int:
        return self._walk.last_record

    def run(self) -> int:
        """Where the log ends."""
        at = self._start
        last = self._log.segments[-1]
        total = last.base + last.size - at
        segment = self._log.segment_of(at)
        while segment is not None and at < self._limit:
            position = at - segment.base
            limit = min(segment.size, position + STEP_BYTES, self._limit - segment.base)
            position, why = self._walk.go(segment.view, segment.base, position, limit, True)
            at = segment.base + position
            self._progress(at - self._start, total)
            self._write_many()
            following = self._log.segment_of(segment.base + segment.size) if why == BLANK else None
            if following is not None:
                segment, at = following, following.base
            elif why != LIMIT or position >= segment.size:
                break
        while self._jumps:  # nothing is behind these that could be hidden
            _, jump = self._jumps.popitem()
            if jump.tail.next_offset == jump.next_offset:
                self._take(jump)
            else:
                self._pass_over(jump)
        return at

    def write(self) -> None:
        """Write the entries in memory.  A full disk is no reason not to start: they are written when there is room."""
        for queue in self._queues:
            try:
                queue.write_behind()
            except OSError as error:
                log.warning("recovered queue entries stay in memory: %s", error.strerror or error)
                self._may_write = False
                return
        self._entries_written = self.entries + self._stand_ins

    def _write_many(self, coming: int = 0) -> None:
        """The same, once they are many with those that come."""
        unwritten = self.entries + self._stand_ins - self._entries_written
        if unwritten + coming > ENTRIES_IN_MEMORY_MAX and self._may_write:
            self.write()

    def _find(self, topic: bytes, queue_id: int) -> QueueTail | None:
        """The queue of a record; None when its topic could not be the name of a folder."""
        if len(topic) > NAME_BYTES_MAX:
            return None
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            return None
        if name in ("", ".", "..") or "/" in name or "\0" in name or queue_id < 0:
            return None
        return self._queues.get(name, queue_id).tail

    def _mend(self, tail: QueueTail, offset: int, log_offset: int) -> bool:
        """A record does not continue its queue.  Whether it gets an entry all the same.

        Where this is the first record of the queue in this walk, the files of the queue may be to blame, and the log
        is right.  Later the queue is what the walk has made it, and it is the record that is wrong.  One whose number
        is too high waits for the next one of its queue: a single wrong bit would hide all that is behind it.
        """
        queue = tail.owner
        assert isinstance(queue, ConsumeQueue)
        record = _Jump(tail, int(tail.next_offset), offset, log_offset)
        if not 0 <= offset <= log_offset // MESSAGE_BYTES_MIN:  # the messages before it would not fit the log
            return self._pass_over(record)
        jump = self._jumps.pop(tail.key, None)
        if jump is not None and self._is_next_behind(jump, record):
            return True
        end, restart = self._restarts.pop(tail.key, (-1, -1))
        if tail.next_offset == 1 and offset == end + 1 > 0 and not may_be_torn(self._log, log_offset):
            # The queue goes on as if it had not begun anew: that record was number `end`.
            raise _Torn(restart)
        missing = offset - tail.next_offset
        is_first = self._is_first(tail)
        if is_first and missing < 0 and queue.start == queue.end:
            self._leave_jump(tail)
            queue.begin_anew()  # nothing but the name of a file says otherwise, and the file before it may be lost
            self._loaded[tail.key] = QueueOffset(0)
            missing = offset
        if missing == 0:
            return True
        if is_first and missing > 0:
            if may_be_torn(self._log, log_offset):
                self._check_begin(record)
        elif is_first and queue.points_at(offset, log_offset):
            return False  # it has its entry
        elif is_first and offset > 0 and not self._is_true(queue, offset):
            self._leave_jump(tail)
            tail.reset(offset)  # what the file says from here on is wrong
            return True
        elif may_be_torn(self._log, log_offset) and (offset > 0 or self._was_there(queue, log_offset)):
            raise _Torn(log_offset)
        elif offset == 0:  # the topic was deleted and made again
            self._leave_jump(tail)
            self._restarts[tail.key] = (int(tail.next_offset), log_offset)
            queue.begin_anew()
            return True
        elif not 0 < missing <= GAP_ENTRIES_MAX:
            return self._pass_over(record)
        self._jumps[tail.key] = record._replace(next_offset=int(tail.next_offset))
        return False

    def _is_next_behind(self, jump: _Jump, record: _Jump) -> bool:
        """Decide on a jump by the queue's next record; whether the queue goes on with that one then."""
        tail = record.tail
        if tail.next_offset == jump.next_offset and record.offset > jump.offset:
            self._take(jump)
        elif tail.next_offset != jump.next_offset or record.offset > tail.next_offset:
            self._pass_over(jump)
            if tail.next_offset == jump.next_offset == record.offset - 1:  # the number between was that one's
                # This record stands in: before others the next start would see it, and believe the wrong number.
                tail.append(*self._entry_of(record))
                self._stand_ins += 1
        else:
            self._jumps[tail.key] = jump  # this one says nothing about it
        return tail.next_offset == record.offset

    def _leave_jump(self, tail: QueueTail) -> None:
        """The queue goes on elsewhere: nothing tells any more what a jump of it was."""
        jump = self._jumps.pop(tail.key, None)
        if jump is not None:
            self._pass_over(jump)

    def _take(self, jump: _Jump) -> None:
        """Give a record that has jumped its entry."""
        self._check_begin(jump)
        queue, entry = jump.tail.owner, self._entry_of(jump)
        assert isinstance(queue, ConsumeQueue)
        self._write_many(coming=queue.gap_to(jump.offset))
        self._stand_ins += queue.skip_to(jump.offset, self._stand_in(queue, entry))
        jump.tail.append(*entry)
        self._placed += 1

    def _entry_of(self, record: _Jump) -> tuple[int, int, int]:
        """The entry of a record under its number."""
        log_offset = record.log_offset
        segment, head = self._log.segment_of(log_offset), self._log.head_at(log_offset)
        assert segment is not None
        assert head is not None
        at, code = log_offset - segment.base + head.properties_at, head.tags_code
        if record.tail.key[0] == SCHEDULE_TOPIC:
            properties = bytes(segment.view[at : at + head.properties_length])
            stored_ms = head.store_timestamp_ms
            code = self._due(record.tail, record.offset, properties, stored_ms, log_offset, head.size)
        return log_offset, head.size, code

    def _is_first(self, tail: QueueTail) -> bool:
        """Whether the walk has given this queue nothing yet."""
        return bool(self._loaded.get(tail.key, 0) == tail.next_offset)

    def _check_begin(self, jump: _Jump) -> None:
        """Raise when the walk began behind records that the queue lacks before this one."""
        if self._is_first(jump.tail) and self._start > self._log.start:
            topic, queue_id = jump.tail.key
            missing = jump.offset - int(jump.tail.next_offset)
            raise _EntriesMissing(f"queue {queue_id} of {topic} lacks {missing} entries")

    def _pass_over(self, record: _Jump) -> bool:
        """The record gets no entry: nothing says where it belongs."""
        place, offset = record.log_offset, record.offset
        log.error("the message at %d in the log has a wrong queue offset, %d", place, offset)
        return False

    def _stand_in(self, queue: ConsumeQueue, following: tuple[int, int, int]) -> tuple[int, int, int]:
        """What stands for lost entries before this one.

        We pass over any gap.  RocketMQ 5.5.0 goes on behind the segment that a gap names, and fails for ever where it
        does not name the beginning of one; so it names the segment before the record's.  Where that would be out of
        order the record itself stands in, which RocketMQ gives out once more; we see that its number is another one.
        """
        segment = self._log.segment_of(following[0])
        assert segment is not None
        previous = queue.entry(queue.end - 1)
        base = segment.base - segment.size
        if base >= (0 if previous is None else previous[0] + (previous[1] if previous[1] != GAP_SIZE else 0)):
            return base, GAP_SIZE, 0
        return following

    def _deliver(self, tail: QueueTail, properties: bytes, stored_ms: int, log_offset: int, size: int) -> int:
        return self._due(tail, int(tail.next_offset), properties, stored_ms, log_offset, size)

    def _due(
        self, tail: QueueTail, offset: int, properties: bytes, stored_ms: int, log_offset: int, size: int
    ) -> int:
        """When a delayed message is due.  Who wrote its entry knew the delays better, if the entry is still there.

        An entry that crosses the end of a sector may have lost its last four bytes, or eight: such a time is too early.
        """
        queue = tail.owner
        assert isinstance(queue, ConsumeQueue)
        *place, code = queue.filed(offset) or (0, 0, 0)
        if place == [log_offset, size] and code % (1 << 32):
            return code
        return entry_code(tail.key[0], properties, stored_ms, self._levels)

    def _is_true(self, queue: ConsumeQueue, offset: int) -> bool:
        """Whether an entry, or the last one, before which all others came, points at a record that says the same."""
        entries = ((one, queue.entry(one)) for one in (offset, queue.end - 1))
        heads = ((one, self._log.head_at(entry[0])) for one, entry in entries if entry is not None)
        return any(head is not None and queue.is_own(one, head) for one, head in heads)

    def _was_there(self, queue: ConsumeQueue, log_offset: int) -> bool:
        """Whether the files show that the queue did not begin with this record, although that has the number 0.

        A topic that is deleted takes its files along, durably, before it can be made again.
        """
        if queue.tail.key in self._had_entries:
            return True
        filed = None if self._entries_written else queue.filed(0)
        head = None if filed is None or filed[0] >= log_offset else self._log.head_at(filed[0])
        # An entry of zeros points at a record, too.
        if head is None or filed is None or filed[1] != head.size:
            return False
        return (head.topic.decode("utf-8", "replace"), head.queue_id) == queue.tail.key
