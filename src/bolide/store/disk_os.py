"""The real disk."""

import contextlib
import errno
import fcntl
import mmap
import os
import shutil
import stat
import struct
from collections.abc import Iterator, Sequence
from itertools import islice

from bolide.model.errors import StoreError
from bolide.model.limits import SMALL_FILE_BYTES_MAX
from bolide.store.disk import DiskLock, File

_PIECE_BYTES = 1 << 20
_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
"""Messages are nobody else's business.  What was there before keeps its mode, and the umask may take more away."""

_FLOCK = struct.Struct("hhqqi4x")
"""Type, from where, start, length, process: the kernel's struct flock."""

_BLOCK_BYTES = 512  # stat counts in these, whatever the file system's blocks are
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class OsFile:
    """See `disk.File`."""

    def __init__(self, path: str, descriptor: int, size: int, *, writable: bool = True) -> None:
        self.path = path
        self.size = size
        self._descriptor = descriptor
        self._access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._map: mmap.mmap | None = None

    def map(self, *, scattered: bool = False) -> memoryview:
        if self._map is None:
            self._map = mmap.mmap(self._descriptor, self.size, access=self._access)
            if scattered:  # pages stay by how often they are used, and one that is missing is read alone
                self._map.madvise(mmap.MADV_RANDOM)
                return memoryview(self._map)
            # Written and mostly read from front to back.  Saying so makes the kernel take pages in large pieces,
            # which costs a quarter of the time per byte written.
            self._map.madvise(mmap.MADV_SEQUENTIAL)
        return memoryview(self._map)

    def read(self, at: int, count: int) -> bytes:
        return os.pread(self._descriptor, count, at)

    def write(self, at: int, data: bytes | memoryview) -> None:
        left = len(data)
        while left > (written := os.pwrite(self._descriptor, data, at)):
            data = data[written:]
            left -= written
            at += written

    def erase(self, at: int, *, again: bool = False) -> bool:
        erased = False
        # The list first: reading brings more pages into memory, and the kernel counts those as written.
        for first, last in list(_written(self._descriptor, at, self.size)):
            for piece in range(first, last, _PIECE_BYTES):
                zeros = bytes(min(_PIECE_BYTES, last - piece))
                is_blank = os.pread(self._descriptor, len(zeros), piece) == zeros
                if again or not is_blank:
                    self.write(piece, zeros)
                    erased |= not is_blank
        return erased

    def reserve(self, at: int, count: int) -> None:
        _check_room(self._descriptor, count)
        os.posix_fallocate(self._descriptor, at, count)

    def sync(self) -> None:
        # Not mmap.flush: that holds the interpreter lock for as long as the disk takes.
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        if self._map is not None:
            # A reader may still hold a view; then the mapping goes with the last one.
            with contextlib.suppress(BufferError):
                self._map.close()
            self._map = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open(path: str, flags: int) -> tuple[int, int]:
    """Descriptor and size of a file.

    Only of a file: a pipe lets its reader wait, a device has no end, and opening one may already do something.  A link
    to a file is as good as the file: people move segments to other disks.
    """
    with contextlib.suppress(FileNotFoundError):
        _size_of_file(path, os.stat(path))
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, _FILE_MODE)
    try:
        return descriptor, _size_of_file(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise


def _size_of_file(path: str, status: os.stat_result) -> int:
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
    raise StoreError(f"{path} is {kind} where a file should be: move it away")


def _written(descriptor: int, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Parts of a file that were ever written; where the file system cannot tell, all of it."""
    while at < end:
        try:
            first = os.lseek(descriptor, at, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # there is no more
                raise
            return
        at = min(end, os.lseek(descriptor, first, os.SEEK_HOLE))
        yield first, at


class OsLock:
    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        os.close(self._descriptor)


class OsDisk:
    """See `disk.Disk`."""

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        try:
            if reserve:
                _check_room(descriptor, size)
                os.posix_fallocate(descriptor, 0, size)
            else:
                os.ftruncate(descriptor, size)
        except OSError:
            os.close(descriptor)
            os.unlink(path)
            raise
        return OsFile(path, descriptor, size)

    def open(self, path: str) -> File:
        return OsFile(path, *_open(path, os.O_RDWR))

    def open_for_reading(self, path: str) -> File:
        return OsFile(path, *_open(path, os.O_RDONLY), writable=False)

    def size_of(self, path: str) -> int:
        return _size_of_file(path, os.stat(path))

    def allocated_bytes(self, path: str) -> int:
        return os.stat(path).st_blocks * _BLOCK_BYTES

    def written(self, path: str) -> Sequence[tuple[int, int]]:
        descriptor, size = _open(path, os.O_RDONLY)
        try:
            return list(_written(descriptor, 0, size))
        finally:
            os.close(descriptor)

    def tree_bytes(self, path: str) -> tuple[int, int]:
        size_bytes = allocated_bytes = 0
        folders = [path]
        while folders:
            with contextlib.suppress(FileNotFoundError, PermissionError), os.scandir(folders.pop()) as found:
                for entry in found:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                        continue
                    status = entry.stat(follow_symlinks=False)
                    size_bytes += status.st_size
                    allocated_bytes += status.st_blocks * _BLOCK_BYTES
        return size_bytes, allocated_bytes

    def list(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def make_dirs(self, path: str) -> None:
        path = os.path.abspath(path)
        if os.path.isdir(path):
            return
        self.make_dirs(os.path.dirname(path))
        try:
            os.mkdir(path, _FOLDER_MODE)
        except FileExistsError:
            if not os.path.isdir(path):  # else somebody was faster
                raise

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def link(self, source: str, target: str) -> None:
        os.link(source, target)

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def delete_tree(self, path: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            self.delete(path)

    def delete_part(self, path: str, names_max: int) -> int:
        if not os.path.isdir(path) or os.path.islink(path):
            self.delete(path)
            return 1
        with os.scandir(path) as entries:
            names = [entry.path for entry in islice(entries, names_max)]
        gone = 0
        for name in names:
            gone += self.delete_part(name, names_max - gone)
            if gone == names_max:
                return gone
        os.rmdir(path)
        return gone + 1

    def sync_dir(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read_whole(self, path: str) -> bytes | None:
        try:
            file = self.open_for_reading(path)
        except FileNotFoundError:
            return None
        try:
            if file.size > SMALL_FILE_BYTES_MAX:
                raise StoreError(
                    f"{path} has {file.size} bytes, and what belongs there has at most {SMALL_FILE_BYTES_MAX}:"
                    " move it away"
                )
            return file.read(0, file.size)
        finally:
            file.close()

    def lock(self, path: str) -> DiskLock:
        descriptor, _ = _open(path, os.O_RDWR | os.O_CREAT)
        try:
            # A lock of the open file, not of the process: it also keeps out a second store of this process,
            # and closing another descriptor does not break it.  It excludes the original's lock as well.
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
            os.pwrite(descriptor, b"lock", 0)
        except OSError:
            os.close(descriptor)
            raise
        return OsLock(descriptor)

    def is_locked(self, path: str) -> bool:
        try:
            descriptor, _ = _open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            wanted = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            kind, *_ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, wanted))
            return bool(kind != fcntl.F_UNLCK)
        finally:
            os.close(descriptor)

    def used_ratio(self, path: str) -> float:
        status = os.statvfs(path)
        used = status.f_blocks - status.f_bfree
        usable = used + status.f_bavail  # without what is kept for root, as df and the original count
        return used / usable if usable else 0.0


def room_at(place: str | int) -> int | None:
    """How many bytes can still be written there; None where the file system does not tell."""
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize if status.f_blocks else None


def _check_room(descriptor: int, size: int) -> None:
    """Refuse what cannot fit before trying: a failing reservation takes all that is left, if only for a moment, and
    whoever writes a small file in that moment fails too."""
    room = room_at(descriptor)
    if room is not None and room < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
