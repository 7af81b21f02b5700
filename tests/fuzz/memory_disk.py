"""A disk of some bytes: enough for whatever reads one small file, and writes it again."""

from collections.abc import Mapping
from typing import Any

from bolide.store.disk import File


class MemoryDisk:
    """Files by path.  What nobody needs here is not there, and would say so."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def read_whole(self, path: str) -> bytes | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def delete(self, path: str) -> None:
        self.files.pop(path, None)

    def sync_dir(self, path: str) -> None:
        """There is nothing to lose."""

    def rename(self, source: str, target: str) -> None:
        self.files[target] = self.files.pop(source)

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        return _MemoryFile(self, path, size)

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"a disk in memory has no {name}")


class _MemoryFile:
    def __init__(self, disk: MemoryDisk, path: str, size: int) -> None:
        self._disk = disk
        self.path = path
        self.size = size
        disk.files[path] = bytes(size)

    def write(self, at: int, data: bytes | memoryview) -> None:
        before = self._disk.files[self.path]
        self._disk.files[self.path] = before[:at] + bytes(data) + before[at + len(data) :]

    def sync(self) -> None:
        """There is nothing to lose."""

    def close(self) -> None:
        """Nor to give back."""

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(f"a file in memory has no {name}")
