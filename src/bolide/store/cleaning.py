"""StoreCleaning: the hands that delete.  What and when is decided by `retention.py` and the broker.

The order keeps the store true at every moment, whichever step a crash falls behind:

1. queues begin behind what is going to be deleted (`expire_queues`), so nobody is told of a message that is gone;
2. the oldest segment's file is deleted and its folder synced (`delete_file`), one file at a time: a log that lost a
   segment in the middle could not be opened;
3. the log forgets the segment (`forget`), and its memory and descriptor are given back (`let_go`);
4. queue files that hold nothing but expired entries are deleted (`trim_queues`), the last one of a queue never.

A start finds the first segment that is there and lets the queues begin in it; files that came back after a crash are
deleted by the next run.  `delete_file`, `let_go` and `sync_folder` may take long and run on the cleaning thread; they
touch nothing but what they are given.  Everything else belongs to the thread that owns the store.
"""

import contextlib
import os
from collections.abc import Iterator

from bolide.model.steps import Steps
from bolide.store.disk import Disk
from bolide.store.queue_index import ConsumeQueue
from bolide.store.retention import SegmentTimes
from bolide.store.segment import Segment
from bolide.store.store import MessageStore

SLICE_QUEUES = 16
"""Queues looked at in one go: about a millisecond, then others have their turn."""

SLICE_PASSED = 1024
"""Queues passed in one go, looked at or not: to see that one needs nothing takes about half a microsecond."""


class StoreCleaning:
    def __init__(self, disk: Disk, root: str, store: MessageStore) -> None:
        self._disk = disk
        self._store = store
        self.log_folder = os.path.join(root, "commitlog")
        self.queues_folder = os.path.join(root, "consumequeue")
        # Of each queue, no entry points before this place in the log: most queues need not be looked at again.
        self._firsts: dict[tuple[str, int], int] = {}

    # ---- what there is -------------------------------------------------------------------------------------

    def used_ratio(self) -> float:
        """How full the fuller one of the store's disks is."""
        return max(self._disk.used_ratio(self.log_folder), self._disk.used_ratio(self.queues_folder))

    def deletable(self) -> list[Segment]:
        """Segments that may go, the oldest first: not the newest, and none that a recovery would begin with.

        The queues must know their numbers before the records go that would tell them.
        """
        durable = self._store.checkpoints.end
        return [part for part in self._store.log.segments[:-1] if part.base + part.size <= durable]

    @property
    def waits_for_checkpoint(self) -> bool:
        """Whether the oldest segment could go if a checkpoint were written now."""
        first, *others = self._store.log.segments
        end = first.base + first.size
        return bool(others) and self._store.checkpoints.end < end <= self._store.durability.durable

    def times(self) -> Iterator[SegmentTimes]:
        """The ages of these segments, looked up one by one."""
        for segment in self.deletable():
            head = self._store.reader.head_at(segment.base + segment.size)  # the first message behind it
            yield SegmentTimes(
                None if head is None else head.store_timestamp_ms, self._modified_ms(segment.file.path)
            )

    def earliest_stored_ms(self) -> int | None:
        """When the oldest message of the log was stored."""
        head = self._store.reader.head_at(self._store.log.start)
        return None if head is None else head.store_timestamp_ms

    def _modified_ms(self, path: str) -> int | None:
        try:
            return self._disk.modified_ms(path)
        except OSError:
            return None

    # ---- the log -------------------------------------------------------------------------------------------

    def expire_queues(self, log_start: int) -> Steps[None]:
        """Let every queue begin at a record not before `log_start`, in slices."""
        known, self._firsts = self._firsts, {}
        looked_at = passed = 0
        for queue in list(self._store.queues):
            key = queue.tail.key
            first = known.get(key, -1)
            if first < log_start:
                first = _expire(queue, log_start)
                looked_at += 1
            self._firsts[key] = first
            passed += 1
            if looked_at == SLICE_QUEUES or passed == SLICE_PASSED:
                looked_at = passed = 0
                yield

    def delete_file(self, segment: Segment) -> None:
        """On the cleaning thread."""
        self._disk.delete(segment.file.path)
        self._disk.sync_dir(self.log_folder)

    def forget(self, segment: Segment) -> None:
        dropped = self._store.log.drop_first()
        assert dropped is segment, "segments go from the oldest on"

    def let_go(self, segment: Segment) -> None:
        """On the cleaning thread: only now the file system gives the space back, which takes time for a large file."""
        segment.close()

    # ---- the queues ----------------------------------------------------------------------------------------

    def trim_queues(self) -> Iterator[str | None]:
        """Delete expired queue files.  Yields a folder that has to be synced before the next step, or None when it is
        only time for others to have their turn."""
        looked_at = passed = 0
        for queue in list(self._store.queues):
            if queue.start > 0:
                while (folder := queue.delete_first_file()) is not None:
                    yield folder
                looked_at += 1
            passed += 1
            if looked_at == SLICE_QUEUES or passed == SLICE_PASSED:
                looked_at = passed = 0
                yield None

    def sync_folder(self, folder: str) -> None:
        """On the cleaning thread.  A folder that is gone belonged to a topic that was deleted meanwhile."""
        with contextlib.suppress(FileNotFoundError):
            self._disk.sync_dir(folder)

    def topics(self) -> list[str]:
        """Topics that have queues."""
        return self._store.queues.topics()

    def has_messages(self, topic: str) -> bool:
        """Whether messages of it are left."""
        return any(queue.end > queue.start for queue in self._store.queues.of_topic(topic))


def _expire(queue: ConsumeQueue, log_start: int) -> int:
    """Returns a place of the log that no entry of the queue points before."""
    entry = queue.entry(queue.start)
    if entry is not None and entry[0] < log_start:
        queue.expire(log_start)
        entry = queue.entry(queue.start)
    if entry is not None:
        return entry[0]
    return log_start if queue.start == queue.end else -1  # a missing file says nothing
