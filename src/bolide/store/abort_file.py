"""The file `abort`: while it is there, the last stop was not clean.  The original's, and understood by both."""

import logging
import os

from bolide.store.disk import Disk
from bolide.store.small_file import write_whole

log = logging.getLogger(__name__)


class AbortFile:
    def __init__(self, disk: Disk, root: str, pid: int) -> None:
        self._disk = disk
        self._root = root
        self._path = os.path.join(root, "abort")
        self._pid = pid

    @property
    def is_there(self) -> bool:
        return self._disk.exists(self._path)

    def write(self) -> None:
        """Say that somebody is running, and who."""
        try:
            if self.is_there:
                self._disk.size_of(self._path)  # which says when it is no file
            write_whole(self._disk, self._path, str(self._pid).encode())
        except OSError as error:
            log.warning("cannot write %s: %s", self._path, error.strerror or error)
            if not self.is_there:  # that it is there counts, and that takes no room
                self._disk.create(self._path, 0, reserve=False).close()
                self._disk.sync_dir(self._root)

    def delete(self) -> None:
        """The stop is clean."""
        self._disk.delete(self._path)
        self._disk.sync_dir(self._root)
