"""Do the consume queues say what the log says?

Every sound record of the log is expected in its queue, at its number, with its place, size and tags.  Expected
entries are collected and compared in blocks with what the files hold; only a block that differs is looked at entry
by entry.  What the log does not explain is judged on its own: entries of records that were deleted with old
segments, that lie in a hole of the log, that fill a gap, or that point nowhere.

Normal after an unclean stop: entries that were not written yet, at the end of a queue or newer than the checkpoint,
and entries that point behind the end of the log.  The next start deals with both.
"""

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from bolide.model.delay_levels import DEFAULT_LEVELS, DELAY_MS_MAX
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.numbers import INT64_MAX
from bolide.offline.damage import Findings
from bolide.offline.files import EMPTY_ENTRY, OfflineQueue, QueueKey, StoreFiles
from bolide.offline.scan import UNQUEUED_MASK, Hole, is_topic, sound_at
from bolide.record.codec import RecordHead
from bolide.record.layout import FIXED_BYTES
from bolide.store.append import QueueTail
from bolide.store.entry_rules import entry_code
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE

BLOCK_ENTRIES = 4096
PENDING_ENTRIES_MAX = 2_000_000
"""Expected entries held in memory, over all queues: 40 MB."""

EXT_ADDRESS_MAX = -2_147_483_649
"""A tags code up to this is an address in `consumequeue_ext`, which says more than a hash."""

UNSEEN = -(2**62)
"""The number of the next record in a queue that has had none: no record's number."""

Entry = tuple[int, int, int]

_CONSEQUENCES = {
    "is empty": "the message is skipped, or the queue ends there at the next start",
    "is marked as a gap": "the message is in the log, but consumers skip it",
    "has the wrong hash of the tags": "consumers that filter by tag miss the message or get it wrongly",
    "points to another place": "consumers do not get the message",
    "is of no record": "consumers find nothing there",
    "points behind the end of the log": "consumers find nothing there",
    "belongs to a record that says another number": "offsets of this queue are not what its records say",
    "is wanted by two records": "consumers get only one of them",
}


@dataclass(slots=True)
class _Run:
    """Neighbouring entries with the same fault."""

    what: str
    first: int
    last: int


class FixKind(Enum):
    AGAIN = "written again from the log"
    LOST = "marked as lost"
    ERASED = "erased"


@dataclass(slots=True)
class QueueFix:
    """Entries that should stand in a queue instead of those that do."""

    key: QueueKey
    first: int
    kind: FixKind
    entries: bytearray

    @property
    def last(self) -> int:
        return self.first + len(self.entries) // ENTRY_BYTES - 1


@dataclass(slots=True)
class _Queue:
    """What the log has said about one queue, and where the files disagree."""

    key: QueueKey
    disk: OfflineQueue | None
    first: int = UNSEEN  # number of its first record in the log
    tail: QueueTail = field(init=False)  # expected entries, not compared yet
    faults: list[_Run] = field(default_factory=list)
    extra: list[_Run] = field(default_factory=list)  # faults of entries that no record explains
    fixes: list[QueueFix] = field(default_factory=list)
    first_entry: Entry | None = None
    last_entry: Entry | None = None  # of those that were compared
    is_deleted: bool = False  # its topic is
    delay_ms: int | None = None  # of its delayed messages, as the last entry that is there says

    def __post_init__(self) -> None:
        self.tail = QueueTail(self.key, UNSEEN, self)

    @property
    def pending(self) -> int:
        return self.tail.next_offset - self.tail.start

    def fix(self, offset: int, kind: FixKind, entry: bytes) -> None:
        last = self.fixes[-1] if self.fixes else None
        if last is None or last.last != offset - 1 or last.kind is not kind:
            last = QueueFix(self.key, offset, kind, bytearray())
            self.fixes.append(last)
        last.entries += entry


class QueueCheck:
    """Compares queues with the records that a scan meets."""

    def __init__(
        self,
        store: StoreFiles,
        holes: Sequence[Hole],
        findings: Findings,
        *,
        topics: frozenset[str] | None,
        checkpoint_ms: int,
    ) -> None:
        self._store = store
        self._holes = holes  # grows while the scan goes on
        self._findings = findings
        self._topics = topics
        self._checkpoint_ms = checkpoint_ms
        self._queues: dict[QueueKey, _Queue] = {}
        self._made_again: dict[str, int] = {}  # topics with a queue that begins anew, and where
        self._has_ext = store.disk.exists(store.path("consumequeue_ext"))
        self.entries = 0
        self.behind_end = 0
        """After a clean stop, how far behind the end of the log entries point."""
        self.renumbered: list[tuple[int, int]] = []
        """Records that say another number than their entry, with the number that they should say."""

    @property
    def fixes(self) -> list[QueueFix]:
        """What would bring the queues in step with the log; complete after `finish`."""
        return [fix for queue in self._queues.values() if not queue.is_deleted for fix in queue.fixes]

    # ---- while the log is walked ---------------------------------------------------------------------------

    def find(self, topic: bytes, queue_id: int) -> QueueTail | None:
        """Where the walk puts what it expects of a queue; None when the topic is no name."""
        if not is_topic(topic) or queue_id < 0:
            return None
        key = topic.decode(), queue_id
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(key, self._store.queues.get(key))
        return queue.tail

    def mend(self, tail: QueueTail, number: int, log_offset: int) -> bool:
        """A record whose number is not the next one of its queue."""
        queue = tail.owner
        assert isinstance(queue, _Queue)
        head = sound_at(self._store, log_offset)
        if head is None or head.sys_flag & UNQUEUED_MASK:
            return False
        if queue.first == UNSEEN:
            queue.first, queue.first_entry = number, self._entry_of(queue, head)
            tail.reset(number)
            return True
        return self._jump(queue, head)

    def deliver(self, tail: QueueTail, properties: bytes, stored_ms: int, log_offset: int, size: int) -> int:
        """When a delayed message is due, which stands in its entry instead of the hash of its tags.

        Whoever wrote the entry knew what the levels were, which no file says.  So a lost one is made again with the
        delay of the one before it, and where none is there with what the level is by default.
        """
        queue = tail.owner
        assert isinstance(queue, _Queue)
        return self._due(queue, int(tail.next_offset), properties, stored_ms, log_offset, size)

    def _due(
        self, queue: _Queue, number: int, properties: bytes, stored_ms: int, log_offset: int, size: int
    ) -> int:
        """The same, for the message of this number."""
        found = (0, 0, 0) if queue.disk is None else queue.disk.entry(number)
        if found[:2] == (log_offset, size):
            if 0 <= found[2] - stored_ms <= DELAY_MS_MAX:
                queue.delay_ms = found[2] - stored_ms
            return found[2]
        if queue.delay_ms is not None:
            return stored_ms + queue.delay_ms
        return entry_code(queue.key[0], properties, stored_ms, DEFAULT_LEVELS)

    def compare_some(self) -> None:
        """Hold what has come together against the files, so that memory stays bounded."""
        pending = sum(queue.pending for queue in self._queues.values())
        least = BLOCK_ENTRIES if pending < PENDING_ENTRIES_MAX else 1
        for queue in self._queues.values():
            if queue.pending >= least:
                self._compare(queue)

    def _jump(self, queue: _Queue, head: RecordHead) -> bool:
        """A record whose number is not the next one; tells whether it is to be expected under its number."""
        wanted, number = queue.tail.next_offset, head.queue_offset
        place = head.log_offset, head.size
        found = [] if queue.disk is None else [queue.disk.entry(at)[:2] for at in (wanted, number)]
        if found and found[0] == place != found[1]:  # with both it is the copy that stands for a lost one
            _extend(queue.faults, "belongs to a record that says another number", wanted)
            self.renumbered.append((head.log_offset, wanted))
            queue.tail.append(*place, self._code(queue, wanted, head))
            return False
        if number > wanted:
            self._compare(queue)
            self._judge(queue, wanted, number, self._entry_of(queue, head))
            queue.tail.reset(number)
            return True
        if queue.disk is None or queue.disk.entry(number)[:2] == place:
            # The topic was deleted and made again: its queues begin anew, and older records have none.
            self._compare(queue)
            self._made_again[queue.key[0]] = head.log_offset
            queue.faults.clear()
            queue.fixes.clear()
            queue.first, queue.first_entry, queue.last_entry = number, self._entry_of(queue, head), None
            queue.tail.reset(number)
            return True
        _extend(queue.faults, "is wanted by two records", number)
        return False

    def _compare(self, queue: _Queue) -> None:
        """Hold the expected entries against the files."""
        tail = queue.tail
        first, last = tail.start, tail.next_offset
        if first == last:
            return
        wanted = bytes(tail.entries(first, last))
        found = bytes(len(wanted)) if queue.disk is None else queue.disk.read(first, last)
        self.entries += last - first
        tail.drop_before(last)
        queue.last_entry = ENTRY.unpack_from(wanted, len(wanted) - ENTRY_BYTES)
        if wanted == found:
            return
        for at in range(0, len(wanted), ENTRY_BYTES):
            entry = wanted[at : at + ENTRY_BYTES]
            if entry != found[at : at + ENTRY_BYTES]:
                offset = first + at // ENTRY_BYTES
                what = self._difference(queue, offset, ENTRY.unpack(entry), ENTRY.unpack_from(found, at))
                if what:
                    _extend(queue.faults, what, offset)
                    queue.fix(offset, FixKind.AGAIN, entry)

    def _difference(self, queue: _Queue, offset: int, wanted: Entry, found: Entry) -> str:
        if found == (0, 0, 0):
            return "is empty"
        if found[1] == GAP_SIZE:
            return "is marked as a gap"
        if found[:2] == wanted[:2]:
            is_address = self._has_ext and found[2] <= EXT_ADDRESS_MAX
            return "" if is_address else "has the wrong hash of the tags"
        if self._leads_to_its_record(queue.key, offset, found):
            return ""  # a newer record of that number: the topic was deleted and made again
        return "points to another place"

    def _leads_to_its_record(self, key: QueueKey, offset: int, entry: Entry) -> bool:
        head = sound_at(self._store, entry[0])
        return (
            head is not None
            and (head.topic.decode(), head.queue_id, head.queue_offset) == (*key, offset)
            and head.size == entry[1]
        )

    # ---- entries that no record explains -------------------------------------------------------------------

    def _judge(self, queue: _Queue, first: int, last: int, following: Entry | None) -> None:
        """Entries of numbers that the log does not have; `following` is that of the next record."""
        if queue.disk is None:
            return
        first = max(first, queue.disk.first)
        last = max(first, min(last, queue.disk.end()))
        self.entries += last - first
        stand_in = self._stand_in(queue, following)
        neighbours = [entry[:2] for entry in (following, queue.last_entry) if entry is not None]
        lost = 0
        for offset, entry in queue.disk.entries(first, last):
            log_offset, size, _ = entry
            if size == GAP_SIZE or entry[:2] in neighbours:
                lost += (log_offset, size) != (0, GAP_SIZE)  # at 0 they only fill the first file
                continue
            if 0 <= log_offset < self._store.log.start and entry != (0, 0, 0):
                continue  # went with an old segment
            hole = self._hole_at(log_offset) if entry != (0, 0, 0) else None
            if hole is not None:
                hole.lost.append((*queue.key, offset))
            elif entry == (0, 0, 0):
                _extend(queue.extra, "is empty", offset)
            elif queue.key[0].startswith("%LMQ%") and sound_at(self._store, log_offset) is not None:
                continue  # light queues share the records of other topics
            else:
                _extend(queue.extra, "is of no record", offset)
            queue.fix(offset, FixKind.LOST, stand_in)
        if lost:
            text = f"{lost} entries stand for messages that were lost"
            self._findings.note(self._store.name(queue.disk.folder), text)

    def _stand_in(self, queue: _Queue, following: Entry | None) -> bytes:
        """What to put into the place of an entry whose record is lost, so that both kinds of broker pass over it.

        A gap makes RocketMQ 5.5.0 go on behind the segment that it names, or fail for ever where it does not name
        the beginning of one.  So a gap names the beginning of the segment before the next message's, and where that
        would be out of order the entry is a copy of its neighbour's: RocketMQ gives that message once more, we see
        that its number is another one.
        """
        previous, file_bytes = queue.last_entry, self._store.log.file_bytes
        if following is None:
            return ENTRY.pack(*previous) if previous is not None else ENTRY.pack(0, GAP_SIZE, 0)
        base = following[0] - following[0] % file_bytes - file_bytes
        if base >= (0 if previous is None else previous[0] + previous[1]):
            return ENTRY.pack(base, GAP_SIZE, 0)
        return ENTRY.pack(*following)

    def _entry_of(self, queue: _Queue, head: RecordHead) -> Entry:
        """A record's entry: as it is, if it is right but for what stands in the place of the tags."""
        found = (0, 0, 0) if queue.disk is None else queue.disk.entry(head.queue_offset)
        place = (head.log_offset, head.size)
        return found if found[:2] == place else (*place, self._code(queue, head.queue_offset, head))

    def _code(self, queue: _Queue, number: int, head: RecordHead) -> int:
        """What the entry of this number has to say of the record, beside its place."""
        if queue.key[0] != SCHEDULE_TOPIC:
            return head.tags_code
        base = self._store.log.base_of(head.log_offset)
        assert base is not None
        at = head.log_offset - base + head.properties_at
        properties = bytes(self._store.log.view(base)[at : at + head.properties_length])
        return self._due(queue, number, properties, head.store_timestamp_ms, head.log_offset, head.size)

    def _hole_at(self, log_offset: int) -> Hole | None:
        at = bisect.bisect_right(self._holes, log_offset, key=lambda hole: hole.at) - 1
        return self._holes[at] if at >= 0 and log_offset < self._holes[at].end else None

    # ---- when the walk is over -----------------------------------------------------------------------------

    def finish(self, log_end: int) -> None:
        """Compare what is left, and report."""
        for queue in self._queues.values():
            self._compare(queue)
        for key, disk in self._store.queues.items():
            if key not in self._queues:
                self._queues[key] = _Queue(key, disk)
        for queue in self._queues.values():
            if queue.disk is not None:
                previous, queue.last_entry = queue.last_entry, None
                self._judge(queue, queue.disk.first, queue.first, queue.first_entry)
                queue.last_entry = previous
                self._finish_queue(queue, max(queue.disk.first, queue.tail.next_offset), log_end)
            self._report(queue)

    def _finish_queue(self, queue: _Queue, first: int, log_end: int) -> None:
        """Entries behind the last record of the queue."""
        assert queue.disk is not None
        cut = end = queue.disk.end()
        while cut > first and queue.disk.entry(cut - 1)[0] >= log_end:
            cut -= 1
        self._judge(queue, first, cut, None)
        if cut < end and self._store.is_clean:
            self._judge_behind(queue, cut, end, log_end)
        elif cut < end:
            for offset in range(cut, end):
                queue.fix(offset, FixKind.ERASED, EMPTY_ENTRY)
            self._findings.note(
                self._store.name(queue.disk.folder),
                f"{end - cut} entries point behind the end of the log; the next start cuts them",
            )

    def _judge_behind(self, queue: _Queue, first: int, end: int, log_end: int) -> None:
        """Entries behind the end of a log that was closed: of records that were there, or garbage.

        Numbers that were given must not be given again, so the former become gaps; the latter are erased.
        """
        assert queue.disk is not None
        file_bytes = self._store.log.file_bytes
        newest, reach = log_end, log_end - log_end % file_bytes + 2 * file_bytes
        for offset, (log_offset, size, _) in queue.disk.entries(first, end):
            is_garbage = size < FIXED_BYTES or not newest <= log_offset <= log_offset + size <= reach
            newest = INT64_MAX if is_garbage else log_offset + size
            if is_garbage:
                _extend(queue.extra, "is of no record", offset)
                queue.fix(offset, FixKind.ERASED, EMPTY_ENTRY)
            else:
                self.behind_end = max(self.behind_end, newest)
                _extend(queue.extra, "points behind the end of the log", offset)
                queue.fix(offset, FixKind.LOST, self._stand_in(queue, None))

    def _report(self, queue: _Queue) -> None:
        topic, queue_id = queue.key
        if queue.disk is None and queue.first == UNSEEN:
            return  # only records that belong to no queue
        folder = self._store.name(self._store.path("consumequeue", topic, str(queue_id)))
        if queue.disk is None and self._was_deleted(queue):
            queue.is_deleted = True
            count = queue.tail.next_offset - queue.first
            self._findings.note(folder, f"{count} records of a topic that was deleted are still in the log")
            return
        for run in [*self._real(queue, folder), *queue.extra]:
            at = run.first * ENTRY_BYTES
            file = folder
            if queue.disk is not None:
                file = self._store.name(queue.disk.path(at - at % queue.disk.file_bytes))
                at %= queue.disk.file_bytes
            many = run.last > run.first
            which = f"entries {run.first} to {run.last}" if many else f"entry {run.first}"
            self._findings.damage(
                file, at, f"{which} of {topic}/{queue_id} {_many(run.what, many)}", _CONSEQUENCES[run.what]
            )

    def _was_deleted(self, queue: _Queue) -> bool:
        """Whether its topic is not there any more, or was made again behind its last record."""
        topic = queue.key[0]
        if self._topics is not None and topic not in self._topics:
            return True
        return queue.last_entry is not None and queue.last_entry[0] < self._made_again.get(topic, 0)

    def _real(self, queue: _Queue, folder: str) -> Iterator[_Run]:
        """The faults that are not just what an unclean stop leaves."""
        for run in queue.faults:
            if run.what == "is empty" and not self._store.is_clean and self._is_young(queue, run):
                count = run.last - run.first + 1
                self._findings.note(folder, f"{count} entries are not written yet; the next start does that")
            else:
                yield run

    def _is_young(self, queue: _Queue, run: _Run) -> bool:
        """Whether entries may be missing because the broker did not come to write them."""
        if queue.disk is None or queue.disk.end() <= run.first:
            return True
        head = self._store_time_before(queue, run.first)
        return head > self._checkpoint_ms

    def _store_time_before(self, queue: _Queue, offset: int) -> int:
        """Store time of the newest message before this one, as its entry says."""
        assert queue.disk is not None
        log_offset, size, _ = queue.disk.entry(offset - 1) if offset else (0, 0, 0)
        head = sound_at(self._store, log_offset) if 0 < size < GAP_SIZE else None
        return 0 if head is None else head.store_timestamp_ms


def _extend(runs: list[_Run], what: str, offset: int) -> None:
    if runs and runs[-1].what == what and runs[-1].last == offset - 1:
        runs[-1].last = offset
    else:
        runs.append(_Run(what, offset, offset))


def _many(what: str, many: bool) -> str:
    """The same in the plural."""
    if not many:
        return what
    verb, _, rest = what.partition(" ")
    return {"is": "are", "has": "have", "points": "point", "belongs": "belong"}[verb] + " " + rest
