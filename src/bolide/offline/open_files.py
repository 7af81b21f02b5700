"""Files of a store opened for reading, some at a time; tells whether what was looked at could really be read."""

from collections import OrderedDict
from collections.abc import Sequence

from bolide.model.errors import StoreError
from bolide.offline.faults import forget, lost_pages, watch
from bolide.store.disk import File, ReadingDisk

OPEN_FILES_MAX = 128

_ZEROS = bytes(64 * 1024)
_JUDGED_BYTES = 1024 * 1024


class _OpenFile:
    """A mapped file, and whether it could be read where it was."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.view = file.map() if file.size else memoryview(b"")
        self._watched = watch(self.view)
        self._judged = 0

    def check(self) -> None:
        """Zeros that stand for pages are right where the file has none itself; else raise what is wrong with it."""
        while lost_pages(self._watched) != self._judged:
            self._judged = lost_pages(self._watched)
            for low in range(0, self._file.size, _JUDGED_BYTES):
                seen = bytes(self.view[low : low + _JUDGED_BYTES])
                try:
                    found = self._file.read(low, len(seen))
                except OSError as error:
                    raise OSError(error.errno, error.strerror, self._file.path) from error
                if len(found) < len(seen):
                    raise StoreError(f"{self._file.path} was cut short while it was read")
                if found != seen:
                    raise StoreError(
                        f"{self._file.path} could not be read at {low}, or was changed meanwhile"
                    )

    def close(self) -> None:
        forget(self._watched)
        # Somebody may hold the other one for a moment longer; then the mapping goes with them.
        self.view = memoryview(b"")
        self._file.close()


class OpenFiles:
    """Files opened for reading, at most so many; the one not used for longest is closed first."""

    def __init__(self, disk: ReadingDisk) -> None:
        self._disk = disk
        self._open: OrderedDict[str, _OpenFile] = OrderedDict()

    def view(self, path: str) -> memoryview:
        """The file's bytes, not to be held for long.  An empty file has none."""
        known = self._open.get(path)
        if known is not None:
            self._open.move_to_end(path)
            return known.view
        self._open[path] = opened = _OpenFile(self._disk.open_for_reading(path))
        if len(self._open) > OPEN_FILES_MAX:
            oldest = self._open.popitem(last=False)[1]
            try:
                oldest.check()
            finally:
                oldest.close()
        return opened.view

    def written(self, path: str) -> Sequence[tuple[int, int]]:
        """The parts of the file that were ever written."""
        return self._disk.written(path)

    def used_bytes(self, path: str) -> int:
        """Where the zeros at the end of the file begin."""
        view = self.view(path)
        for first, last in reversed(self.written(path)):
            used = used_bytes(view[first : min(last, len(view))])
            if used:
                return first + used
        return 0

    def check(self) -> None:
        """Raises when a part of what was read could not be, before anybody believes it."""
        for opened in self._open.values():
            opened.check()

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def used_bytes(view: memoryview) -> int:
    """Where the zeros at the end of a file begin."""
    end = len(view)
    while end > 0:
        start = max(0, end - len(_ZEROS))
        block = bytes(view[start:end])
        if block != _ZEROS[: end - start]:
            return start + len(block.rstrip(b"\0"))
        end = start
    return 0
