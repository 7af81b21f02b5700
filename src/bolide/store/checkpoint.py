"""The checkpoint: how far log and queues are durable, so that recovery need not look at what lies before.

    bytes  position  field
        8         0  store time of the newest record that is durable in the log (RocketMQ: physicMsgTimestamp)
        8         8  ... and has its queue entry durable too (logicsMsgTimestamp)
        8        16  store time up to which full index files are durable (indexMsgTimestamp)
        8        24  masterFlushedOffset: kept as it is found
        8        32  confirmPhyOffset: kept as it is found
        …            zeros
        8      1024  "bolide" and the version of what follows
        8      1032  the mark: log and queues are durable before this place in the log
        8      1040  where the last record before the mark begins, -1 when that is not known
        8      1048  the key index is durable before this place in the log
        4      1056  CRC-32 of the five numbers
        4      1060  CRC-32 of those before them, which may stand there as well while a full disk is written in place
        4      1064  CRC-32 of the mark: of everything from 1024 to here

The file has 4096 bytes.  The original reads and writes only its five numbers; when it has run on the store they are
others than the mark knows, and it counts no more.  It starts a recovery at a segment chosen by the times, at best
hundreds of megabytes before the end; the mark says it to the byte.

A checkpoint never runs ahead: first everything is synced that it speaks of, then it is written, whole.
"""

import os
import struct
import zlib
from dataclasses import dataclass, field, replace

from bolide.store.disk import NO_SPACE, Disk
from bolide.store.handles import Unsynced
from bolide.store.log import CommitLog
from bolide.store.queue_index import QueueIndex
from bolide.store.small_file import write_whole

FILE_BYTES = 4096
MARK_AT = 1024
SAFETY_MS = 3000
"""So much before its times the original begins, because they are not exact."""

_TIMES = struct.Struct(">qqqqq")
_MARK = struct.Struct(">8sqqqII")
_CRC = struct.Struct(">I")
_CRC_AT = MARK_AT + _MARK.size
MARK_END = _CRC_AT + _CRC.size
_MAGIC = b"bolide\x00\x01"


@dataclass(frozen=True, slots=True)
class Mark:
    """Everything before `end` is durable, in the log and in the queues."""

    end: int
    last_record: int
    index_end: int = 0


@dataclass(frozen=True, slots=True)
class Checkpoint:
    log_ms: int = 0
    queues_ms: int = 0
    index_ms: int = 0
    master_flushed: int = 0
    confirmed: int = 0
    mark: Mark | None = field(default=None)

    @property
    def safe_ms(self) -> int:
        """Records stored until then are durable, and so are their queue entries."""
        return max(0, min(self.log_ms, self.queues_ms) - SAFETY_MS)

    def encode(self, times_before: bytes | None = None) -> bytes:
        """`times_before`: the five numbers that stand in the file until these are written over them."""
        data = bytearray(FILE_BYTES)
        _TIMES.pack_into(
            data, 0, self.log_ms, self.queues_ms, self.index_ms, self.master_flushed, self.confirmed
        )
        if self.mark is not None:
            times = zlib.crc32(data[: _TIMES.size])
            before = times if times_before is None else zlib.crc32(times_before)
            mark = self.mark.end, self.mark.last_record, self.mark.index_end
            _MARK.pack_into(data, MARK_AT, _MAGIC, *mark, times, before)
            _CRC.pack_into(data, _CRC_AT, zlib.crc32(data[MARK_AT:_CRC_AT]))
        return bytes(data)

    @classmethod
    def decode(cls, data: bytes) -> "Checkpoint":
        """What the file says; a damaged one says nothing, which costs time and never a message."""
        if not _has_times(data):
            return cls()
        mark = None
        if _is_sealed(data) and _knows_its_times(data):
            _, end, last_record, index_end, _, _ = _MARK.unpack_from(data, MARK_AT)
            mark = Mark(end, last_record, index_end)
        log_ms, queues_ms, index_ms, master_flushed, confirmed = _TIMES.unpack_from(data)
        return cls(log_ms, queues_ms, index_ms, master_flushed, confirmed, mark)


def is_foreign(data: bytes | None) -> bool:
    """Whether these bytes of a file are of the original, which has run on the store since we did.

    It made them all, or has written its five numbers before a mark of ours; damage to those looks the same.  Any other
    damage does not: it writes nothing else.
    """
    if not data or len(data) < MARK_END or not _has_times(data):
        return False
    return not any(data[MARK_AT:MARK_END]) or (_is_sealed(data) and not _knows_its_times(data))


def _has_times(data: bytes) -> bool:
    return len(data) >= _TIMES.size and min(_TIMES.unpack_from(data)[:3]) >= 0


def _is_sealed(data: bytes) -> bool:
    """Whether there is a mark, as it was written."""
    return (
        len(data) >= MARK_END
        and data.startswith(_MAGIC, MARK_AT)
        and _CRC.unpack_from(data, _CRC_AT)[0] == zlib.crc32(data[MARK_AT:_CRC_AT])
    )


def _knows_its_times(data: bytes) -> bool:
    """Whether the five numbers are those that were written with the mark, or those they were written over."""
    return zlib.crc32(data[: _TIMES.size]) in _MARK.unpack_from(data, MARK_AT)[-2:]


class NextCheckpoint:
    """A checkpoint to come, and what has to be synced before.  Both may run on another thread."""

    def __init__(self, disk: Disk, path: str, unsynced: Unsynced, says: Checkpoint) -> None:
        self._disk = disk
        self._path = path
        self._unsynced = unsynced
        self.says = says

    def sync(self) -> None:
        """A failure is final, as it is for the log: the kernel may have given up pages of queue files."""
        self._unsynced.run()

    def write(self) -> None:
        """Only after `sync`.  When this fails the previous checkpoint is still true."""
        try:
            write_whole(self._disk, self._path, self.says.encode())
        except OSError as error:
            if error.errno not in NO_SPACE or not self._can_be_written_over():
                raise
            self._write_in_place()

    def _can_be_written_over(self) -> bool:
        return self._disk.exists(self._path) and self._disk.size_of(self._path) == FILE_BYTES

    def _write_in_place(self) -> None:
        """On a full disk, because nothing may be deleted before a checkpoint allows it.

        First the mark, which is true with the times of before as well; then the times.  Each stands in one sector, so
        whatever part of it lasts, the file is one of ours.
        """
        self._disk.delete(self._path + ".tmp")
        file = self._disk.open(self._path)
        try:
            data = self.says.encode(times_before=file.read(0, _TIMES.size))
            file.write(MARK_AT, data[MARK_AT:MARK_END])
            file.sync()
            file.write(0, data[: _TIMES.size])
            file.sync()
        finally:
            file.close()


class Checkpoints:
    """The checkpoint file of a store."""

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._path = os.path.join(root, "checkpoint")
        self.written = Checkpoint()
        self.end = 0
        """Log and queues are durable before this place, and a recovery would not begin before it."""
        self.is_foreign = False
        """Whether the original has run on the store since we did."""
        self.is_odd = False
        """Whether there is one without a mark that counts: the original's, or a damaged one."""
        self.index_end = 0
        """How far the key index is durable, in the log; whoever builds it says so."""
        self.index_ms = 0
        """The same in time, for the index files that are full."""

    def load(self) -> Checkpoint:
        data = self._disk.read_whole(self._path) or b""
        self.is_foreign = is_foreign(data)
        self.written = Checkpoint.decode(data)
        self.is_odd = bool(data) and self.written.mark is None
        self.index_ms = self.written.index_ms
        self.index_end = self.written.mark.index_end if self.written.mark is not None else 0
        return self.written

    def forget(self) -> None:
        """No checkpoint holds any more, until the next one is written."""
        self._disk.delete(self._path)
        self._disk.sync_dir(os.path.dirname(self._path))
        self.written = replace(self.written, log_ms=0, queues_ms=0, mark=None)

    def next(
        self, commit_log: CommitLog, queues: QueueIndex, end: int, last_record: int
    ) -> NextCheckpoint | None:
        """The next one, or None when it would say the same.

        The log is durable before `end`, and every entry of a record there must be in its file by now; which of the
        files are not synced yet is known to the queues.
        """
        mark = Mark(end, last_record, self.index_end)
        unsynced = queues.take_unsynced()
        if not unsynced and mark == self.written.mark:
            return None
        head = commit_log.head_at(mark.last_record) if mark.last_record >= 0 else None
        stored_ms = 0 if head is None else head.store_timestamp_ms
        before = self.written
        says = Checkpoint(
            log_ms=max(before.log_ms, stored_ms),
            queues_ms=max(before.queues_ms, stored_ms),
            index_ms=self.index_ms,
            master_flushed=before.master_flushed,
            confirmed=before.confirmed,
            mark=mark,
        )
        return NextCheckpoint(self._disk, self._path, unsynced, says)

    def reached(self, point: NextCheckpoint, queues: QueueIndex) -> None:
        """It was synced and written."""
        assert point.says.mark is not None
        queues.synced()
        self.written = point.says
        self.end = point.says.mark.end
