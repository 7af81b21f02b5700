"""Small files that are written whole or not at all: the tables of `config/`, never messages.

The disk writes a temporary file, syncs it, renames it and keeps the previous one as `.bak`.  Reading prefers the
main file and falls back to `.bak`, because the original moves the main file away before it writes the new one and a
crash between the two leaves only the copy.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from bolide.model.errors import InvalidRequest, StoreError

log = logging.getLogger(__name__)

T = TypeVar("T")


class WholeFiles(Protocol):
    """The part of a disk that small files need."""

    def read_whole(self, path: Path, /) -> bytes | None:
        """The file's bytes; None when there is no such file."""

    def write_whole(self, path: Path, data: bytes, /) -> None:
        """Replace the file; after a crash it holds either the old bytes or the new ones."""


class SmallFile:
    """One such file."""

    def __init__(self, disk: WholeFiles, path: Path) -> None:
        self._disk = disk
        self.path = path

    def load(self, parse: Callable[[bytes], T]) -> T | None:
        """What the file holds, or its `.bak`; None when neither was ever written.

        `parse` raises `InvalidRequest` for bytes it cannot read.  When nothing readable is left but something
        unreadable is, a `StoreError` names both files: starting empty would throw away what a person may still save.
        """
        damage: list[str] = []
        for path in (self.path, self.path.with_name(self.path.name + ".bak")):
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
        self._disk.write_whole(self.path, data)
