"""Disk: the only door to files.

The store is written against these protocols, so that a simulated disk can stand in for the real one (`disk_os.py`).
Every method is one step that power loss may fall before or behind; what takes several (`small_file.write_whole`,
`folders.make_folder`) is built from them.  Names made, renamed, linked or deleted in a folder are durable only after
`sync_dir` of that folder.  Everything raises `OSError` as the operating system does.
"""

import errno
from collections.abc import Sequence
from typing import Protocol

NOT_OF_THE_DISK = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors of a process or machine that is short of something.  A sync that meets one was not even begun: nothing is
lost, and it can be tried again."""

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""The disk is full, or the part of it that whoever runs this may use."""

NOT_NOW = (*NOT_OF_THE_DISK, *NO_SPACE)
"""The same, and those of a full disk, for small files that are written anew with every try."""


class File(Protocol):
    """An open file of fixed size."""

    path: str
    size: int

    def map(self, *, scattered: bool = False) -> memoryview:
        """The whole file as shared, writable memory; `scattered` when it is not used from front to back."""

    def read(self, at: int, count: int) -> bytes: ...

    def write(self, at: int, data: bytes | memoryview) -> None: ...

    def erase(self, at: int, *, again: bool = False) -> bool:
        """Everything from `at` on becomes zero; tells whether it was not.  Costs as much as was written there, not as
        much as the file is long; reserved blocks stay reserved.  With `again` zeros are written over zeros, too: they
        may be in memory only, and never go to the disk by themselves."""

    def reserve(self, at: int, count: int) -> None:
        """Allocate the blocks of a part of a sparse file now, so that writing it through the mapping can never meet a
        full disk.  What the part holds stays."""

    def sync(self) -> None:
        """Make what was written durable.  A failure is final: never sync again and then acknowledge."""

    def close(self) -> None: ...


class DiskLock(Protocol):
    def release(self) -> None: ...


class ReadingDisk(Protocol):
    """The part of a disk that looks and never changes anything: what the offline tools are written against."""

    def open_for_reading(self, path: str) -> File:
        """A file whose mapping and descriptor cannot be written to."""

    def size_of(self, path: str) -> int:
        """`StoreError` for what is no file."""

    def allocated_bytes(self, path: str) -> int:
        """What the file takes of the disk; less than its size when it is sparse."""

    def written(self, path: str) -> Sequence[tuple[int, int]]:
        """The parts of a file that were ever written, from and to; a sparse file of terabytes has few."""

    def tree_bytes(self, path: str) -> tuple[int, int]:
        """Size and allocated bytes of all files below a folder; links are not followed."""

    def modified_ms(self, path: str) -> int: ...

    def list(self, path: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def read_whole(self, path: str) -> bytes | None:
        """A small file's content; None when it does not exist, `StoreError` when it is none or a large one."""

    def is_locked(self, path: str) -> bool:
        """Whether somebody has exclusive use of the file; asking takes nothing."""


class Disk(Protocol):
    def create(self, path: str, size: int, *, reserve: bool) -> File:
        """A new file of full length, zero-filled.  With `reserve` its blocks are allocated now, so that writing
        through the mapping can never meet a full disk; without, the file is sparse."""

    def open(self, path: str) -> File:
        """`StoreError` for what is no file: nobody waits for a pipe, or reads a device to its end."""

    def size_of(self, path: str) -> int:
        """Likewise."""

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted; empty when there is no such folder."""

    def make_dirs(self, path: str) -> None:
        """A folder and those above it, where they are missing; for one that must last see `folders.make_folder`."""

    def exists(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int:
        """When the file was last written, in milliseconds since the epoch."""

    def rename(self, source: str, target: str) -> None:
        """Give a file or folder another name; a file that had that name is gone, and at no moment nobody has it."""

    def link(self, source: str, target: str) -> None:
        """A second name for a file; `FileExistsError` when it is taken."""

    def delete(self, path: str) -> None:
        """Remove a file; one that is missing is gone already."""

    def delete_tree(self, path: str) -> None: ...

    def delete_part(self, path: str, names_max: int) -> int:
        """Remove so many of the files and folders of a tree, and itself when it is empty; how many have gone.  It is
        gone whole when these are fewer.  Links are not followed."""

    def sync_dir(self, path: str) -> None: ...

    def read_whole(self, path: str) -> bytes | None:
        """A small file's content; None when it does not exist, `StoreError` when it is none or a large one."""

    def lock(self, path: str) -> DiskLock:
        """Exclusive use of a file, in this process too; `BlockingIOError` when somebody else has it."""

    def used_ratio(self, path: str) -> float:
        """How full the file system is, 0 to 1."""
