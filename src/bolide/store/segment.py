"""One file of the commit log, and how the next one is made.

A segment takes records only when it is durable itself: reserved, with its length synced and its name in a synced
folder.  Otherwise power loss could take the file together with records that were synced into it.  All that keeps a
disk busy for milliseconds or, for a gigabyte, seconds; so the log hands out the next segment as work that another
thread does ahead of time.
"""

import contextlib
import os
import threading

from bolide.model.errors import StoreUnavailable
from bolide.store.disk import NOT_OF_THE_DISK, Disk, File
from bolide.store.file_names import name_of


class Segment:
    """One file of the log."""

    __slots__ = ("base", "file", "size", "view")

    def __init__(self, base: int, file: File) -> None:
        self.base = base
        self.file = file
        self.size = file.size
        self.view = file.map()

    def close(self) -> None:
        with contextlib.suppress(BufferError):  # somebody still reads: the mapping goes with the last view
            self.view.release()
        self.file.close()


class SegmentToMake:
    """A segment that is not in the log yet.

    `make` may be called by any thread and touches nothing but the file.  When two threads need it at once the second
    waits for the first, and both get the same segment.  What was made before a failure is not made twice.
    """

    def __init__(self, disk: Disk, folder: str, base: int, size: int) -> None:
        self._disk = disk
        self._folder = folder
        self._path = os.path.join(folder, name_of(base))
        self._base = base
        self._size = size
        self._turn = threading.Lock()
        self._file: File | None = None
        self._segment: Segment | None = None
        self._failure: OSError | None = None

    @property
    def is_made(self) -> bool:
        return self._segment is not None

    def make(self) -> Segment:
        """The segment, durable.  `StoreUnavailable` while that cannot be done, an `OSError` when a sync has failed,
        which is final."""
        with self._turn:
            if self._failure is not None:
                raise self._failure
            if self._segment is None:
                self._segment = self._make()
            return self._segment

    def _make(self) -> Segment:
        try:
            if self._file is None:
                self._file = self._disk.create(self._path, self._size, reserve=True)
        except OSError as error:
            raise self._not_now(error) from error
        try:
            self._file.sync()  # its length: only the last segment can ever be found half made
            self._disk.sync_dir(self._folder)
            return Segment(self._base, self._file)
        except OSError as error:
            if error.errno in NOT_OF_THE_DISK:
                raise self._not_now(error) from error
            self._failure = error  # a second try would succeed, in vain
            raise

    def _not_now(self, error: OSError) -> StoreUnavailable:
        why = error.strerror or error
        return StoreUnavailable(f"cannot make the next commit-log segment {self._path}: {why}")

    def close(self) -> None:
        if self._segment is not None:
            self._segment.close()
        elif self._file is not None:
            self._file.close()

    def discard(self) -> None:
        """Nobody needs it: the file goes.  If power loss brings it back, the next start deletes it."""
        self.close()
        if self._file is not None:
            self._disk.delete(self._path)
