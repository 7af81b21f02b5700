"""Small files that are written whole or not at all: the tables of `config/`, never messages.

Writing goes by a temporary file that is synced and then renamed; the previous one may stay as `.bak`.  Reading prefers
the main file and falls back to `.bak`, because the original moves the main file away before it writes the new one and a
crash between the two leaves only the copy.
"""

import logging
import os
from collections.abc import Callable
from typing import TypeVar

from bolide.model.errors import InvalidRequest, StoreError
from bolide.model.limits import SMALL_FILE_BYTES_MAX
from bolide.store.disk import Disk
from bolide.store.folders import make_folder

log = logging.getLogger(__name__)

T = TypeVar("T")

DAMAGED = ".damaged"


def write_whole(disk: Disk, path: str, data: bytes, *, keep_previous: bool = False) -> None:
    """The file with this content, durable when this returns; whoever reads it meets the old content or the new.

    With `keep_previous` the old content stays as `.bak`.  What is too large to be read again is not written.
    """
    if len(data) > SMALL_FILE_BYTES_MAX:
        raise StoreError(
            f"{path} stays as it is: it would have {len(data)} bytes, and more than {SMALL_FILE_BYTES_MAX} are not read"
        )
    temporary = path + ".tmp"
    disk.delete(temporary)  # left by a crash
    file = disk.create(temporary, len(data), reserve=False)
    try:
        file.write(0, data)
        file.sync()
    finally:
        file.close()
    if keep_previous and disk.exists(path):
        disk.delete(path + ".bak")
        disk.link(path, path + ".bak")  # the current name never disappears
    disk.rename(temporary, path)
    disk.sync_dir(os.path.dirname(path))


class SmallFile:
    """One such file."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def load(self, parse: Callable[[bytes], T]) -> T | None:
        """What the file holds, or its `.bak`; None when neither was ever written.

        `parse` raises `InvalidRequest` for bytes it cannot read.  When nothing readable is left but something
        unreadable is, a `StoreError` names both files: starting empty would throw away what a person may still save.
        """
        damage: list[str] = []
        for path in (self.path, self.path + ".bak"):
            try:
                data = self._disk.read_whole(path)
                if not data:  # missing, or created and never written
                    continue
                value = parse(data)
            except StoreError as error:  # too large, and it says which
                damage.append(str(error))
                continue
            except InvalidRequest as error:
                damage.append(f"{path}: {error}")
                continue
            if damage:
                log.warning("using %s because the file it backs up is damaged: %s", path, damage[0])
            return value
        if damage:
            raise StoreError(
                f"no readable copy is left: {'; '.join(damage)}; mend one of them, or move both away to start without"
            )
        return None

    def set_aside(self) -> None:
        """Begin without: what is there stays under another name, for whoever wants to know what it was."""
        for path in (self.path, self.path + ".bak"):
            if self._disk.exists(path):
                self._disk.rename(path, path + DAMAGED)
        self._disk.sync_dir(os.path.dirname(self.path))

    def save(self, data: bytes) -> None:
        make_folder(self._disk, os.path.dirname(self.path))
        write_whole(self._disk, self.path, data, keep_previous=True)
