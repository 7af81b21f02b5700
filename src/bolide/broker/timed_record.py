"""TimedRecord: what a record of the timer's queue says.

Whoever reads one here gets a sound one or none: a message that waits is stored again under a new checksum, which would
vouch for whatever has become of it meanwhile.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bolide.model.names import TIMER_TOPIC
from bolide.model.pairs import parse_properties
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES, GAP_SIZE
from bolide.store.store import MessageStore

_TOPIC = TIMER_TOPIC.encode()

READ_BYTES_PER_TURN = 512 * 1024
"""So much is read and summed up in one turn, and the record that goes beyond: few large ones take as long as many."""


class TimedRecord(NamedTuple):
    data: bytes
    queue_offset: int
    stored_ms: int
    properties: Mapping[str, str]


class TurnShare:
    """What one turn has looked at and read, when a few large records are as much as many small ones."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._count = self._size = 0

    def is_used_up(self, size: int) -> bool:
        """By one more, of which so many bytes were read; the next turn has a share of its own then."""
        self._count, self._size = self._count + 1, self._size + size
        if self._count < self._count_max and self._size < READ_BYTES_PER_TURN:
            return False
        self._count = self._size = 0
        return True


def share_of(entries: bytes) -> bytes:
    """Of these queue entries the first ones, at least one, whose records one turn may read."""
    size = 0
    for number, (_, record_size, _) in enumerate(ENTRY.iter_unpack(entries), 1):
        size += 0 if record_size == GAP_SIZE else record_size
        if size >= READ_BYTES_PER_TURN:
            return entries[: number * ENTRY_BYTES]
    return entries


def timed_record(store: MessageStore, log_offset: int, size: int) -> TimedRecord | None:
    """The record of this size at a place of the log; None when it is damaged, or not there."""
    data = store.log.read(log_offset, size)
    head = None if data is None else store.reader.inspect(data, log_offset)
    if data is None or head is None or head.size != size or head.topic != _TOPIC:
        return None
    text = data[head.properties_at : head.properties_at + head.properties_length]
    properties = parse_properties(text.decode("utf-8", "replace"))
    return TimedRecord(data, head.queue_offset, head.store_timestamp_ms, properties)
