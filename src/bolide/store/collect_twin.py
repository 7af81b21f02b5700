"""The readable twin of `_collect.pyx`: what of a queue's entries somebody wants.

A pull asks for records (`collect`).  Whoever waits for messages asks first which tags have come (`first_by_code`), so
that those who want others are left alone, and then whether a certain message is one of his (`first_wanted`).
"""

from collections.abc import Callable

from bolide.model.filter import Filter
from bolide.model.limits import EXAMINED_BYTES_MAX
from bolide.record.checksum_twin import holds
from bolide.record.codec_twin import RecordHead, inspect_record
from bolide.record.layout import CHECK_LENGTHS
from bolide.store.queue_entry import ENTRY, GAP_SIZE


def first_by_code(entries: bytes, log_offset_end: int) -> tuple[int, dict[int | None, int]]:
    """Entries passed by before `log_offset_end`, and at which of them each tags code comes first; None: any code."""
    found: dict[int | None, int] = {}
    scanned = 0
    for log_offset, size, tags_code in ENTRY.iter_unpack(entries):
        if log_offset >= 0 and 0 < size < GAP_SIZE:
            if log_offset + size > log_offset_end:
                break
            found.setdefault(None, scanned)
            found.setdefault(tags_code, scanned)
        scanned += 1
    return scanned, found


def first_wanted(
    entries: bytes, filter: Filter, log_offset_end: int, read_at: Callable[[int], bytes | None]
) -> tuple[int, bool]:
    """Look for a wanted message before `log_offset_end`: entries passed by, and whether one was found.

    `read_at` gives the record at a place of the log, if a sound one is there.  It is asked only for a filter that
    examines records.  After so many bytes that were examined the next one counts as wanted, unseen.
    """
    codes, examine = filter.codes, filter.examine
    scanned = examined = 0
    for log_offset, size, tags_code in ENTRY.iter_unpack(entries):
        if log_offset >= 0 and 0 < size < GAP_SIZE:
            if log_offset + size > log_offset_end:
                break
            if codes is None or tags_code in codes:
                if examine is None or examined >= EXAMINED_BYTES_MAX:
                    return scanned, True
                record = read_at(log_offset)
                if record is not None:
                    examined += len(record) * filter.weight
                    if examine(record):
                        return scanned, True
        scanned += 1
    return scanned, False


def collect(
    entries: bytes,
    first: int,
    filter: Filter,
    count_max: int,
    size_bytes_max: int,
    log_offset_end: int,
    log_offset_start: int,
    segment: memoryview,
    base: int,
    topic: bytes,
    queue_id: int,
    queue_offset: int,
    check: int,
) -> tuple[int, int, int, bytes]:
    """The records of a pull: entries scanned from `first`, records taken, records damaged, and their bytes.

    Stops before `log_offset_end`, at the first entry of another segment, at `count_max` messages, before their size
    passes `size_bytes_max`, or when enough properties were examined; the first message is always taken.  Passed over
    are messages that the filter does not want, entries that are none (those of size 2147483647, which fill gaps, and
    zeros), those of records before `log_offset_start`, and those that do not point at a record of their size and place
    whose checksums hold, as far as `check` asks for them (see `record/layout.py`).  Checksums are looked at last: the
    bodies of what nobody wants are never read, and those that were read in vain count for the size.

    The first entry must be that of `queue_offset` in this queue of this topic, and its record must say so; an empty
    topic stands for a queue whose messages belong to other topics too.
    """
    if not 0 <= first <= len(entries) // ENTRY.size:
        raise ValueError("the first entry lies outside the entries")
    codes, examine = filter.codes, filter.examine
    records: list[bytes] = []
    scanned = damaged = total = examined = 0
    for log_offset, size, tags_code in ENTRY.iter_unpack(memoryview(entries)[first * ENTRY.size :]):
        if len(records) >= count_max:
            break
        if log_offset >= log_offset_start and 0 < size < GAP_SIZE:
            if log_offset + size > log_offset_end or not base <= log_offset < base + len(segment):
                break
            if codes is None or tags_code in codes:
                if (total and total + size > size_bytes_max) or examined >= EXAMINED_BYTES_MAX:
                    break
                record = bytes(segment[log_offset - base : log_offset - base + size])
                head = _message(record, size, log_offset, (topic, queue_id, queue_offset + scanned))
                if head is None:
                    damaged += 1
                else:
                    if examine is not None:
                        examined += head.properties_length * filter.weight
                    if examine is None or examine(record):
                        total += size
                        if holds(memoryview(record), head.body_at, head.body_length, check):
                            records.append(record)
                        else:
                            damaged += 1
        scanned += 1
    return scanned, len(records), damaged, b"".join(records)


def _message(record: bytes, size: int, log_offset: int, message: tuple[bytes, int, int]) -> RecordHead | None:
    """A record of this size and place, if it is this message: topic, queue, queue offset."""
    head = inspect_record(record, 0, len(record), CHECK_LENGTHS)
    if not isinstance(head, RecordHead) or (head.size, head.log_offset) != (size, log_offset):
        return None
    return head if not message[0] or (head.topic, head.queue_id, head.queue_offset) == message else None
