"""Disk: the only door to files.

The store is written against these two protocols, so that a simulated disk can stand in for the real one
(`disk_os.py`).  Everything raises `OSError` as the operating system does.
"""

from typing import Protocol


class File(Protocol):
    """An open file of fixed size."""

    path: str
    size: int

    def map(self) -> memoryview:
        """The whole file as shared, writable memory."""

    def read(self, at: int, count: int) -> bytes: ...

    def write(self, at: int, data: bytes) -> None: ...

    def sync(self) -> None:
        """Make what was written durable.  A failure is final: never sync again and then acknowledge."""

    def close(self) -> None: ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class Disk(Protocol):
    def create(self, path: str, size: int, *, reserve: bool) -> File:
        """A new file of full length, zero-filled.  With `reserve` its blocks are allocated now, so that writing
        through the mapping can never meet a full disk; without, the file is sparse."""

    def open(self, path: str) -> File: ...

    def size_of(self, path: str) -> int: ...

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty when there is no such folder."""

    def make_dirs(self, path: str) -> None: ...

    def exists(self, path: str) -> bool: ...

    def delete(self, path: str) -> None: ...

    def delete_tree(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def read_whole(self, path: str) -> bytes | None:
        """A small file's content; None when it does not exist."""

    def write_whole(self, path: str, data: bytes, *, keep_previous: bool = False) -> None:
        """A small file, entirely or not at all; the previous content stays as `.bak` when asked."""

    def lock(self, path: str) -> DiskLock:
        """Exclusive use of a file, in this process too; `BlockingIOError` when somebody else has it."""

    def used_ratio(self, path: str) -> float:
        """How full the file system is, 0 to 1."""
