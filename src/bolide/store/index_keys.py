"""KeyIndex: finds messages by key, unique key or tag.  The log is the truth; everything here can be made again from it.

Indexing runs behind the log, in parts that the owner of the log hands out (`next_part`) and whoever has the time
indexes (`add`), usually another thread.  One thread at a time: this object has no locks.  A part holds its own view
of a segment, so the log may delete that segment meanwhile.

    `position`  log offset of the next message to index
    a crash     costs what was indexed since the last two syncs, never a whole file; a store that RocketMQ left in a
                crash has no durable marks, and its files are treated by RocketMQ's own rule
"""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from bolide.model.clock import Clock
from bolide.model.steps import Steps, at_once
from bolide.record.codec import RecordHead
from bolide.record.layout import FIXED_BYTES, MAGIC_V1, MAGIC_V2
from bolide.store.disk import Disk
from bolide.store.file_names import number_of
from bolide.store.folders import make_folder
from bolide.store.index import AT_BLANK, NO_RECORD, NO_ROOM, find_offsets, index_records
from bolide.store.index_file import FIRST_ENTRY, IndexFile, IndexSizes
from bolide.store.index_layout import DurableMark
from bolide.store.log import CommitLog

log = logging.getLogger(__name__)

T = TypeVar("T")

PART_BYTES = 4 * 1024 * 1024
"""So much of the log is indexed at a time: some milliseconds of work."""

CLOSE_BYTES = 256 * 1024 * 1024
"""So much is still indexed at a stop; what is left after that is indexed at the next start."""

STEPS_MAX = 5_000_000
"""Entries of one file that a search looks at: a word that very many messages share has a chain as long as that, and
whoever looks for another word of the same slot, or for a time long ago, goes along it."""

STEPS_AT_ONCE = 50_000
"""So many of them in one step: two milliseconds where none of them is in the processor's cache."""

NAME_DIGITS = 17
ENDLESS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogPart:
    """Records to index: those that begin before `stop`, in the mapping of the segment at `base`."""

    base: int
    view: memoryview
    stop: int
    end: int


@dataclass(frozen=True, slots=True)
class LogState:
    """What opening the index must know of the log, after the log's own recovery."""

    start: int
    end: int
    clean: bool  # the last stop, whoever stopped
    full_files_ms: int  # the checkpoint's: files that end before are durable (RocketMQ: indexMsgTimestamp)
    head_at: Callable[[int], RecordHead | None]
    index_end: int = (
        0  # the checkpoint's, if RocketMQ has not run since: the index is durable before this place
    )


class KeyIndex:
    def __init__(self, disk: Disk, folder: str, sizes: IndexSizes, clock: Clock) -> None:
        self._disk = disk
        self._folder = folder
        self._sizes = sizes
        self._clock = clock
        self._files: list[IndexFile] = []
        self._writes_to: IndexFile | None = None
        self._repair: tuple[IndexFile, int] | None = None
        self._log_end = 0  # when the index was opened
        self._keys_done = 0  # of the message at `position`
        self.position = 0
        self.durable_offset = 0
        self.full_files_ms = 0
        self.failure: OSError | None = None
        self.log_durable: Callable[[], int] = lambda: ENDLESS
        """How far the log is durable.  Messages behind may be lost and replaced by others at their places, so no mark
        covers their entries."""
        self._unfinished: list[IndexFile] = []  # full, with entries of such messages

    # ---- opening -------------------------------------------------------------------------------------------

    def open(self, state: LogState) -> None:
        """Find out which files can be trusted.  Reads their headers only; what takes longer is left to `repair`."""
        make_folder(self._disk, self._folder)
        self.full_files_ms = state.full_files_ms
        self._log_end = state.end
        self.position = state.start
        names = [name for name in self._disk.list(self._folder) if number_of(name) is not None]
        paths = [os.path.join(self._folder, name) for name in names]
        self._take_sound(paths, state)
        if self._files and not self._find_position(state):
            log.warning("the index files in %s belong to another log", self._folder)
            self._forget_files()
        for path in paths[len(self._files) :]:
            log.warning("%s cannot be trusted after the last stop; what it held is indexed again", path)
            self._disk.delete(path)
        if len(self._files) < len(paths):
            self._disk.sync_dir(self._folder)
        self.position = max(self.position, state.start)
        self.durable_offset = self.position

    def _take_sound(self, paths: Sequence[str], state: LogState) -> None:
        """Keep the files up to the first that cannot be used."""
        opened = [IndexFile.open(self._disk, path, self._sizes) for path in paths]
        marks = [None if file is None else file.mark for file in opened]
        # A mark is made only when all files before are durable.
        marked = max((number for number, mark in enumerate(marks) if mark is not None), default=-1)
        for number, file in enumerate(opened):
            if file is None or self._repair is not None:
                break
            mark = marks[number]
            if mark is not None and not mark.whole:
                if mark.next_entry <= FIRST_ENTRY:
                    break
                self._repair = (file, mark.next_entry)
            elif not file.is_sane:
                break
            elif not (number <= marked or state.clean or _is_old_and_full(file, state)):
                if file.header.end_offset >= state.index_end:
                    break
                if file is opened[-1]:  # closed cleanly, and a crash came before it was used again
                    self._repair = (file, file.header.next_entry)
            self._files.append(file)
        for file in opened[len(self._files) :]:
            if file is not None:
                file.close()

    def _find_position(self, state: LogState) -> bool:
        """Where the last file ends in the log; False when the log has no message there."""
        file = self._files[-1]
        header, mark = file.header, file.mark
        if mark is not None:
            self.position = min(mark.next_offset, state.end)
        elif state.start <= header.end_offset < state.end:
            last = state.head_at(header.end_offset)
            if last is None:
                return False
            self.position = header.end_offset + last.size
        if self._repair is None and header.end_offset >= state.end:
            self._repair = (file, header.next_entry)
        return True

    def _forget_files(self) -> None:
        for file in self._files:
            file.close()
        self._files.clear()
        self._unfinished.clear()
        self._repair = None

    # ---- indexing ------------------------------------------------------------------------------------------

    def next_part(self, commit_log: CommitLog, limit: int) -> LogPart | None:
        """The next messages to index, of those before `limit`; None when all are.  Called by the log's owner, when
        `needs_repair` is False: a repair may move the position."""
        assert not self.needs_repair
        if self.position < commit_log.start:  # deleted before they were indexed
            self.position, self._keys_done = int(commit_log.start), 0
        segment = commit_log.segment_of(self.position) if self.position < limit else None
        if segment is None:
            return None
        end = min(limit, segment.base + segment.size)
        # A view of its own: the log releases the segment's when it deletes the segment.
        return LogPart(segment.base, segment.file.map(), min(end, self.position + PART_BYTES), end)

    def catch_up(self, commit_log: CommitLog, limit: int, bytes_max: int) -> None:
        """Index what is left before `limit`, or a part of it; for the log's owner when it may take its time."""
        self.repair()
        stop = self.position + bytes_max
        while self.position < stop and (part := self.next_part(commit_log, limit)) is not None:
            self.add(part)

    def add(self, part: LogPart) -> None:
        """Index one part.  An `OSError` (a full disk) leaves everything so that it can go on from there."""
        if self.failure is not None:
            raise self.failure
        assert part.base <= self.position < part.stop
        while self.position < part.stop:
            file = self._writable()
            at, self._keys_done, why = index_records(
                part.view,
                self.position - part.base,
                part.stop - part.base,
                part.end - part.base,
                part.base,
                file.view,
                self._sizes.slots,
                file.writable_end,
                self._keys_done,
            )
            self.position = part.base + at
            if why == NO_ROOM:
                self._extend(file)
            elif why == AT_BLANK:
                self.position = part.base + len(part.view)
            elif why == NO_RECORD:
                self._skip(part, at)

    @property
    def needs_repair(self) -> bool:
        """Whether opening has left slots that must be made again from their entries."""
        return self._repair is not None

    def repair(self) -> None:
        """May take a second where a file has millions of entries."""
        if self.failure is not None:
            raise self.failure
        if self._repair is None:
            return
        file, next_entry = self._repair
        file.reserve_head()
        again = self._sync(partial(file.repair, next_entry, self._log_end))
        self._repair = None
        if again is not None:
            self.position = min(self.position, again)
        if file.header.next_entry <= FIRST_ENTRY:
            self._files.remove(file)
            self._delete(file)
            self.position = self._end_of_last_file()
        log.info("index file %s is repaired, messages are indexed from %d on", file.path, self.position)

    def _end_of_last_file(self) -> int:
        """At or before the end of what the files hold: a message that is indexed twice is still found once."""
        if not self._files:
            return 0  # `next_part` goes on at the start of the log
        mark = self._files[-1].mark
        return self._files[-1].header.end_offset if mark is None else mark.next_offset

    def _writable(self) -> IndexFile:
        """The file that takes the next key."""
        if self._writes_to is None:
            if self._files and not self._files[-1].is_full:
                file = self._files[-1]
                file.make_room()
                self._sync(partial(file.begin, self._mark_for(file)))
                self._writes_to = file
            else:
                self._roll()
        assert self._writes_to is not None
        return self._writes_to

    def _extend(self, file: IndexFile) -> None:
        """More room behind a file's entries, or in a new file."""
        if not file.is_full:
            file.make_room()
            return
        self._writes_to = None
        self._unfinished.append(file)
        self._finish()
        if self._unfinished:
            self._sync(partial(file.sync, self._mark_for(file)))

    def _roll(self) -> None:
        previous = self._files[-1] if self._files else None
        name = self._new_name(previous)
        header = previous.header if previous is not None else None
        file = IndexFile.create(self._disk, os.path.join(self._folder, name), self._sizes, header)
        file.mark = self._mark_for(file)
        self._files.append(file)
        self._writes_to = file

    def _new_name(self, previous: IndexFile | None) -> str:
        """The local time, and behind the last file whatever the clock says: the names are the order of the files."""
        now_ms = self._clock.now_ms()
        moment = datetime.fromtimestamp(now_ms // 1000, UTC).astimezone()
        name = int(f"{moment:%Y%m%d%H%M%S}{now_ms % 1000:03d}")
        if previous is not None:
            name = max(name, int(os.path.basename(previous.path)) + 1)
        return f"{name:0{NAME_DIGITS}d}"

    def _skip(self, part: LogPart, at: int) -> None:
        """Go on behind bytes that are no sound record: behind one record if its size can be true, else behind all."""
        size = int.from_bytes(part.view[at : at + 4], "big")
        magic = int.from_bytes(part.view[at + 4 : at + 8], "big")
        is_record = magic in (MAGIC_V1, MAGIC_V2) and FIXED_BYTES <= size <= part.end - part.base - at
        log.error("the log has no sound record at %d; it is left out of the index", part.base + at)
        self.position = part.base + at + size if is_record else part.end
        self._keys_done = 0

    # ---- keeping -------------------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        """Whether a sync would make anything durable."""
        writes = self._writes_to is not None and self._writes_to.is_dirty
        return self.failure is None and (writes or bool(self._unfinished))

    def _mark_for(self, file: IndexFile) -> DurableMark:
        """What a sync of this file makes safe: the entries of messages that the log cannot lose any more."""
        end = min(self.position, self.log_durable())
        return DurableMark(file.first_entry_from(end), end)

    def _finish(self) -> None:
        """Full files are whole once the log has all their messages."""
        while self._unfinished and self._unfinished[0].header.end_offset < self.log_durable():
            file = self._unfinished.pop(0)
            self._sync(partial(file.sync_whole, file.header.end_offset))
            self.full_files_ms = max(self.full_files_ms, file.header.end_ms)

    @property
    def durable(self) -> tuple[int, int]:
        """For the checkpoint: the store time until which full files are durable, and the log offset for all."""
        return self.full_files_ms, self.durable_offset

    def sync(self) -> None:
        """Make durable what is indexed.  A failed sync is final: the index ends, the store does not need it."""
        file = self._writes_to
        if self.failure is not None:
            return
        self._finish()
        if file is not None:
            mark = self._mark_for(file)
            self._sync(partial(file.sync, mark))
            self.durable_offset = mark.next_offset

    def _sync(self, work: Callable[[], T]) -> T:
        """Work that ends with a sync."""
        try:
            return work()
        except OSError as error:
            self.failure = error
            log.error("syncing the index failed, nothing more is indexed until the next start: %s", error)
            raise

    def drop_before(self, log_start: int) -> None:
        """Delete files whose messages are all deleted, but never the last one."""
        while len(self._files) > 1 and self._files[0].header.end_offset < log_start:
            self._delete(self._files.pop(0))

    def _delete(self, file: IndexFile) -> None:
        file.close()
        self._disk.delete(file.path)
        self._disk.sync_dir(self._folder)

    def close(self, commit_log: CommitLog) -> None:
        """Leave the files as RocketMQ would: durable, without marks.  After a failed sync they stay as they are."""
        try:
            self.catch_up(commit_log, commit_log.end, CLOSE_BYTES)
            for file in self._files:
                if file.mark is not None:
                    file.sync_whole(None)
            self.durable_offset = self.position
        except OSError as error:
            log.warning("the index is not closed cleanly and will be repaired: %s", error)
        self._forget_files()
        self._writes_to = None

    # ---- finding -------------------------------------------------------------------------------------------

    def find(self, wanted: int, count_max: int, begin_ms: int, end_ms: int) -> Sequence[int]:
        """Log offsets of messages under a key hash, newest first, each once."""
        return at_once(self.finding(wanted, count_max, begin_ms, end_ms))

    def finding(self, wanted: int, count_max: int, begin_ms: int, end_ms: int) -> Steps[Sequence[int]]:
        """The same in steps; meanwhile others may come, and the files of the oldest may go."""
        found: dict[int, None] = {}
        for file in reversed(list(self._files)):
            header = file.header
            if begin_ms <= header.end_ms and header.begin_ms <= end_ms:
                yield from self._finding_in(file, found, (wanted, count_max, begin_ms, end_ms))
            if file not in self._files or header.begin_ms < begin_ms or len(found) >= count_max:
                break
        return list(found)

    def _finding_in(
        self, file: IndexFile, found: dict[int, None], what: tuple[int, int, int, int]
    ) -> Steps[None]:
        wanted, count_max, begin_ms, end_ms = what
        number = 0
        for _ in range(0, STEPS_MAX, STEPS_AT_ONCE):
            offsets, number = find_offsets(
                file.view,
                self._sizes.slots,
                wanted,
                count_max - len(found),
                begin_ms,
                end_ms,
                STEPS_AT_ONCE,
                number,
            )
            found |= dict.fromkeys(offsets)
            if not number or len(found) >= count_max:
                return
            yield
            if file not in self._files:  # deleted meanwhile, and all before it
                return

    @property
    def last_update(self) -> tuple[int, int]:
        """Store time and log offset of the newest indexed message."""
        if not self._files:
            return 0, 0
        header = self._files[-1].header
        return header.end_ms, header.end_offset


def _is_old_and_full(file: IndexFile, state: LogState) -> bool:
    return file.is_full and file.header.end_ms <= state.full_files_ms
