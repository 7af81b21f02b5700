"""each_broker: work on many queues, the brokers side by side, and none asked again that does not answer, or slowly."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from bolide.model.errors import CallTimeout, ConnectionLost

log = logging.getLogger(__name__)

SILENT = (CallTimeout, ConnectionLost)

ROUND_S = 10.0
"""How long a broker is asked in one round, and a call more: each answer may take almost until its call times out, and a
start waits for the first round.
"""

T = TypeVar("T")


async def each_broker(
    things: Iterable[T], broker_of: Callable[[T], str], work: Callable[[T], Awaitable[bool]]
) -> bool:
    """The things of each broker one by one, until it does not answer or its time is up; whether all went well."""
    by_broker: defaultdict[str, list[T]] = defaultdict(list)
    for thing in things:
        by_broker[broker_of(thing)].append(thing)
    return all(await asyncio.gather(*(_until_silent(some, work) for some in by_broker.values())))


async def _until_silent(things: Sequence[T], work: Callable[[T], Awaitable[bool]]) -> bool:
    went_well = True
    loop = asyncio.get_running_loop()
    end_s = loop.time() + ROUND_S
    for done, thing in enumerate(things):
        if done and loop.time() >= end_s:
            log.warning("a broker answers slowly: %d queues are left for the next round", len(things) - done)
            return False
        try:
            went_well &= await work(thing)
        except SILENT as error:
            log.warning("a broker does not answer, and is asked again in the next round: %s", error)
            return False
    return went_well
