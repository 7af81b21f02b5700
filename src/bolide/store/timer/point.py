"""TimerPoint: how far the timer has come, as `config/timercheck` says it."""

import zlib
from typing import NamedTuple

from bolide.store.timer.layout import (
    OLDER,
    OLDER_OWN,
    OURS,
    OWN,
    OWN_AT,
    POINT,
    POINT_FILE_BYTES,
    SUM,
)


class TimerPoint(NamedTuple):
    read_ms: int
    """The slot that is being delivered; those before it are done."""
    units_end: int
    """Units before this place are durable."""
    queue_offset: int
    """Messages of the timer's queue before this one have units."""
    mark: int = -1
    """Before this place of the log nothing of that slot was delivered, and no message came too late for its own;
    -1 when nobody has noted it."""
    step_ms: int = 0
    slots_ahead: int = -1
    """So many slots behind that one held something; -1 when nobody has noted it."""


def encode_point(point: TimerPoint, now_ms: int, count: int) -> bytes:
    queue_offset = point.queue_offset
    told = POINT.pack(point.read_ms, point.units_end, queue_offset, queue_offset, 0, now_ms, count)
    own = OWN.pack(OURS, point.mark, point.step_ms, point.slots_ahead)
    page = told.ljust(OWN_AT, b"\0") + own + SUM.pack(zlib.crc32(told + own))
    return page.ljust(POINT_FILE_BYTES, b"\0")


def decode_point(data: bytes) -> TimerPoint | None:
    """What the file says; without a mark when the original has written it, None when it cannot be read."""
    if len(data) < POINT.size or not any(data):  # zeros: it was made, and never written
        return None
    read_ms, units_end, queue_offset, master_offset, *_ = POINT.unpack_from(data)
    queue_offset = min(queue_offset, master_offset)
    if min(read_ms, units_end, queue_offset) < 0:
        return None
    point = TimerPoint(read_ms, units_end, queue_offset)
    if not any(data[POINT.size :]):  # where the original has nothing
        return point
    form = {OURS: OWN, OLDER: OLDER_OWN}.get(data[OWN_AT : OWN_AT + len(OURS)])
    if form is None or len(data) < OWN_AT + form.size + SUM.size:
        return None
    own = data[OWN_AT : OWN_AT + form.size]
    (sum_,) = SUM.unpack_from(data, OWN_AT + form.size)
    if sum_ != zlib.crc32(data[: POINT.size] + own):
        return None  # a time that is too late would make waiting messages delivered ones
    _, mark, step_ms, *slots_ahead = form.unpack(own)
    return TimerPoint(read_ms, units_end, queue_offset, mark, step_ms, *slots_ahead)
