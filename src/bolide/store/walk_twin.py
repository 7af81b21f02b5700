"""The readable twin of `_walk.pyx`.

`LogWalk.go` is the inner loop of recovery: from record to record through a segment, each checked and given to its
queue.  It decides nothing: a queue it does not know, and a record that does not continue its queue, are handed to
the functions it was made with.
"""

from collections.abc import Callable, Mapping

from bolide.model.names import SCHEDULE_TOPIC
from bolide.record.codec_twin import RecordHead, inspect_record
from bolide.store.append_twin import QueueTail
from bolide.store.entry_rules import has_entry

LIMIT = 0
BLANK = 1
UNSOUND = 2

_SCHEDULE_TOPIC = SCHEDULE_TOPIC.encode()

SECTOR_BYTES = 512
LOST_ZEROS = 2
"""So many at the end of a sector are taken for a loss: a single one may be text, in a store of others."""

EARLIEST_MS = 1 << 32
"""Nothing was stored in February 1970."""


Find = Callable[[bytes, int], QueueTail | None]
"""The tail of a queue by the bytes of its topic's name and its number; None when that is no name."""

Mend = Callable[[QueueTail, int, int], bool]
"""Called with a tail, a queue offset that does not continue it, and the log offset of the record.

Brings the tail to that offset, or returns False: the record is then given to no queue.
"""

Deliver = Callable[[QueueTail, bytes, int, int, int], int]
"""What the entry of a delayed message holds: called with its queue's tail, its properties, when it was stored, where it
is in the log and its size.  Who does not care about entries leaves it out."""


class LogWalk:
    """One walk, over one segment or many."""

    def __init__(
        self,
        find: Find,
        mend: Mend,
        deliver: Deliver | None = None,
        deleted: Mapping[bytes, int] | None = None,
    ) -> None:
        """Records of the topics in `deleted` that lie before these places of the log are passed over."""
        self._find = find
        self._mend = mend
        self._deliver = deliver
        self._deleted = deleted or {}
        self._tails: dict[tuple[bytes, int], QueueTail] = {}
        self.records = 0
        self.entries = 0  # given to queues
        self.last_record = -1  # log offset of the newest record
        self.store_timestamp_ms = 0  # of that record

    def go(
        self, segment: memoryview, base: int, position: int, limit: int, check_crc: bool
    ) -> tuple[int, int]:
        """Walk from `position` of the segment that begins at log offset `base`, until `limit` or a little further.

        Returns where it stopped and why: LIMIT, at a BLANK record, or because no sound record is there.
        """
        while position < limit:
            found = inspect_record(segment, position, len(segment), check_crc)
            if isinstance(found, int):
                return position, BLANK if found == len(segment) - position else UNSOUND
            if found is None or found.log_offset != base + position:
                return position, UNSOUND
            at = position + found.properties_at
            properties = segment[at : at + found.properties_length]
            if not self._is_whole(segment, position, found) or not self._give(found, properties):
                return position, UNSOUND
            self.records += 1
            self.last_record = found.log_offset
            self.store_timestamp_ms = found.store_timestamp_ms
            position += found.size
        return position, LIMIT

    def _give(self, head: RecordHead, properties: memoryview) -> bool:
        """Give a record to its queue; False when its topic is no name."""
        if head.log_offset < self._deleted.get(head.topic, 0):
            return True
        key = (head.topic, head.queue_id)
        tail = self._tails.get(key) or self._find(*key)
        if tail is None:
            return False
        self._tails[key] = tail
        if not has_entry(head.sys_flag):
            return True
        offset = head.queue_offset
        if offset == tail.next_offset or self._mend(tail, offset, head.log_offset):
            code = head.tags_code
            if self._deliver is not None and head.topic == _SCHEDULE_TOPIC:
                stored_ms = head.store_timestamp_ms
                code = self._deliver(tail, bytes(properties), stored_ms, head.log_offset, head.size)
            tail.append(head.log_offset, head.size, code)
            self.entries += 1
        return True

    @staticmethod
    def _is_whole(segment: memoryview, position: int, head: RecordHead) -> bool:
        """Whether all of the record reached the disk, as far as that can be told where the body's checksum does not.

        What was lost is zero up to the end of a sector.  Times are never so early, and no text ends so: the broker
        takes none with zeros in it, and a store of others may have single ones.
        """
        if head.store_timestamp_ms < EARLIEST_MS:
            return False
        end = position + head.size
        first = position + head.properties_at
        ends = (*range(first + SECTOR_BYTES - first % SECTOR_BYTES, end, SECTOR_BYTES), end)
        begins = (first, *ends[:-1])
        return head.properties_length == 0 or all(
            any(segment[max(begin, stop - LOST_ZEROS) : stop])
            for begin, stop in zip(begins, ends, strict=True)
        )
