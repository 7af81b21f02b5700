"""The readable twin of `_index.pyx`: records into an index file, and keys found in one.

`index_records` walks records of the log and puts their keys into a mapped index file until the records or the room
end.  It works on bytes alone, so that it can run on a thread of its own.  `store/index_layout.py` has the bytes.
"""

import struct
from array import array
from collections.abc import Iterator
from itertools import islice

from bolide.model.limits import INDEXED_WORDS_MAX
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.record.codec_twin import RecordHead, inspect_record
from bolide.store.index_layout import (
    ENTRY,
    HEADER_BYTES,
    OLDER_AT,
    SLOT_BYTES,
    IndexHeader,
    entry_at,
    index_key,
    key_hash,
    slot_at,
    tag_key,
)

DONE = 0
NO_ROOM = 1
AT_BLANK = 2
NO_RECORD = 3

_UNIQUE_KEY = Property.UNIQUE_KEY.encode()
_KEYS = Property.KEYS.encode()
_TAGS = Property.TAGS.encode()

_SLOT = struct.Struct(">i")
_SECONDS_MAX = 0x7FFF_FFFF
_CONTINUES_AFTER_MS = 1000
_TIME_MS_END = 1 << 60
"""No store time is so late; a file that says so is damaged."""


def index_records(
    log: memoryview | bytes,
    at: int,
    stop: int,
    end: int,
    base: int,
    index: memoryview,
    slots: int,
    count_end: int,
    keys_done: int,
) -> tuple[int, int, int]:
    """Put the keys of the records that begin in `log[at:stop]` into an index file, up to entry `count_end - 1`.

    Returns the first position that is not indexed, how many keys of the record there are in the file already, and
    why it ended: DONE, NO_ROOM for the next key, AT_BLANK at the end of a segment, or NO_RECORD where a record should
    be.  Records end at `end` at the latest.  `base` is the log offset of `log[0]`; `keys_done` is what an earlier call
    has returned for the first record.
    """
    if not (at >= 0 and end <= len(log) and entry_at(slots, count_end) <= len(index)):
        raise ValueError("the range lies outside the log, or the index file is too small")
    while at < stop:
        head = inspect_record(log, at, end, False)
        if isinstance(head, int):
            return at, keys_done, AT_BLANK
        if head is None or head.log_offset != base + at:
            return at, keys_done, NO_RECORD
        for number, key in enumerate(_keys_of(log, at, head, INDEXED_WORDS_MAX)):
            if number >= keys_done and not _put(index, slots, count_end, key_hash(key), head):
                return at, number, NO_ROOM
        keys_done = 0
        at += head.size
    return at, keys_done, DONE


def record_hashes(record: bytes) -> list[int]:
    """The hashes of all keys of a record, in order; others index words that we do not."""
    head = inspect_record(record, 0, len(record), False)
    return [key_hash(key) for key in _keys_of(record, 0, head)] if isinstance(head, RecordHead) else []


def find_offsets(
    index: memoryview,
    slots: int,
    wanted: int,
    count_max: int,
    begin_ms: int,
    end_ms: int,
    steps_max: int,
    number: int,
) -> "tuple[array[int], int]":
    """Log offsets of messages that were indexed under this key hash, newest first.

    A message's time is known to the second, so the window is wide by one: the record itself says it exactly.
    `steps_max` bounds how many entries of the slot are looked at, from the newest on, or from `number` on where it is
    not 0.  Returned beside them is the entry to go on with, 0 where there is none.
    """
    header = IndexHeader.read(memoryview(index))
    found = array("q")
    if not 0 <= header.begin_ms < _TIME_MS_END:
        return found, 0
    if number == 0:
        (number,) = _SLOT.unpack_from(index, slot_at(wanted % slots))
    last = min(header.next_entry, (len(index) - entry_at(slots, 0)) // ENTRY.size) - 1
    while 0 < number <= last and len(found) < count_max and steps_max > 0:
        hashed, log_offset, seconds, older = ENTRY.unpack_from(index, entry_at(slots, number))
        stored_ms = header.begin_ms + (1000 * seconds if number > 1 else 0)
        if seconds < 0 or stored_ms + _CONTINUES_AFTER_MS <= begin_ms:
            return found, 0
        if hashed == wanted and stored_ms <= end_ms:
            found.append(log_offset)
        if older >= number:  # a chain leads to older entries, or it is broken
            return found, 0
        number = older
        steps_max -= 1
    return found, number if 0 < number <= last else 0


def rebuild_slots(index: memoryview, slots: int, count: int, log_end: int) -> tuple[int, int]:
    """Make the slots and chains again from the entries alone; returns the number of sound entries + 1 and used slots.

    Entries are in the order of the log.  Those from the first one on that breaks it, or that points behind the end of
    the log, are not sound.
    """
    index[HEADER_BYTES : slot_at(slots)] = bytes(SLOT_BYTES * slots)
    used, newest = 0, 0
    last = min(count, (len(index) - entry_at(slots, 0)) // ENTRY.size)
    for number in range(1, last):
        at = entry_at(slots, number)
        hashed, log_offset, seconds, _ = ENTRY.unpack_from(index, at)
        if hashed < 0 or seconds < 0 or not newest <= log_offset < log_end:
            return number, used
        slot = slot_at(hashed % slots)
        (older,) = _SLOT.unpack_from(index, slot)
        used += older == 0
        _SLOT.pack_into(index, at + OLDER_AT, older)
        _SLOT.pack_into(index, slot, number)
        newest = log_offset
    return max(1, last), used


def _keys_of(
    log: memoryview | bytes, at: int, head: RecordHead, words_max: int | None = None
) -> Iterator[str]:
    """A record's keys in the order in which RocketMQ's IndexService puts them; of its words the first so many."""
    if head.sys_flag & TRANSACTION_MASK == SysFlag.ROLLBACK:
        return
    start = at + head.properties_at
    pairs = _wanted_pairs(bytes(log[start : start + head.properties_length]))
    topic = head.topic.decode("utf-8", "replace")
    if _UNIQUE_KEY in pairs:
        yield index_key(topic, pairs[_UNIQUE_KEY])
    words = (word for word in pairs.get(_KEYS, "").split(" ") if word)
    for word in islice(words, words_max):
        yield index_key(topic, word)
    if _TAGS in pairs:
        yield tag_key(topic, pairs[_TAGS])


def _wanted_pairs(properties: bytes) -> dict[bytes, str]:
    """As everywhere, the last of several pairs of one name counts, and one without a value is none."""
    pairs: dict[bytes, str] = {}
    for pair in properties.split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        if value and name in (_UNIQUE_KEY, _KEYS, _TAGS):
            pairs[name] = value.decode("utf-8", "replace")
    return pairs


def _put(index: memoryview, slots: int, count_end: int, hashed: int, head: RecordHead) -> bool:
    header = IndexHeader.read(index)
    count = max(1, header.next_entry)
    if count >= count_end:
        return False
    slot = slot_at(hashed % slots)
    (older,) = _SLOT.unpack_from(index, slot)
    if not 0 < older < count:
        older = 0
    begin_ms, begin_offset, stored_ms = header.begin_ms, header.begin_offset, head.store_timestamp_ms
    # Java divides towards zero, and what is negative counts as 0.
    seconds = min(_SECONDS_MAX, max(0, stored_ms - begin_ms) // 1000) if begin_ms > 0 else 0
    ENTRY.pack_into(index, entry_at(slots, count), hashed, head.log_offset, seconds, older)
    _SLOT.pack_into(index, slot, count)
    if count == 1:
        begin_ms, begin_offset = stored_ms, head.log_offset
    used = header.slots_used + (older == 0)
    IndexHeader(begin_ms, stored_ms, begin_offset, head.log_offset, used, count + 1).write(index)
    return True
