"""Small files that are written whole or not at all: the tables of `config/`, never messages.

The disk writes a temporary file, syncs it, renames it and keeps the previous one as `.bak`.  Reading prefers the
main file and falls back to `.bak`, because the original moves the main file away before it writes the new one and a
crash between the two leaves only the copy.
"""

import logging
import os
from collections.abc import Callable
from typing import Protocol, TypeVar

from bolide.model.errors import InvalidRequest, StoreError

log = logging.getLogger(__name__)

T = TypeVar("T")


class WholeFiles(Protocol):
    """The part of a `Disk` that small files need."""

    def make_dirs(self, path: str) -> None: ...

    def read_whole(self, path: str) -> bytes | None: ...

    def write_whole(self, path: str, data: bytes, *, keep_previous: bool = False) -> None: ...


class SmallFile:
    """One such file."""

    def __init__(self, disk: WholeFiles, path: str) -> None:
        self._disk = disk
        self.path = path

    def load(self, parse: Callable[[bytes], T]) -> T | None:
        """What the file holds, or its `.bak`; None when neither was ever written.

        `parse` raises `InvalidRequest` for bytes it cannot read.  When nothing readable is left but something
        unreadable is, a `StoreError` names both files: starting empty would throw away what a person may still save.
        """
        damage: list[str] = []
        for path in (self.path, self.path + ".bak"):
            data = self._disk.read_whole(path)
            if not data:  # missing, or created and never written
                continue
            try:
                value = parse(data)
            except InvalidRequest as error:
                damage.append(f"{path}: {error}")
                continue
            if damage:
                log.warning("using %s because the file it backs up is damaged: %s", path, damage[0])
            return value
        if damage:
            raise StoreError(f"no readable copy is left: {'; '.join(damage)}")
        return None

    def save(self, data: bytes) -> None:
        self._disk.make_dirs(os.path.dirname(self.path))
        self._disk.write_whole(self.path, data, keep_previous=True)
