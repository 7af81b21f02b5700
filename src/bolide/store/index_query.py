"""Messages by key: what is asked, and which of the records found are an answer.

The index knows a key by a 32-bit hash and a time by its second, and its files may be damaged.  So every record found is
looked at: it must be whole, of the topic, stored within the window, and have a key of that hash.  Two keys of one
hash are not told apart here: whoever asked compares the text, as with RocketMQ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bolide.record.codec import RecordHead, inspect_record
from bolide.store.index import record_hashes
from bolide.store.index_layout import index_key, key_hash, tag_key
from bolide.store.log import CommitLog


@dataclass(frozen=True, slots=True)
class Lookup:
    """Messages of a topic by one word: a key, a unique key or, with `by_tag`, a tag."""

    topic: str
    word: str
    count_max: int
    begin_ms: int
    end_ms: int
    size_bytes_max: int  # of all records together; the newest is always told
    by_tag: bool = False

    @property
    def hash(self) -> int:
        key = tag_key(self.topic, self.word) if self.by_tag else index_key(self.topic, self.word)
        return key_hash(key)


class Place(NamedTuple):
    """Where a record may begin: in a view of its own, so that the log may delete the segment meanwhile."""

    view: memoryview
    at: int
    end: int
    log_offset: int


def places_of(commit_log: CommitLog, log_offsets: Sequence[int], start: int, limit: int) -> list[Place]:
    """The offsets that lie in the log, between these places.  Called by the log's owner."""
    places: list[Place] = []
    start = max(start, int(commit_log.start))
    for log_offset in log_offsets:
        segment = commit_log.segment_of(log_offset) if start <= log_offset < limit else None
        if segment is not None:
            end = min(limit - segment.base, segment.size)
            places.append(Place(segment.file.map(), log_offset - segment.base, end, log_offset))
    return places


def read_matching(lookup: Lookup, places: Sequence[Place]) -> list[bytes]:
    """The records that answer the question, in the order of the log; the newest where not all fit an answer."""
    wanted = lookup.hash
    records: list[bytes] = []
    size_bytes = 0
    for place in sorted(places, key=lambda place: place.log_offset, reverse=True):
        record = _read(lookup, wanted, place)
        if record is None:
            continue
        size_bytes += len(record)
        if records and size_bytes > lookup.size_bytes_max:
            break
        records.append(record)
    return records[::-1]


def _read(lookup: Lookup, wanted: int, place: Place) -> bytes | None:
    head = inspect_record(place.view, place.at, place.end, True)
    if not isinstance(head, RecordHead) or head.log_offset != place.log_offset:
        return None
    if head.topic != lookup.topic.encode() or not lookup.begin_ms <= head.store_timestamp_ms <= lookup.end_ms:
        return None
    record = bytes(place.view[place.at : place.at + head.size])
    return record if wanted in record_hashes(record) else None
