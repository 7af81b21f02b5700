"""A note to the next process that a sync has failed.

A failed sync leaves pages that never reached the disk and that the kernel takes for clean.  As long as the machine
stays up they can be read, so a recovery finds their records and a sync of them succeeds, in vain: power loss would
still take them.  Whoever finds this note writes what it recovers once more, and zeros behind it, which makes such pages
dirty again.

The note is a name in the store's folder and need not be durable: power loss takes the pages too.
"""

import contextlib
import os

from bolide.store.disk import Disk

NAME = "sync-failed"


class FailedSync:
    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._path = os.path.join(root, NAME)

    @property
    def is_noted(self) -> bool:
        return self._disk.exists(self._path)

    def note(self) -> None:
        """On a disk that fails this may fail as well, and there is nothing more to be done."""
        with contextlib.suppress(OSError):
            self._disk.create(self._path, 0, reserve=False).close()

    def clear(self) -> None:
        self._disk.delete(self._path)
