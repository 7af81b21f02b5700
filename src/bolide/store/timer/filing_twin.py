"""The readable twin of `_filing.pyx`: timed messages into the timer's index, as long as they are plain.

A plain one is sound, says once when it is due and where it goes, is written to the log no second time before that,
and belongs to a slot behind the one that is being delivered.  At the first that is not so this stops: `broker/timer.py`
knows what to do with it, and does the same with a plain one.
"""

from bolide.model.java_hash import java_hash
from bolide.model.message import Property
from bolide.model.names import TIMER_TOPIC
from bolide.model.numbers import INT32_MAX
from bolide.record.codec_twin import RecordHead, inspect_record
from bolide.rules.timed import ASKING, promised_ms, roll_time
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES
from bolide.store.timer.layout import DUE, NOWHERE, SLOT, SLOT_BYTES, UNIT, UNIT_BYTES
from bolide.store.timer.wheel import PAGE_BYTES

DIGITS_MAX = 15
"""Of a time: no sum of two leaves 64 bits."""

_TOPIC = TIMER_TOPIC.encode()
_NAMES = {
    name.encode(): name
    for name in (Property.TIMER_OUT_MS, Property.TIMER_DELETE_KEY, Property.REAL_TOPIC, *ASKING)
}


def file_plain(
    entries: bytes,
    first: int,
    queue_offset: int,
    log: memoryview,
    base: int,
    log_end: int,
    check: int,
    slots: memoryview,
    dirty: set[int],
    units_at: int,
    units_max: int,
    read_ms: int,
    step_ms: int,
    window_ms: int,
) -> tuple[bytes, int]:
    """File messages of the timer's queue from entry `first` on, which has this number: their units, in this order, and
    how many slots they have begun.

    The records are in `log`, which begins at `base`, and count up to `log_end`.  The units go to `units_at`, so many at
    most; the wheel's `slots` lead to them then, and `dirty` has the pages that were changed.
    """
    turn_ms = len(slots) // SLOT_BYTES * step_ms
    units = bytearray()
    begun = 0
    for number in range(first, min(len(entries) // ENTRY_BYTES, first + units_max)):
        log_offset, size, _ = ENTRY.unpack_from(entries, number * ENTRY_BYTES)
        at = log_offset - base
        if not 0 <= at < len(log) or not 0 < size <= min(len(log) - at, log_end - log_offset):
            break
        head = inspect_record(log, at, at + size, check)
        if not isinstance(head, RecordHead) or (head.size, head.log_offset) != (size, log_offset):
            break
        if head.queue_offset != queue_offset + number - first or head.topic != _TOPIC:
            break
        text = bytes(log[at + head.properties_at : at + size])
        found = _due(text, head.store_timestamp_ms, step_ms, window_ms)
        if found is None or not read_ms + step_ms <= found[0] < read_ms + turn_ms:
            break
        time_ms, topic = found
        written_ms = head.store_timestamp_ms - head.store_timestamp_ms % step_ms
        if abs(time_ms - written_ms) > INT32_MAX:
            break
        unit_at = units_at + len(units)
        previous = _lengthen(slots, dirty, time_ms // step_ms, unit_at)
        begun += previous == NOWHERE
        units += UNIT.pack(
            UNIT_BYTES,
            previous,
            DUE,
            written_ms,
            time_ms - written_ms,
            log_offset,
            size,
            java_hash(topic.decode("utf-8", "replace")),
            0,
        )
    return bytes(units), begun


def _due(text: bytes, stored_ms: int, step_ms: int, window_ms: int) -> tuple[int, bytes] | None:
    """When a message of these properties is due, and its own topic; None when it is not plain."""
    found: dict[str, bytes] = {}
    for pair in text.split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        known = _NAMES.get(name)
        if known is not None:
            if not value or known in found:
                return None
            found[known] = value
    out, topic = found.pop(Property.TIMER_OUT_MS, b""), found.pop(Property.REAL_TOPIC, b"")
    if not topic or len(found) != 1 or Property.TIMER_DELETE_KEY in found:
        return None
    ((asking, asked),) = found.items()
    if not _is_time(out) or not _is_time(asked) or not 0 <= stored_ms < 10**DIGITS_MAX:
        return None
    out_ms = int(out)
    if roll_time(out_ms - out_ms % step_ms, stored_ms - stored_ms % step_ms, window_ms) is not None:
        return None
    return promised_ms({asking: asked.decode()}, out_ms, stored_ms, step_ms) - 1, topic


def _is_time(text: bytes) -> bool:
    return 0 < len(text) <= DIGITS_MAX and text.isdigit()


def _lengthen(slots: memoryview, dirty: set[int], step: int, at: int) -> int:
    """`Wheel.lengthen`, for what is no recall."""
    place = step * SLOT_BYTES % len(slots)
    time, begin, last, messages, recalls = SLOT.unpack_from(slots, place)
    if time != step:
        begin, last, messages, recalls = NOWHERE, NOWHERE, 0, 0
    SLOT.pack_into(slots, place, step, at if begin == NOWHERE else begin, at, messages + 1, recalls)
    dirty.add(place // PAGE_BYTES)
    return int(last)
