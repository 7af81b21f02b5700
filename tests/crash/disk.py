"""SimDisk: a `Disk` in memory that can lose power.

Every step that changes something is announced to `on_step` before it happens; an `OSError` raised there makes the
step fail as it would on a bad disk, anything else passes through.  `after_power_loss` gives the disk that the next
start finds (see `image.py`); the old one stays as it was, so many states can be drawn from one moment.
"""

import copy
import errno
import os
import random
from collections.abc import Callable, Iterator
from functools import lru_cache

from bolide.store.disk import DiskLock, File
from tests.crash.image import PAGE_BYTES, FileNode, FolderNode, Node, zeros

KEEPS = (0.0, 0.1, 0.5, 0.9, 1.0)
"""How likely a page or a name reaches the medium by itself: one of these per power loss."""


class SimFile:
    """See `disk.File`."""

    def __init__(self, path: str, node: FileNode, disk: "SimDisk") -> None:
        self.path = path
        self.size = node.size
        self._node: FileNode | None = node
        self._disk = disk

    def map(self, *, scattered: bool = False) -> memoryview:
        if self.size == 0:
            raise ValueError("cannot map an empty file")
        self._opened.modified_ms = self._disk.now_ms
        return memoryview(self._opened.data)

    def read(self, at: int, count: int) -> bytes:
        return self._opened.read(at, count)

    def write(self, at: int, data: bytes | memoryview) -> None:
        node = self._opened
        assert at + len(data) <= node.size, "files have a fixed size"
        try:
            self._disk.on_step("write", self.path)
        except OSError:
            node.data[at : at + len(data) // 2] = data[: len(data) // 2]
            raise
        node.write(at, data)
        node.modified_ms = self._disk.now_ms

    def erase(self, at: int, *, again: bool = False) -> bool:
        zeros = bytes(self.size - at)
        is_blank = self.read(at, len(zeros)) == zeros
        if again or not is_blank:
            self.write(at, zeros)
        return not is_blank

    def reserve(self, at: int, count: int) -> None:
        assert at + count <= self._opened.size, "files have a fixed size"
        self._disk.on_step("reserve", self.path)

    def sync(self) -> None:
        node = self._opened
        try:
            self._disk.on_step("sync", self.path)
        except OSError:
            node.fail_to_sync()
            raise
        node.sync()

    def close(self) -> None:
        self._node = None

    @property
    def _opened(self) -> FileNode:
        if self._node is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self.path)
        return self._node


class SimLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path
        held.add(path)

    def release(self) -> None:
        self._held.discard(self._path)


class SimDisk:
    """See `disk.Disk`."""

    def __init__(self, root: FolderNode | None = None) -> None:
        self.on_step: Callable[[str, str], None] = _let_pass
        self.now_ms = 0
        self.used = 0.1
        self._root = root or FolderNode()
        self._locks: set[str] = set()

    # ---- what happens to disks -----------------------------------------------------------------------------

    def after_power_loss(self, rng: random.Random) -> "SimDisk":
        disk = SimDisk(self._root.after_power_loss(rng, rng.choice(KEEPS), {}))
        disk.now_ms = self.now_ms
        return disk

    def as_a_kill_leaves_it(self) -> "SimDisk":
        """Another disk that holds what programs see now: all that was written, synced or not."""
        disk = SimDisk()
        disk.now_ms = self.now_ms
        for path, node in _walk("", self._root):
            if isinstance(node, FileNode):
                folder, name = os.path.split(path)
                disk.make_dirs(folder)
                disk._place(path)[0].change(((name, FileNode(node.content, node.modified_ms)),))
        return disk

    def after_kill(self) -> None:
        """The process that used the disk is gone; the kernel and its pages are not."""
        self._locks.clear()

    def left_by_a_kill(self) -> "SimDisk":
        """What the next process finds when this one is killed now, and is not there to notice."""
        disk = SimDisk(copy.deepcopy(self._root))
        disk.now_ms = self.now_ms
        return disk

    def mark(self) -> None:
        """Whatever is written from here to the next mark may be met half done."""
        for _, node in _walk("", self._root):
            if isinstance(node, FileNode):
                node.mark()

    def write_back(self, rng: random.Random) -> None:
        keep = rng.choice(KEEPS)
        for _, node in _walk("", self._root):
            if isinstance(node, FileNode):
                node.write_back(rng, keep)
            elif rng.random() < keep:
                node.write_back(rng)

    def files(self) -> dict[str, bytes]:
        """Path to content, as programs see it."""
        return {path: node.content for path, node in _walk("", self._root) if isinstance(node, FileNode)}

    # ---- Disk ----------------------------------------------------------------------------------------------

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        folder, name = self._place(path)
        if name in folder.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self.on_step("create", path)
        # Reserving blocks makes a file grow in several steps; without, its length changes in one.
        lengths = range(0, size, PAGE_BYTES) if reserve else range(1)
        node = FileNode(zeros(size), self.now_ms, lengths)
        folder.change(((name, node),))
        return SimFile(path, node, self)

    def open(self, path: str) -> File:
        return SimFile(path, self._file(path), self)

    def size_of(self, path: str) -> int:
        return self._file(path).size

    def list(self, path: str) -> list[str]:
        node = self._find(path)
        return sorted(node.names) if isinstance(node, FolderNode) else []

    def make_dirs(self, path: str) -> None:
        node: Node = self._root
        for name in _parts(path):
            if not isinstance(node, FolderNode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            if name not in node.names:
                self.on_step("make_dir", path)
                node.change(((name, FolderNode()),))
            node = node.names[name]

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def modified_ms(self, path: str) -> int:
        return self._file(path).modified_ms

    def rename(self, source: str, target: str) -> None:
        node = self._find(source)
        if node is None:
            raise _missing(source)
        folder, name = self._place(source)
        other, new_name = self._place(target)
        self.on_step("rename", target)
        if folder is other:
            folder.change(((name, None), (new_name, node)))
        else:
            other.change(((new_name, node),))
            folder.change(((name, None),))

    def link(self, source: str, target: str) -> None:
        node = self._file(source)
        folder, name = self._place(target)
        if name in folder.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self.on_step("link", target)
        folder.change(((name, node),))

    def delete(self, path: str) -> None:
        if self._find(path) is None:
            return
        folder, name = self._place(path)
        self.on_step("delete", path)
        folder.change(((name, None),))

    def delete_tree(self, path: str) -> None:
        node = self._find(path)
        for name in list(node.names) if isinstance(node, FolderNode) else []:
            self.delete_tree(os.path.join(path, name))
        self.delete(path)

    def delete_part(self, path: str, names_max: int) -> int:
        node = self._find(path)
        gone = 0
        for name in list(node.names) if isinstance(node, FolderNode) else []:
            gone += self.delete_part(os.path.join(path, name), names_max - gone)
            if gone == names_max:
                return gone
        self.delete(path)
        return gone + 1

    def sync_dir(self, path: str) -> None:
        folder = self._find(path)
        if not isinstance(folder, FolderNode):
            raise _missing(path)
        self.on_step("sync_dir", path)  # when that fails, the journal still holds the changes
        folder.sync()

    def read_whole(self, path: str) -> bytes | None:
        node = self._find(path)
        return node.content if isinstance(node, FileNode) else None

    def lock(self, path: str) -> DiskLock:
        if path in self._locks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        if self._find(path) is None:
            self.create(path, 4, reserve=False)
        return SimLock(self._locks, path)

    def used_ratio(self, path: str) -> float:
        return self.used

    # ---- finding -------------------------------------------------------------------------------------------

    def _find(self, path: str) -> Node | None:
        node: Node | None = self._root
        for name in _parts(path):
            node = node.names.get(name) if isinstance(node, FolderNode) else None
        return node

    def _file(self, path: str) -> FileNode:
        node = self._find(path)
        if not isinstance(node, FileNode):
            raise _missing(path)
        return node

    def _place(self, path: str) -> tuple[FolderNode, str]:
        """The folder that holds a name, and the name."""
        parent, name = os.path.split(path)
        folder = self._find(parent)
        if not isinstance(folder, FolderNode):
            raise _missing(parent)
        return folder, name


def _let_pass(kind: str, path: str) -> None:
    pass


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


@lru_cache(10_000)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _walk(path: str, node: Node) -> Iterator[tuple[str, Node]]:
    """Everything below and including a node, in a fixed order."""
    yield path, node
    if isinstance(node, FolderNode):
        for name in sorted(node.names):
            yield from _walk(f"{path}/{name}", node.names[name])
