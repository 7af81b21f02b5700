"""Planted bugs: each breaks the store in one way, from outside, and must be found.

A harness that finds nothing proves nothing unless it is known what it would find.  Most of these are found by crash
states; those that need a failing disk, by lives in which one step fails (`errors.py`); those of deletions, by scenes
(`deletion.py`).
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import PropertyMock, patch

from bolide.store import log as log_module
from bolide.store import recover as recovery
from bolide.store import small_file
from bolide.store.checkpoint import NextCheckpoint
from bolide.store.deletions import Deletions
from bolide.store.disk import Disk, File
from bolide.store.failed_sync import FailedSync
from bolide.store.flush import Durability, FlushPoint
from bolide.store.handles import Unsynced
from bolide.store.log import CommitLog
from bolide.store.new_message import Appended, NewMessage
from bolide.store.queue_index import QueueIndex
from bolide.store.reading import StoreReader
from bolide.store.segment import Segment, SegmentToMake
from bolide.store.store import MessageStore
from bolide.store.walk import LogWalk
from tests.crash.disk import SimDisk, SimFile
from tests.crash.image import PAGE_BYTES

ENTRY = struct.Struct(">qiq")


# ---- syncs ---------------------------------------------------------------------------------------------------


def skip_the_sync(stack: ExitStack) -> None:
    """The sync of the log does nothing and succeeds."""
    stack.enter_context(patch.object(FlushPoint, "run", lambda point: None))


def retry_a_failed_sync(stack: ExitStack) -> None:
    """The second try succeeds, because the kernel has given up what the first one could not write."""

    def run(point: FlushPoint) -> None:
        for file in point.files:
            try:
                file.sync()
            except OSError:
                file.sync()

    stack.enter_context(patch.object(FlushPoint, "run", run))


def forget_a_failed_sync(stack: ExitStack) -> None:
    """The next process does not learn of it and believes what it reads."""
    stack.enter_context(patch.object(FailedSync, "note", lambda note: None))


def forget_the_directory_sync(stack: ExitStack) -> None:
    """Files are made, renamed and deleted, and their folder is never synced."""
    stack.enter_context(patch.object(SimDisk, "sync_dir", lambda disk, path: None))


def forget_the_folders_of_queues(stack: ExitStack) -> None:
    """Queue files are synced, and the folders that hold their names are not."""

    def run(unsynced: Unsynced) -> None:
        stripped = Unsynced(unsynced._disk, unsynced.files, frozenset())
        real(stripped)

    real = Unsynced.run
    stack.enter_context(patch.object(Unsynced, "run", run))


def sync_the_newest_segment_only(stack: ExitStack) -> None:
    """What lies in the segment before it, with its blank record, is taken for durable."""

    def run(point: FlushPoint) -> None:
        point.files[-1].sync()

    stack.enter_context(patch.object(FlushPoint, "run", run))


def roll_into_a_segment_that_is_not_durable(stack: ExitStack) -> None:
    """The next segment is reserved ahead of time, and taken for durable as it is."""

    def make(to_make: SegmentToMake) -> Segment:
        to_make._file = to_make._file or to_make._disk.create(to_make._path, to_make._size, reserve=True)
        return Segment(to_make._base, to_make._file)

    stack.enter_context(patch.object(SegmentToMake, "_make", make))


# ---- acknowledging -------------------------------------------------------------------------------------------


def acknowledge_before_append(stack: ExitStack) -> None:
    """A record is promised while it waits for the next one to be written with it."""
    waiting: dict[int, tuple[CommitLog, int, bytes]] = {}

    def write(log: CommitLog, records: bytes | memoryview) -> None:
        before = waiting.pop(id(log), None)
        if before is not None and before[0] is log and before[1] < log.end:
            segment = log.segment_of(before[1])
            assert segment is not None
            segment.file.write(before[1] - segment.base, before[2])
        waiting[id(log)] = (log, log.end, bytes(records))
        log.position += len(records)

    stack.enter_context(patch.object(CommitLog, "write", write))


def acknowledge_before_the_sync(stack: ExitStack) -> None:
    """What is appended counts as durable at once."""

    def append(store: MessageStore, messages: list[NewMessage]) -> list[Appended]:
        appended = real(store, messages)
        store.durability.durable = store.log.end
        return appended

    real = MessageStore.append
    stack.enter_context(patch.object(MessageStore, "append", append))


def acknowledge_what_came_after_the_sync_began(stack: ExitStack) -> None:
    """The end of the log is looked up when the sync is done, not before it."""

    def reached(durability: Durability, point: FlushPoint) -> None:
        point.end, point.last_record = durability._log.end, durability._log.last_record
        real(durability, point)

    real = Durability.reached
    stack.enter_context(patch.object(Durability, "reached", reached))


def show_what_is_not_durable(stack: ExitStack) -> None:
    """Consumers under SYNC_FLUSH see messages that power loss may take back."""
    everything = PropertyMock(return_value=1 << 62)
    stack.enter_context(patch.object(StoreReader, "readable_end", everything))


# ---- records and entries -------------------------------------------------------------------------------------


def drop_one_dispatch(stack: ExitStack) -> None:
    """Now and then a record gets no queue entry."""
    calls = 0

    def append(store: MessageStore, messages: list[NewMessage]) -> list[Appended]:
        nonlocal calls
        appended = real(store, messages)
        calls += 1
        if calls % 5 == 0:
            tail = store.queues.get(messages[0].topic, messages[0].queue_id).tail
            kept = tail.entries(tail.start, tail.next_offset - 1)
            tail.reset(tail.start)
            for entry in ENTRY.iter_unpack(kept):
                tail.append(*entry)
        return appended

    real = MessageStore.append
    stack.enter_context(patch.object(MessageStore, "append", append))


def lose_one_write_of_entries(stack: ExitStack) -> None:
    """Now and then entries are dropped from memory and never written to their file."""
    calls = 0

    def write(file: SimFile, at: int, data: bytes | memoryview) -> None:
        nonlocal calls
        calls += "consumequeue" in file.path
        if "consumequeue" not in file.path or calls % 7:
            real(file, at, data)

    real = SimFile.write
    stack.enter_context(patch.object(SimFile, "write", write))


def accept_a_bad_checksum(stack: ExitStack) -> None:
    """Recovery takes every record whose lengths agree."""

    class CarelessWalk(LogWalk):
        def go(
            self, segment: memoryview, base: int, position: int, limit: int, check_crc: bool
        ) -> tuple[int, int]:
            return super().go(segment, base, position, limit, False)

    stack.enter_context(patch.object(recovery, "LogWalk", CarelessWalk))


def forget_the_blank_record(stack: ExitStack) -> None:
    """Nothing says that the log goes on in the next segment."""

    def roll(log: CommitLog) -> None:
        log._add(log._to_make(log.current.base + log.current.size).make())
        log.position = 0

    stack.enter_context(patch.object(CommitLog, "roll", roll))


# ---- zeros ahead of the log's end ------------------------------------------------------------------------------


def _write_entering_a_part(stack: ExitStack, enter: Callable[[File, int, int, bytes], None]) -> None:
    """Records that reach from one part of a segment into the next are written in another way."""

    def write(log: CommitLog, records: bytes | memoryview) -> None:
        end = log.position + len(records)
        part = end - end % log_module.AHEAD_BYTES
        if log.position < part < end and log._ahead:
            enter(log.current.file, log.position, part, bytes(records))
            log.position = end
        else:
            real(log, records)

    real = CommitLog.write
    stack.enter_context(patch.object(CommitLog, "write", write))


def write_zeros_over_the_page_of_the_end(stack: ExitStack) -> None:
    """They begin with that page, and what it held is put back with the new records: later, when power may be gone."""

    def enter(file: File, position: int, part: int, records: bytes) -> None:
        page = position - position % PAGE_BYTES
        before = file.read(page, position - page)
        file.write(page, bytes(min(file.size, part + log_module.AHEAD_BYTES) - page))
        file.write(page, before + records)

    _write_entering_a_part(stack, enter)


def write_zeros_over_new_records(stack: ExitStack) -> None:
    """They are written behind the records that they should be ahead of."""

    def enter(file: File, position: int, part: int, records: bytes) -> None:
        file.write(position, records)
        file.write(part, bytes(min(file.size - part, log_module.AHEAD_BYTES)))

    _write_entering_a_part(stack, enter)


def write_zeros_past_the_segment(stack: ExitStack) -> None:
    """The last part of a segment is taken for a whole one."""

    def enter(file: File, position: int, part: int, records: bytes) -> None:
        file.write(part, bytes(log_module.AHEAD_BYTES))
        file.write(position, records)

    _write_entering_a_part(stack, enter)


# ---- recovery ------------------------------------------------------------------------------------------------


def cut_the_log_by_the_queues(stack: ExitStack) -> None:
    """The log ends where the entries in queue files end."""

    def run(rebuild: recovery._Rebuild) -> int:
        rebuild._queues.load(recovery.EVERYWHERE, rebuild._log.start)
        newest = recovery._newest_record(rebuild._log, rebuild._queues)
        return rebuild._start if newest is None else newest.log_offset + newest.size

    stack.enter_context(patch.object(recovery._Rebuild, "run", run))


def end_the_log_at_the_checkpoint(stack: ExitStack) -> None:
    """What came after it is not looked for."""
    stack.enter_context(patch.object(recovery._Rebuild, "run", lambda rebuild: rebuild._start))


def trust_queues_behind_the_mark(stack: ExitStack) -> None:
    """Entries that were perhaps written are taken as they are found."""

    def run(rebuild: recovery._Rebuild) -> int:
        end = real(rebuild)
        rebuild._queues.load(end, rebuild._log.start)
        return end

    real = recovery._Rebuild.run
    stack.enter_context(patch.object(recovery._Rebuild, "run", run))


def checkpoint_before_the_queues_are_synced(stack: ExitStack) -> None:
    stack.enter_context(patch.object(NextCheckpoint, "sync", lambda checkpoint: None))


def checkpoint_before_the_log_is_synced(stack: ExitStack) -> None:
    """The mark is where the log ends, durable or not."""

    def begin(store: MessageStore) -> NextCheckpoint | None:
        durable = store.durability.durable, store.durability.last_record
        store.durability.durable, store.durability.last_record = store.log.end, store.log.last_record
        try:
            return real(store)
        finally:
            store.durability.durable, store.durability.last_record = durable

    real = MessageStore.next_checkpoint
    stack.enter_context(patch.object(MessageStore, "next_checkpoint", begin))


def leave_old_bytes_behind_a_cut(stack: ExitStack) -> None:
    """The rest of an old record completes a new one of which only the beginning was kept."""
    stack.enter_context(patch.object(SimFile, "erase", lambda file, at, again=False: False))


# ---- deletions -----------------------------------------------------------------------------------------------


def forget_deletions(stack: ExitStack) -> None:
    """Where a deleted topic ended in the log is not written down."""
    stack.enter_context(patch.object(Deletions, "save", lambda deletions: None))


def leave_deletions_behind_the_end(stack: ExitStack) -> None:
    """A log was cut, and what is stored in the same places next is taken for deleted."""
    stack.enter_context(patch.object(Deletions, "fit", lambda deletions, start, end: None))


def believe_the_folder_of_a_deleted_topic(stack: ExitStack) -> None:
    """Power loss has brought it back."""
    stack.enter_context(patch.object(QueueIndex, "_came_back", lambda queues, topic: False))


def write_a_checkpoint_in_place_at_once(stack: ExitStack) -> None:
    """Torn, it has times that its mark does not know, as if the original had run: the deletions count no more."""

    def write_in_place(checkpoint: NextCheckpoint) -> None:
        checkpoint._disk.delete(checkpoint._path + ".tmp")
        file = checkpoint._disk.open(checkpoint._path)
        file.write(0, checkpoint.says.encode())
        file.sync()

    stack.enter_context(patch.object(NextCheckpoint, "_write_in_place", write_in_place))


# ---- small files ---------------------------------------------------------------------------------------------


def rename_before_the_sync(stack: ExitStack) -> None:
    """A small file gets its name before its content is durable."""

    def sync(file: SimFile) -> None:
        if not file.path.endswith(".tmp"):
            real(file)

    real = SimFile.sync
    stack.enter_context(patch.object(SimFile, "sync", sync))


def write_small_files_in_place(stack: ExitStack) -> None:
    """The old content is gone before the new one is there."""

    def write_whole(disk: Disk, path: str, data: bytes, *, keep_previous: bool = False) -> None:
        disk.delete(path)
        file = disk.create(path, len(data), reserve=False)
        file.write(0, data)
        file.sync()
        disk.sync_dir(path.rpartition("/")[0])

    stack.enter_context(patch.object(small_file, "write_whole", write_whole))


Plant = Callable[[ExitStack], None]

PLANTS: dict[str, Plant] = {
    plant.__name__.replace("_", "-"): plant
    for plant in (
        skip_the_sync,
        retry_a_failed_sync,
        forget_a_failed_sync,
        forget_the_directory_sync,
        forget_the_folders_of_queues,
        sync_the_newest_segment_only,
        roll_into_a_segment_that_is_not_durable,
        acknowledge_before_append,
        acknowledge_before_the_sync,
        acknowledge_what_came_after_the_sync_began,
        show_what_is_not_durable,
        drop_one_dispatch,
        lose_one_write_of_entries,
        accept_a_bad_checksum,
        forget_the_blank_record,
        write_zeros_over_the_page_of_the_end,
        write_zeros_over_new_records,
        write_zeros_past_the_segment,
        cut_the_log_by_the_queues,
        end_the_log_at_the_checkpoint,
        trust_queues_behind_the_mark,
        checkpoint_before_the_queues_are_synced,
        checkpoint_before_the_log_is_synced,
        leave_old_bytes_behind_a_cut,
        forget_deletions,
        leave_deletions_behind_the_end,
        believe_the_folder_of_a_deleted_topic,
        write_a_checkpoint_in_place_at_once,
        rename_before_the_sync,
        write_small_files_in_place,
    )
}


NEED_A_FAILING_STEP = {"retry-a-failed-sync", "forget-a-failed-sync"}
NEED_A_DELETION = {
    "forget-deletions",
    "leave-deletions-behind-the-end",
    "believe-the-folder-of-a-deleted-topic",
    "write-a-checkpoint-in-place-at-once",
}


@contextmanager
def planted(name: str | None) -> Iterator[None]:
    """The store with this bug, or as it is."""
    with ExitStack() as stack:
        if name is not None:
            PLANTS[name](stack)
        yield
