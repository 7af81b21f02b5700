"""Trash: the folders of deleted topics on their way out.

A topic may have thousands of files, and deleting them takes long.  So its folder is moved out of `consumequeue/` in
one step, to `deleted/NUMBER` in the store's root, where neither we nor the original look for topics.  From then on it
is gone, whole: power loss may bring it back, but never a part of it.

The rest may run on another thread, one at a time, as often as anybody likes: `settle` makes the deletions last, with
their places in the log (`deletions.py`), `clear_some` deletes a piece of a folder whose move does, for a topic may have
thousands.  What a stop leaves is deleted after the next start.  A topic can be made again at once; its first message
waits until its old folder cannot come back (`let_in`), or is refused where others would have to wait with it.
"""

import errno
import os
import threading

from bolide.model.errors import StoreUnavailable
from bolide.store.deletions import Deletions
from bolide.store.disk import NOT_NOW, Disk
from bolide.store.file_names import ordinal_of

NAMES_PER_PIECE = 64
"""Files and folders that are deleted in one go: each takes about a millisecond of a slow disk."""


class Trash:
    def __init__(self, disk: Disk, folder: str, queues_folder: str, deletions: Deletions) -> None:
        self._disk = disk
        self._folder = folder
        self._queues_folder = queues_folder
        self._deletions = deletions
        self._turn = threading.Lock()
        self._failure: OSError | None = None
        self._begun = 0  # the number of the last move
        self._moved = 0  # those up to this one have ended: a sync that begins now makes them last
        self._settled = 0  # moves up to this one last
        self._leaving: dict[str, int] = {}  # topics whose moves may not last yet
        self.is_attended = False
        """Whether somebody settles on a thread of its own, so that nobody else does."""

    def open(self) -> None:
        """See what earlier processes have left; the folder of the queues must be synced."""
        self._begun = self._moved = self._settled = max(self._numbers(), default=0)
        self._leaving.clear()

    @property
    def is_settled(self) -> bool:
        return self._settled == self._begun

    def take(self, topic: str, place: int, host: str | None = None) -> None:
        """Delete a topic whose newest message lies before this place in the log; its folder, if it has one, goes."""
        folder = os.path.join(self._queues_folder, topic)
        has_folder = self._disk.exists(folder)
        try:
            if has_folder:
                self._disk.make_dirs(self._folder)
        except OSError as error:  # nothing has happened yet
            raise StoreUnavailable(
                f"the topic {topic} cannot be deleted now: {self._folder} cannot be made: {error.strerror or error}"
            ) from error
        if self.is_settled:
            self._leaving.clear()
        self._deletions.note(topic, place, host)
        self._begun += 1
        self._leaving[topic] = self._begun
        try:
            if has_folder:
                self._move(folder, self._path(self._begun))
        finally:  # a sync on another thread meanwhile is none for this move; what fails may have happened
            self._moved = self._begun

    def is_leaving(self, topic: str) -> bool:
        """Whether power loss could bring the topic's old folder or messages back."""
        return self._leaving.get(topic, 0) > self._settled

    def let_in(self, topic: str) -> None:
        """Before a queue of the topic is made: its old folder cannot come back from then on."""
        if not self.is_leaving(topic):
            return
        if self.is_attended:
            raise StoreUnavailable(f"the topic {topic} is still being deleted")
        self.settle()

    def settle(self) -> None:
        """Make all deletions so far last: a small file and one sync for all of them.

        Where they lie in the log comes first: a folder that power loss brings back is known by that for a deleted one.
        A failure is final, unless it can be told that nothing has happened: whoever tried again would be told that
        all is well.
        """
        with self._turn:
            if self._failure is not None:
                raise self._failure
            moved = self._moved
            if moved == self._settled:
                return
            try:
                self._deletions.save()
                self._disk.sync_dir(self._queues_folder)
            except OSError as error:
                if error.errno not in NOT_NOW:
                    self._failure = error
                raise
            self._settled = moved

    def clear_some(self) -> bool:
        """Delete a piece of a folder for good; False when there is none whose move lasts."""
        number = next((number for number in self._numbers() if number <= self._settled), None)
        if number is None:
            return False
        self._disk.delete_part(self._path(number), NAMES_PER_PIECE)
        return True

    def _move(self, folder: str, target: str) -> None:
        try:
            self._disk.rename(folder, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            self._disk.delete_tree(folder)  # somebody has given the queues a disk of their own

    def _numbers(self) -> list[int]:
        numbers = map(ordinal_of, self._disk.list(self._folder))
        return sorted(number for number in numbers if number is not None)

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, str(number))
