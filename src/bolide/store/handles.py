"""Open queue files, at most so many, and which of them hold what is not durable yet.

Writing goes through here, so nothing that was written is forgotten when the next sync is due, whether its file is
still open then or not.  The sync itself (`Unsynced.run`) takes its own descriptors and may run on another thread.
"""

import contextlib
import os
from collections import OrderedDict
from collections.abc import Set

from bolide.store.disk import Disk, File
from bolide.store.file_names import name_of, place_of

HANDLES_MAX = 512
"""Queue files open at once; half of the descriptors that a process usually gets."""


class Unsynced:
    """Files and folders that were changed since the last one of these was taken."""

    def __init__(self, disk: Disk, files: Set[str], folders: Set[str]) -> None:
        self._disk = disk
        self.files = files
        self.folders = folders

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)

    def run(self) -> None:
        """Make all of it durable.

        What was deleted meanwhile needs that no more, but then the deletion must last: power loss would bring back a
        file of which nothing was synced.
        """
        folders = set(self.folders)
        for path in sorted(self.files):
            try:
                file = self._disk.open(path)
            except FileNotFoundError:
                folders.update(_folders_above(path))
                continue
            try:
                file.sync()
            finally:
                file.close()
        for folder in sorted(folders):
            with contextlib.suppress(FileNotFoundError):
                self._disk.sync_dir(folder)


class _PathsByTopic:
    """Paths of queue files, which can be forgotten topic by topic."""

    def __init__(self) -> None:
        self._topics: dict[str, set[str]] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._topics.get(_topic_folder(path), ())

    def add(self, path: str) -> None:
        folder = _topic_folder(path)
        paths = self._topics.get(folder)
        if paths is None:
            self._topics[folder] = {path}
        else:
            paths.add(path)

    def discard(self, path: str) -> None:
        self._topics.get(_topic_folder(path), set()).discard(path)

    def forget(self, folder: str) -> set[str]:
        """The paths in this topic's folder, which are no longer here."""
        return self._topics.pop(folder, set())

    def take_all(self) -> frozenset[str]:
        """All paths, which are no longer here."""
        topics, self._topics = self._topics, {}
        return frozenset().union(*topics.values())


class FileHandles:
    """Open files by path; the one not used for longest is closed first."""

    def __init__(self, disk: Disk, handles_max: int = HANDLES_MAX) -> None:
        self._disk = disk
        self._handles_max = handles_max
        self._open: OrderedDict[str, File] = OrderedDict()
        self._open_paths = _PathsByTopic()
        self._files = _PathsByTopic()  # not durable yet
        self._named = _PathsByTopic()  # written to by this process
        self._folders: set[str] = set()  # likewise: names in them were made or deleted
        self._taken: Unsynced | None = None

    def get(self, path: str, create_bytes: int = 0) -> File | None:
        """The file; made sparse with `create_bytes` when it is missing, else None."""
        file = self._open.get(path)
        if file is not None:
            self._open.move_to_end(path)
            return file
        try:
            file = self._disk.open(path)
        except FileNotFoundError:
            if not create_bytes:
                return None
            file = self._create(path, create_bytes)
        self._open[path] = file
        self._open_paths.add(path)
        if len(self._open) > self._handles_max:
            oldest, unused = self._open.popitem(last=False)
            self._open_paths.discard(oldest)
            unused.close()
        return file

    def write(self, path: str, at: int, data: bytes, create_bytes: int) -> None:
        """Write to the file, made sparse with `create_bytes` when it is missing."""
        file = self.get(path, create_bytes)
        assert file is not None
        self._files.add(path)  # first: a write that fails may have changed something
        if path not in self._named:
            self._note_name(path)
        file.write(at, data)

    def distrust(self, path: str) -> None:
        """Take the file, and the names in its folder, for changed: by a process that was killed before its sync."""
        self._files.add(path)
        self._note_name(path)

    def erase(self, path: str, at: int, *, again: bool = False) -> bool:
        """Everything of the file from `at` on becomes zero; tells whether it was not.  See `disk.File.erase`."""
        file = self.get(path)
        if file is None:
            return False
        erased = file.erase(at, again=again)
        if erased or again:
            self._files.add(path)
        return erased

    def delete(self, path: str) -> None:
        self._delete(path)
        self._folders.add(os.path.dirname(path))

    def delete_first(self, folder: str, kept: int) -> bool:
        """Delete a queue's first file if that lies before the byte `kept`, at which another file begins.

        Not before that one is durable: power loss would leave a queue that does not know its number.  The caller
        syncs the folder.
        """
        first = min(self._bases_in(folder), default=kept)
        if first >= kept or not self._is_durable(folder, name_of(kept)):
            return False
        self._delete(os.path.join(folder, name_of(first)))
        return True

    def delete_from(self, folder: str, place: int) -> bool:
        """Delete a queue's files that begin there or behind, from the last: what a crash leaves has no hole.

        Tells whether there were any.
        """
        bases = sorted((base for base in self._bases_in(folder) if base >= place), reverse=True)
        for base in bases:
            self.delete(os.path.join(folder, name_of(base)))
        return bool(bases)

    def forget_topic(self, folder: str) -> None:
        """A topic's folder is deleted or moved away: nothing in it is open, and nothing is left to be synced.

        Its folders may be found among those to sync; that they are gone is no error there.
        """
        for path in self._open_paths.forget(folder):
            self._open.pop(path).close()
        self._files.forget(folder)
        self._named.forget(folder)
        self._folders.add(os.path.dirname(folder))

    def take_unsynced(self) -> Unsynced:
        """What has to be synced now, together with what was taken before and never said to be `synced`."""
        files, folders = self._files.take_all(), frozenset(self._folders)
        if self._taken is not None:
            files |= self._taken.files
            folders |= self._taken.folders
        self._taken = Unsynced(self._disk, files, folders)
        self._folders = set()
        return self._taken

    def synced(self) -> None:
        """What was taken last is durable."""
        self._taken = None

    def _bases_in(self, folder: str) -> list[int]:
        bases = map(place_of, self._disk.list(folder))
        return [base for base in bases if base is not None]

    def _delete(self, path: str) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            file.close()
        self._open_paths.discard(path)
        self._files.discard(path)
        self._named.discard(path)
        self._disk.delete(path)

    def _is_durable(self, folder: str, name: str) -> bool:
        path = os.path.join(folder, name)
        if path in self._files or folder in self._folders:
            return False
        return self._taken is None or (path not in self._taken.files and folder not in self._taken.folders)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def _create(self, path: str, size: int) -> File:
        self._disk.make_dirs(os.path.dirname(path))
        file = self._disk.create(path, size, reserve=False)
        self._files.add(path)
        self._note_name(path)
        return file

    def _note_name(self, path: str) -> None:
        """The file's name may not be durable: it is new, or was made by a process that was killed before its sync.

        The queue's folder and the topic's may be as new as the file.
        """
        self._named.add(path)
        self._folders.update(_folders_above(path))


def _folders_above(path: str) -> tuple[str, str, str]:
    """The folder of a file's queue, of its topic, and of all queues."""
    folder = os.path.dirname(path)
    topic_folder = os.path.dirname(folder)
    return folder, topic_folder, os.path.dirname(topic_folder)


def _topic_folder(path: str) -> str:
    return path.rsplit(os.sep, 2)[0]
