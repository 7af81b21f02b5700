"""NewMessage: what the general path appends, its record and its queue entry; and where it is then.

Runs of plain sends become records without an object in between (`_append.pyx`).
"""

import re
from typing import NamedTuple

from bolide.model.delay_levels import DelayLevels
from bolide.model.message import Property
from bolide.model.numbers import is_int64
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.pairs import parse_properties, with_pairs
from bolide.record.codec import encode_record
from bolide.record.layout import OpenRecord, open_record, record_size
from bolide.store.entry_rules import entry_code, has_entry

# The checksum of a record is of that record alone.
_SEAL_NAME = Property.RECORD_CHECKSUM.encode()
_SEAL = re.compile(_SEAL_NAME + rb"\x01[^\x02]*\x02$")


class NewMessage(NamedTuple):
    """Everything is decided but its place."""

    topic: str
    queue_id: int
    body: bytes
    properties: bytes
    flag: int
    sys_flag: int
    born_timestamp_ms: int
    born_host: bytes
    reconsume_times: int = 0
    prepared_offset: int = 0
    tags_code: int | None = None
    """What the queue entry holds in the place of the hash of the tags; None for what the record itself says
    (`entry_rules.py`).

    A code that is given is kept in the entry alone.  A recovery that finds the entry lost makes it again from the
    record, and so does a copy that has only the log.  Whoever gives one promises that it is what the record says, or
    that the record's own code serves as well: filters check the tags again, a timer finds its time again."""

    @classmethod
    def of_record(cls, record: bytes) -> "NewMessage":
        """The message of a record, to be stored once more.  `MalformedRecord` when it is none."""
        return cls.of_opened(record, open_record(record, 0, len(record)))

    @classmethod
    def of_opened(cls, record: bytes, at: OpenRecord) -> "NewMessage":
        """The same of a record that was opened."""
        properties = record[at.properties_at : at.end]
        if _SEAL_NAME in properties:
            properties = _SEAL.sub(b"", properties)
        return cls(
            topic=record[at.topic_at : at.topic_end].decode(),
            queue_id=at.queue_id,
            body=record[at.body_at : at.body_end],
            properties=properties,
            flag=at.flag,
            sys_flag=at.sys_flag,
            born_timestamp_ms=at.born_timestamp_ms,
            born_host=at.born_host,
            reconsume_times=at.reconsume_times,
            prepared_offset=at.prepared_offset,
        )

    def pairs(self) -> dict[str, str]:
        """Its properties by name; they are read anew each time."""
        return parse_properties(self.properties.decode("utf-8", "replace"))

    def with_pairs(self, **pairs: str | None) -> "NewMessage":
        """The same with these properties, written last; None takes one away."""
        return self._replace(properties=with_pairs(self.properties, pairs))

    def moved(self, topic: str, queue_id: int, pairs: dict[str, str | None]) -> "NewMessage":
        """The same in another queue, with these properties."""
        return self._replace(topic=topic, queue_id=queue_id, properties=with_pairs(self.properties, pairs))

    def record_size(self, store_host: bytes, *, sealed: bool) -> int:
        """How many bytes its record has, wherever it is."""
        return record_size(
            len(self.topic.encode()),
            len(self.body),
            self.properties,
            self.born_host,
            store_host,
            sealed=sealed,
        )

    def record(
        self, queue_offset: int, log_offset: int, store_timestamp_ms: int, store_host: bytes, *, sealed: bool
    ) -> bytes:
        """Its bytes in that place of the log."""
        return encode_record(
            topic=self.topic.encode(),
            body=self.body,
            properties=self.properties,
            queue_id=self.queue_id,
            flag=self.flag,
            queue_offset=queue_offset,
            log_offset=log_offset,
            sys_flag=self.sys_flag,
            born_timestamp_ms=self.born_timestamp_ms,
            born_host=self.born_host,
            store_timestamp_ms=store_timestamp_ms,
            store_host=store_host,
            reconsume_times=self.reconsume_times,
            prepared_offset=self.prepared_offset,
            sealed=sealed,
        )

    def entry_code(self, store_timestamp_ms: int, levels: DelayLevels) -> int | None:
        """The code in its queue entry; None when it gets no entry."""
        if not has_entry(self.sys_flag):
            return None
        if self.tags_code is None:
            return entry_code(self.topic, self.properties, store_timestamp_ms, levels)
        if not is_int64(self.tags_code):  # before anything is written: all or none
            raise ValueError(f"the tags code {self.tags_code} has more than 64 bits")
        return self.tags_code


class Appended(NamedTuple):
    log_offset: LogOffset
    queue_offset: QueueOffset
    end: LogOffset
