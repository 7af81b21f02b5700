"""Deletions: which topics were deleted, and where the log ended then.

Deleting a topic takes its queues away and leaves its records in the log until they expire.  Whoever goes over the log
(a recovery, a search by key, the offline tools) passes over the records of such a topic before that place.  What lies
behind belongs to a topic of the same name that was made later.

They stand in the file `deletions` of the store's folder, a line each.  Once the log begins behind its place a line is
of no use; it goes at the next start, or when there is no room for another:

    bolide deletions 1
    4096 orders
    81920 payments
    crc32 3904c839

Apache RocketMQ does not look at the file, and brings such messages back when it makes queues again.  It may also cut
the log and write other messages to the places before these.  So once it has run on the store, the file counts no more.
A checkpoint that is damaged does not say that it has, and the deletions stay.
"""

import logging
import os
import zlib

from bolide.machines.bringers import Bringers
from bolide.model.errors import TableFull
from bolide.model.limits import DELETIONS_MAX
from bolide.store.disk import NO_SPACE, Disk
from bolide.store.file_names import number_of
from bolide.store.small_file import write_whole

log = logging.getLogger(__name__)

FILE = "deletions"

_HEAD = b"bolide deletions 1\n"
_SEAL = b"crc32 "


class Deletions:
    """Places in the log by topic.

    Noted by the thread that owns the store; `save` may run on another one, one at a time.
    """

    def __init__(self, disk: Disk, root: str) -> None:
        self._disk = disk
        self._path = os.path.join(root, FILE)
        self._places: dict[str, int] = {}
        self._lines: dict[str, bytes] = {}
        self._bringers = Bringers()  # of those that were noted since the start
        self._expired_to = 0
        self._saved: bytes | None = b""  # what the file holds; None when nobody knows

    def load(self, *, is_foreign: bool) -> None:
        """Take over what the file says, unless the original has run on the store since.  `fit` mends the file."""
        data = self._disk.read_whole(self._path)
        self._places, self._lines = {}, {}
        self._saved = data or b""
        places = decode_deletions(data) if data else {}
        if places is None:
            log.warning("%s is damaged: messages of deleted topics may come back", self._path)
        elif places and is_foreign:
            log.warning(
                "Apache RocketMQ has used this store, or the times of its checkpoint are damaged: messages of deleted"
                " topics may come back"
            )
        else:
            for topic, place in places.items():
                self._put(topic, place)

    def place_of(self, topic: str) -> int:
        """Records of the topic before this place in the log are deleted; 0 when none are."""
        return self._places.get(topic, 0)

    def covers(self, topic: bytes, log_offset: int) -> bool:
        """Whether a record is one of a deleted topic."""
        return bool(self._places) and log_offset < self._places.get(topic.decode("utf-8", "replace"), 0)

    def by_name(self) -> dict[bytes, int]:
        """For walks over the log, which know names as bytes."""
        return {topic.encode(): place for topic, place in self._places.items()}

    def make_room(self, topic: str, log_start: int, host: str | None = None) -> None:
        """Before a deletion: forget what lies before the beginning of the log, where that is needed.

        A host adds no more than stay free for others; None is the broker itself.
        """
        if self._has_room(topic, host):
            return
        if (
            log_start > self._expired_to
        ):  # or whoever is refused would have all of it looked through each time
            self._expire(log_start)
            if self._has_room(topic, host):
                return
        whose = "" if host is None else f", and {host} has its share of them"
        raise TableFull(
            f"{len(self._places)} deleted topics still have messages in the log, no more than {DELETIONS_MAX} are kept"
            f" in mind{whose}; delete this one when some have expired (fileReservedTime)"
        )

    def _has_room(self, topic: str, host: str | None) -> bool:
        if topic in self._places or host is None:
            return topic in self._places or len(self._places) < DELETIONS_MAX
        count = (DELETIONS_MAX, len(self._places))
        return self._bringers.may_bring(topic, host, 0, count=count, bytes_taken=(0, 0))

    def note(self, topic: str, place: int, host: str | None = None) -> None:
        """The topic is deleted, and the log ended at `place` then.  Lasts when it was saved."""
        if host is not None and topic not in self._places:
            self._bringers.brought(topic, host, 0)
        self._put(topic, max(place, self.place_of(topic)))

    def fit(self, log_start: int, log_end: int) -> None:
        """Bring the places in step with a log that has expired, or was cut: what is stored next is not deleted."""
        was_cut = any(place > log_end for place in self._places.values())
        for topic, place in list(self._places.items()):
            self._put(topic, min(place, log_end))
        self._expire(log_start)
        try:
            self.save()
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            log.warning("%s cannot be written: %s", self._path, error.strerror or error)
            if was_cut:  # better that old messages come back than that new ones are taken for them
                self._withdraw()

    def save(self) -> None:
        """Make durable what was noted before."""
        lines = list(self._lines.values())
        data = _sealed(_HEAD + b"".join(lines)) if lines else b""
        if data == self._saved:
            return
        self._saved = None
        if data:
            write_whole(self._disk, self._path, data)
        else:
            self._delete()
        self._saved = data

    def _put(self, topic: str, place: int) -> None:
        self._places[topic] = place
        self._lines[topic] = b"%d %s\n" % (place, topic.encode())

    def _expire(self, log_start: int) -> None:
        self._expired_to = log_start
        for topic in [topic for topic, place in self._places.items() if place <= log_start]:
            del self._places[topic], self._lines[topic]
            self._bringers.forget(topic)

    def _withdraw(self) -> None:
        """Without the file the next process passes over nothing.  Takes no room on the disk."""
        self._saved = None
        self._delete()

    def _delete(self) -> None:
        self._disk.delete(self._path)
        self._disk.sync_dir(os.path.dirname(self._path))


def decode_deletions(data: bytes) -> dict[str, int] | None:
    """Places by topic; None for what is no such file, or a damaged one."""
    text, seal, _ = data.rpartition(_SEAL)
    if not seal or not text.startswith(_HEAD) or _sealed(text) != data:
        return None
    places: dict[str, int] = {}
    for line in text.removeprefix(_HEAD).decode("utf-8", "replace").split("\n")[:-1]:
        number, _, topic = line.partition(" ")
        place = number_of(number)
        if place is None or not topic:
            return None
        places[topic] = place
    return places


def _sealed(text: bytes) -> bytes:
    return text + _SEAL + b"%08x\n" % zlib.crc32(text)
