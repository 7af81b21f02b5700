"""Where in a queue the messages of a moment begin, whatever its broker says of that.

Apache's 4.9 names the nearest message (RocketMQ: ConsumeQueue.getOffsetInQueueByTime): the last one where the end is
meant, one that is too early where that is nearer, and any of those that were stored in the same millisecond.  So the
messages on both sides of an answer are looked at, and where they do not bear it out the place is found by halving.
That takes store times to go up, as they do unless a broker's clock was set back; then any place that halving ends at
will do, as it does for brokers.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bolide.pipeline.ranges import Ends

LOOKS_MAX = 16
"""Pulls that look for a message where some cannot be read; brokers pass over many of these in one."""

LATER_MS = 2**63
"""Later than any moment that can be asked for."""


class Stored(NamedTuple):
    offset: int
    time_ms: int


Look = Callable[[int], Awaitable[tuple[Stored | None, int]]]
"""The message that a pull at an offset begins with, at this offset or behind it, if it has one, and where the next pull
goes on."""


async def first_since(moment_ms: int, told: int, ends: Ends, look: Look, *, is_end: bool = False) -> int:
    """The offset of the first message stored at or after a moment, the end where there is none.

    `told` is what the broker says.  A message that is not there or cannot be read is passed over by judging the next
    one.  Where none is in reach, nobody knows its time: a read that begins at the moment begins before such damage, and
    one that ends there (`is_end`) ends behind it.  So each has rather too much than too little.
    """
    at = ends.clamp(told)
    before, here = await asyncio.gather(_next(look, max(at - 1, ends.first), at), _next(look, at, ends.last))
    is_first = at == ends.first or (before is not None and before.time_ms < moment_ms)
    if not is_first or (here is not None and here.time_ms < moment_ms):
        at = await _halved(moment_ms, ends, look, is_end=False)
        here = await _next(look, at, ends.last) if is_end else None
    if is_end and here is None:  # damage, and sound messages behind it that may be earlier
        at = await _halved(moment_ms, Ends(at, ends.last), look, is_end=True)
    return at


async def _halved(moment_ms: int, ends: Ends, look: Look, *, is_end: bool) -> int:
    low, high = ends.first, ends.last
    while low < high:
        middle = (low + high) // 2
        found = await _next(look, middle, high)
        if found is None and is_end:
            low = middle + 1
        elif found is not None and found.time_ms < moment_ms:
            low = found.offset + 1
        else:
            high = middle
    return low


async def _next(look: Look, begin: int, end: int) -> Stored | None:
    """The first message from one offset to before another; where there is none, what will be stored behind them.

    None where so many cannot be read that nobody knows.
    """
    at = begin
    for _ in range(LOOKS_MAX):
        if at >= end:
            break
        found, following = await look(at)
        if found is not None:
            return found if found.offset < end else Stored(end, LATER_MS)
        if following <= at:  # not to be seen yet
            return None
        at = following
    return Stored(end, LATER_MS) if at >= end else None
