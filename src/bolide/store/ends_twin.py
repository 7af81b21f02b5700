"""The readable twin of `_ends.pyx`: ends of transactions into records, as long as they are plain.

A plain end commits or rolls back a sound half message that is in the place that it names, is of its group, was never
stored again, and asks for nothing but its transaction.  A commit stores the message in its own queue and a mark behind
it, a rollback the mark alone.  At the first that is not so this stops: `broker/handlers/transaction.py` knows what to
do with it, and does the same with a plain one.

Whether a transaction has ended before is not known here.
"""

import re
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bolide.model import end_rows as column
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.model.names import HALF_TOPIC
from bolide.model.properties import NOT_IN_A_BATCH, NOT_PLAIN_FAMILIES
from bolide.record.codec_twin import RecordHead, inspect_record, tags_code_of
from bolide.record.layout import BLANK_BYTES, LENGTH_MAX, RECORD_CHECKSUM_BYTES, open_record
from bolide.store.append_twin import QueueTail
from bolide.store.new_message import NewMessage
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES

COMMIT, ROLLBACK = int(SysFlag.COMMIT), int(SysFlag.ROLLBACK)
QUEUE_DIGITS_MAX = 9

KNOWN = tuple(
    name.encode()
    for name in (Property.PRODUCER_GROUP, Property.UNIQUE_KEY, Property.REAL_TOPIC, Property.REAL_QUEUE_ID)
)
SEAL = Property.RECORD_CHECKSUM.encode()
ODD = tuple(
    name.encode()
    for name in (*NOT_IN_A_BATCH, Property.PREPARED_QUEUE_OFFSET)
    if name != Property.TRANSACTION_PREPARED
)
"""They ask for something more than the transaction, or say that the message was stored again."""
_CLEAN_SEAL = re.compile(rb"(?:\A|(?<=\x02))" + SEAL + rb"\x01[^\x02]*\x02\Z")
_HALF_TOPIC = HALF_TOPIC.encode()


def encode_ends(
    ends: "array[int]",
    texts: bytearray,
    first: int,
    last: int,
    entries: bytes,
    entries_first: int,
    log: memoryview,
    base: int,
    log_start: int,
    log_end: int,
    check: int,
    half_bytes_max: int,
    find: Callable[[bytes], Sequence[QueueTail | None] | None],
    mark_tail: QueueTail,
    mark_properties: bytes,
    marked_ms: int,
    store_host: bytes,
    sealed: bool,
    scratch: bytearray,
    room: int,
    log_offset: int,
    now_ms: int,
    touched: list[QueueTail],
) -> tuple[int, int, int, int]:
    """Records for ends from row `first` up to `last`, one behind the other at the beginning of `scratch`: the first row
    that has none, how many bytes and how many records these are, and where the last of them is in the log.

    `entries` are of the queue of half messages, from number `entries_first` on; their records are in `log`, which
    begins at `base`, and count from `log_start` to `log_end`.  `room` is what the log has left at `log_offset`.
    """
    used = records = 0
    last_record = -1
    tails: dict[bytes, Sequence[QueueTail | None] | None] = {}
    for row in range(first, last):
        values = ends[row * column.COLUMNS : (row + 1) * column.COLUMNS]
        size_max = min(half_bytes_max, log_end - values[column.HALF_AT])
        record = _named(values, entries, entries_first, log, base, log_start, size_max)
        half = None if record is None else _half(record, values, texts, check)
        if half is None:
            return row, used, records, last_record
        if half.topic not in tails:
            tails[half.topic] = find(half.topic)
        of_topic = tails[half.topic] or ()
        tail = of_topic[half.queue_id] if half.queue_id < len(of_topic) else None
        number = b"%d" % values[column.HALF_NUMBER]
        mark = NewMessage(*mark_tail.key, number, mark_properties, 0, 0, marked_ms, store_host)
        is_committed = values[column.VERDICT] == COMMIT
        stored = [(half.committed, tail)] * is_committed + [(mark, mark_tail)]
        size = sum(message.record_size(store_host, sealed=sealed) for message, _ in stored)
        if tail is None or size > min(room - BLANK_BYTES, len(scratch)) - used:
            return row, used, records, last_record
        for message, its_tail in stored:
            assert its_tail is not None
            last_record = log_offset + used
            data = message.record(its_tail.next_offset, last_record, now_ms, store_host, sealed=sealed)
            its_tail.append(last_record, len(data), tags_code_of(message.properties))
            if not its_tail.touched:
                its_tail.touched = True
                touched.append(its_tail)
            scratch[used : used + len(data)] = data
            used += len(data)
            records += 1
    return max(first, last), used, records, last_record


class _Half(NamedTuple):
    """A plain half message: as it is stored when it is committed, and where that is."""

    committed: NewMessage
    topic: bytes
    queue_id: int


def _named(
    values: "array[int]",
    entries: bytes,
    entries_first: int,
    log: memoryview,
    base: int,
    log_start: int,
    size_max: int,
) -> bytes | None:
    """The bytes that an end names by number and place, if its queue says the same and they are no more than so many."""
    at = (values[column.HALF_NUMBER] - entries_first) * ENTRY_BYTES
    if values[column.VERDICT] not in (COMMIT, ROLLBACK) or not 0 <= at <= len(entries) - ENTRY_BYTES:
        return None
    half_at, size, _ = ENTRY.unpack_from(entries, at)
    if half_at != values[column.HALF_AT] or half_at < max(log_start, base) or not 0 < size <= size_max:
        return None
    record = bytes(log[half_at - base : half_at - base + size])
    return record if len(record) == size else None


def _half(record: bytes, values: "array[int]", texts: bytearray, check: int) -> _Half | None:
    """The half message of a record, if it is plain and the one that is meant."""
    head = inspect_record(record, 0, len(record), check)
    if not isinstance(head, RecordHead) or (head.size, head.log_offset) != (
        len(record),
        values[column.HALF_AT],
    ):
        return None
    if (head.topic, head.queue_id, head.queue_offset) != (_HALF_TOPIC, 0, values[column.HALF_NUMBER]):
        return None
    found = _known_pairs(record[head.properties_at :])
    if found is None:
        return None
    group, key, topic, queue = found
    if group != _text(texts, values, column.GROUP_AT) or not _is_meant(texts, values, key):
        return None
    message = NewMessage.of_opened(record, open_record(record, 0, len(record)))
    if len(message.properties) + 1 + RECORD_CHECKSUM_BYTES > LENGTH_MAX:
        return None
    if not queue.isdigit() or len(queue) > QUEUE_DIGITS_MAX:
        return None
    committed = message._replace(
        topic=topic.decode("utf-8", "replace"),
        queue_id=int(queue),
        sys_flag=message.sys_flag & ~TRANSACTION_MASK | COMMIT,
        prepared_offset=values[column.HALF_AT],
    )
    return _Half(committed, topic, committed.queue_id)


def _known_pairs(text: bytes) -> list[bytes] | None:
    """What properties say under the names of `KNOWN`; None when one says more, or one of these nothing or twice."""
    found: dict[bytes, bytes] = {}
    for pair in text.split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        if name in ODD or name.startswith(NOT_PLAIN_FAMILIES):
            return None
        if name in KNOWN:
            if not value or name in found:
                return None
            found[name] = value
    if len(found) < len(KNOWN) or SEAL in _CLEAN_SEAL.sub(b"", text):
        return None
    return [found[name] for name in KNOWN]


def _is_meant(texts: bytearray, values: "array[int]", key: bytes) -> bool:
    """Whether an end that names its message names the one of this key."""
    named = _text(texts, values, column.TRANSACTION_ID_AT)
    return not named or key in (named, _text(texts, values, column.MESSAGE_ID_AT))


def _text(texts: bytearray, values: "array[int]", at: int) -> bytes:
    return bytes(texts[values[at] : values[at] + values[at + 1]])
