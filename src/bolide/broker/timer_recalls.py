"""Recalls: which timed messages are not to be delivered, because somebody has taken them back.

A recall is a record of the timer's queue like any other and is filed in the slot of the message that it names, so a
slot knows its recalls when it begins.  It cannot where the timer is too far behind to file anything: then the queue
itself is looked through for recalls, before anything is delivered.
"""

import logging
from hashlib import blake2b
from itertools import islice

from bolide.broker.timed_record import TimedRecord, share_of, timed_record
from bolide.model.limits import TIMER_RECALLS_MAX
from bolide.model.message import Property
from bolide.model.names import TIMER_TOPIC
from bolide.model.steps import Steps
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE
from bolide.store.store import MessageStore

log = logging.getLogger(__name__)

LOOKED_AT_PER_TURN = 64


class Recalls:
    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._of_slot: set[bytes] = set()
        self._unfiled: set[bytes] = set()
        self._looked_to = 0  # of the queue's messages

    def has(self, topic: str, unique_key: str) -> bool:
        if not self._of_slot and not self._unfiled:  # as nearly always
            return False
        name = _short(topic, unique_key)
        return name in self._of_slot or name in self._unfiled

    def note(self, log_offset: int, size: int) -> None:
        """One of the slot that is in memory."""
        record = timed_record(self._store, log_offset, size)
        if record is None:
            log.error("the recall at %d has no effect: its record is damaged, or gone", log_offset)
            self._store.reader.damaged += 1
        else:
            _add(self._of_slot, record, log_offset)

    def begin_slot(self, queue_offset: int, *, can_file: bool) -> None:
        """Another slot is in memory; what is before this number in the queue is filed.

        A message that is written again on its way is filed behind its recall, where nothing can be filed now.
        """
        if not can_file:
            room = TIMER_RECALLS_MAX - len(self._unfiled)
            if len(self._of_slot) > room:
                log.error("%d recalls may have no effect: too many are known", len(self._of_slot) - room)
            self._unfiled.update(islice(self._of_slot, room))
        elif queue_offset >= self._looked_to:
            self._unfiled.clear()
        self._of_slot.clear()

    def knows(self, end: int) -> bool:
        """Whether the queue was looked through up to here."""
        return self._looked_to >= end

    def look_ahead(self, queue_offset: int, end: int) -> Steps[None]:
        """Go over messages of the queue that cannot be filed yet."""
        queue = self._store.queues.find(TIMER_TOPIC, 0)
        at = max(queue_offset, self._looked_to)
        while queue is not None and at < (last := min(end, int(queue.end))):
            entries = share_of(queue.read(at, min(LOOKED_AT_PER_TURN, last - at)))
            for place in range(0, len(entries), ENTRY_BYTES):
                log_offset, size, _ = ENTRY.unpack_from(entries, place)
                record = None if size == GAP_SIZE else timed_record(self._store, log_offset, size)
                if record is not None and Property.TIMER_DELETE_KEY in record.properties:
                    _add(self._unfiled, record, log_offset)
            at = at + len(entries) // ENTRY_BYTES if entries else int(queue.following(at))
            yield
        self._looked_to = end


def _add(known: set[bytes], record: TimedRecord, log_offset: int) -> None:
    if len(known) >= TIMER_RECALLS_MAX:
        log.error("the recall at %d has no effect: too many are of this time", log_offset)
        return
    topic = record.properties.get(Property.REAL_TOPIC, "")
    key = record.properties.get(Property.TIMER_DELETE_KEY, "")
    known.add(_short(topic, key.removeprefix(f"{topic}+")))


def _short(topic: str, key: str) -> bytes:
    """A message's name in few bytes, however long it is."""
    return blake2b(f"{topic} {key}".encode(), digest_size=16).digest()
