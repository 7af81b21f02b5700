"""Which part of the log is durable.

The watermark moves only after a successful sync of everything before it.  The store decides what to sync; the
broker decides on which thread the sync runs and who waits for it.  A failed sync is final: the kernel may have
marked the pages clean, so this object refuses to move ever again.
"""

from collections.abc import Callable

from bolide.model.errors import StoreError
from bolide.model.offsets import LogOffset
from bolide.store.disk import File
from bolide.store.log import CommitLog

PAGE_BYTES = 4096


class FlushPoint:
    """One sync to do: these files, and how far the log is durable when all have succeeded."""

    __slots__ = ("end", "files", "last_record")

    def __init__(self, files: list[File], end: LogOffset, last_record: int) -> None:
        self.files = files
        self.end = end
        self.last_record = last_record

    def run(self) -> None:
        """Called on the sync thread; touches nothing but the files."""
        for file in self.files:
            file.sync()


class Durability:
    """The watermark.  `durable` is always the end of a record, which begins at `last_record` (-1: not known)."""

    def __init__(
        self,
        commit_log: CommitLog,
        durable: LogOffset,
        last_record: int,
        note_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._log = commit_log
        self._note_failure = note_failure
        self.durable = durable
        self.last_record = last_record
        self.failure: OSError | None = None

    @property
    def dirty_pages(self) -> int:
        return (self._log.end - self.durable + PAGE_BYTES - 1) // PAGE_BYTES

    def next_point(self) -> FlushPoint | None:
        """What to sync now, or None when all is durable."""
        if self.failure is not None:
            raise StoreError(f"a sync has failed before: {self.failure}")
        end = self._log.end
        if end == self.durable:
            return None
        files = [
            segment.file
            for segment in self._log.segments
            if segment.base < end and segment.base + segment.size > self.durable
        ]
        return FlushPoint(files, end, self._log.last_record)

    def reached(self, point: FlushPoint) -> None:
        assert self.failure is None
        if point.end > self.durable:
            self.durable = point.end
            self.last_record = point.last_record

    def failed(self, error: OSError) -> None:
        self.failure = error
        self._note_failure()
