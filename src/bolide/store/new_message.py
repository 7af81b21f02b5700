"""NewMessage: what the general path appends, its record and its queue entry; and where it is then.

Runs of plain sends become records without an object in between (`_append.pyx`).
"""

from dataclasses import dataclass

from bolide.model.numbers import is_int64
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.codec import encode_record
from bolide.store.entry_rules import entry_code, has_entry


@dataclass(frozen=True, slots=True)
class NewMessage:
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

    def entry_code(self, store_timestamp_ms: int) -> int | None:
        """The code in its queue entry; None when it gets no entry."""
        if not has_entry(self.sys_flag):
            return None
        if self.tags_code is None:
            return entry_code(self.topic, self.properties, store_timestamp_ms)
        if not is_int64(self.tags_code):  # before anything is written: all or none
            raise ValueError(f"the tags code {self.tags_code} has more than 64 bits")
        return self.tags_code


@dataclass(frozen=True, slots=True)
class Appended:
    log_offset: LogOffset
    queue_offset: QueueOffset
    end: LogOffset
