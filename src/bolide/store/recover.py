"""What is true after a stop, clean or not, as a function of the files alone.

The log is the truth.  The walk begins at a place that is known to be sound, goes on while records are sound, and
the log ends there.  Every record walked is given to the queues, which take what they do not have; entries that
point behind the end of the log are cut.
"""

import logging
from dataclasses import dataclass

from bolide.model.message import TRANSACTION_MASK, SysFlag
from bolide.record.codec import RecordHead, inspect_record
from bolide.store.log import CommitLog, Segment
from bolide.store.queue_index import GAP_SIZE, ConsumeQueue, QueueIndex

log = logging.getLogger(__name__)

ENTRIES_IN_MEMORY_MAX = 10_000
"""Rebuilt entries of one queue that wait to be written to its file."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """What recovery found."""

    clean: bool
    walked_bytes: int
    records: int
    entries_added: int
    entries_cut: int


def recover(commit_log: CommitLog, queues: QueueIndex, *, clean: bool) -> Recovery:
    """Set the end of the log and bring the queues in step with it."""
    start = _clean_start(commit_log, queues) if clean else _abnormal_start(commit_log)
    end, records, added = _walk(commit_log, queues, start, check_crc=not clean)
    commit_log.cut(end)
    cut = sum(_cut_behind(queue, end) for queue in queues)
    for queue in queues:
        queue.start = type(queue.start)(_first_stored(queue, commit_log.start))
    found = Recovery(clean, end - start, records, added, cut)
    if not clean or added or cut:
        log.warning("the last stop was not clean; recovered: %s", found)
    return found


def _clean_start(commit_log: CommitLog, queues: QueueIndex) -> int:
    """After a clean stop every record is in a queue, so the log ends where the newest entry ends."""
    last_entries = (queue.entry(queue.end - 1) for queue in queues if queue.end)
    newest = max((entry for entry in last_entries if entry is not None), default=None)
    if newest is None:
        return int(commit_log.start)
    segment = commit_log.segment_of(newest[0])
    head = inspect_record(segment.view, newest[0] - segment.base, segment.size, False) if segment else None
    if isinstance(head, RecordHead) and (head.log_offset, head.size) == newest[:2]:
        return newest[0] + newest[1]
    return _abnormal_start(commit_log)  # the queues belong to another log


def _abnormal_start(commit_log: CommitLog) -> int:
    """The newest segment that begins with a sound record, and one more before it: what may not be flushed."""
    segments = commit_log.segments
    for number in range(len(segments) - 1, 0, -1):
        head = inspect_record(segments[number].view, 0, segments[number].size, True)
        if isinstance(head, RecordHead) and head.log_offset == segments[number].base:
            return segments[number - 1].base
    return int(commit_log.start)


def _walk(commit_log: CommitLog, queues: QueueIndex, at: int, *, check_crc: bool) -> tuple[int, int, int]:
    """Go from record to record; returns the end, how many there were, and entries that were missing."""
    records = added = 0
    segment = commit_log.segment_of(at)
    while segment is not None:
        head = inspect_record(segment.view, at - segment.base, segment.size, check_crc)
        if isinstance(head, RecordHead) and head.log_offset == at and _is_sound(head, segment):
            records += 1
            added += _offer(queues, head)
            at += head.size
        elif isinstance(head, int):
            following = commit_log.segment_of(segment.base + segment.size)
            if following is None:
                break
            segment, at = following, following.base
        else:
            break
    return at, records, added


def _offer(queues: QueueIndex, head: RecordHead) -> int:
    """Give a record to its queue; 1 when the queue did not have it."""
    if head.sys_flag & TRANSACTION_MASK in (SysFlag.PREPARED, SysFlag.ROLLBACK):
        return 0
    queue = queues.get(head.topic.decode(), head.queue_id)
    if head.queue_offset < queue.end:
        return 0
    if head.queue_offset > queue.end:  # entries of older records are lost
        queue.skip_to(head.queue_offset, head.log_offset)
    queue.tail.append(head.log_offset, head.size, head.tags_code)
    if queue.end - queue.tail.start >= ENTRIES_IN_MEMORY_MAX:
        queue.write_behind()
    return 1


def _is_sound(head: RecordHead, segment: Segment) -> bool:
    """What the body's checksum does not cover: a topic that may become a folder, properties that are all there."""
    try:
        name = head.topic.decode()
    except UnicodeDecodeError:
        return False
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        return False
    # Text never ends with a zero byte; a page that did not reach the disk does.
    return head.properties_length == 0 or segment.view[head.log_offset - segment.base + head.size - 1] != 0


def _cut_behind(queue: ConsumeQueue, end: int) -> int:
    """Drop entries that point behind the end of the log."""
    low, high = int(queue.start), int(queue.end)
    while low < high:
        middle = (low + high) // 2
        entry = queue.entry(middle)
        if entry is not None and entry[0] + _size_of(entry) > end:  # a missing file says nothing
            high = middle
        else:
            low = middle + 1
    dropped = queue.end - low
    if dropped:
        queue.cut(low)
    return dropped


def _first_stored(queue: ConsumeQueue, log_start: int) -> int:
    """The first entry whose record is still in the log."""
    low, high = int(queue.start), int(queue.end)
    while low < high:
        middle = (low + high) // 2
        entry = queue.entry(middle)
        if entry is not None and (entry[0] < log_start or _fills_first_file(entry)):
            low = middle + 1
        else:
            high = middle
    return low


def _size_of(entry: tuple[int, int, int]) -> int:
    """The size of the entry's record; an entry that fills a gap has none."""
    return 0 if entry[1] == GAP_SIZE else entry[1]


def _fills_first_file(entry: tuple[int, int, int]) -> bool:
    """Whether the entry only fills the part of a first file that lies before the queue's first message."""
    return entry[:2] == (0, GAP_SIZE)
