"""TimedRecord: what a record of the timer's queue says.

Whoever reads one here gets a sound one or none: a message that waits is stored again under a new checksum, which would
vouch for whatever has become of it meanwhile.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bolide.model.names import TIMER_TOPIC
from bolide.model.pairs import parse_properties
from bolide.store.store import MessageStore

_TOPIC = TIMER_TOPIC.encode()


class TimedRecord(NamedTuple):
    data: bytes
    queue_offset: int
    stored_ms: int
    properties: Mapping[str, str]


def timed_record(store: MessageStore, log_offset: int, size: int) -> TimedRecord | None:
    """The record of this size at a place of the log; None when it is damaged, or not there."""
    data = store.log.read(log_offset, size)
    head = None if data is None else store.reader.inspect(data, log_offset)
    if data is None or head is None or head.size != size or head.topic != _TOPIC:
        return None
    text = data[head.properties_at : head.properties_at + head.properties_length]
    properties = parse_properties(text.decode("utf-8", "replace"))
    return TimedRecord(data, head.queue_offset, head.store_timestamp_ms, properties)
