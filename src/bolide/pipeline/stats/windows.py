"""Which windows a report has: as wide as asked for, or so wide that a person can look at all of them.

Messages are counted in slots first, before anybody knows how long the span is; a window is some slots.
"""

from bolide.model.limits.spark import STATS_WINDOWS_MAX

SECOND_MS = 1000
_MINUTE_MS, _HOUR_MS, _DAY_MS = 60 * SECOND_MS, 3600 * SECOND_MS, 86_400 * SECOND_MS

NICE_MS = (
    *(SECOND_MS * count for count in (1, 2, 5, 10, 15, 30)),
    *(_MINUTE_MS * count for count in (1, 2, 5, 10, 15, 30)),
    *(_HOUR_MS * count for count in (1, 2, 3, 6, 12)),
    *(_DAY_MS * count for count in (1, 2, 7, 14, 28, 56, 91, 182, 364, 728, 1820, 3640)),
)
"""Widths that people think in."""

LOOKED_AT_MAX = 120
"""Windows of a report that chooses its own."""


def slot_width(asked_ms: int | None) -> int:
    return SECOND_MS if asked_ms is None else asked_ms


def window_width(asked_ms: int | None, first_ms: int, last_ms: int) -> int:
    """The width of windows for messages stored from first to last: what was asked for, or the least multiple of it that
    is nice and makes few enough.

    >>> window_width(None, 0, 90_000), window_width(None, 0, 86_400_000), window_width(60_000, 0, 86_400_000)
    (1000, 900000, 120000)
    """
    slot_ms = slot_width(asked_ms)
    most = LOOKED_AT_MAX if asked_ms is None else STATS_WINDOWS_MAX

    def is_enough(width_ms: int) -> bool:
        return last_ms // width_ms - first_ms // width_ms < most

    widths = (slot_ms, *(width for width in NICE_MS if width > slot_ms and width % slot_ms == 0))
    found = next(filter(is_enough, widths), None)
    if found is not None:
        return found
    slots = last_ms // slot_ms - first_ms // slot_ms + 1
    return slot_ms * -(-slots // (most - 1))
