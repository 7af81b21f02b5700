"""Where a group begins to read: at its offset, and without one where the consumer was told to."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial

from bolide.client import checks
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import BolideError, ConfigError
from bolide.model.names import RETRY_PREFIX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.wire.bodies.group import ConsumeFrom

log = logging.getLogger(__name__)

FIRST = "first"
LAST = "last"

_MEANT = {
    **dict.fromkeys((FIRST, "earliest", "beginning", "start"), f'"{FIRST}"'),
    **dict.fromkeys((LAST, "latest", "end", "newest"), f'"{LAST}", or datetime.now() for new messages alone'),
}
"""By the words of other systems."""

Stored = Callable[[MessageQueue], Awaitable[GroupOffset | None]]

_TOLD: Mapping[str | int, ConsumeFrom] = {FIRST: ConsumeFrom.FIRST_OFFSET, LAST: ConsumeFrom.LAST_OFFSET}


def start_from(value: str | int | datetime) -> str | int:
    """What an application says, checked: a moment is milliseconds then."""
    if value in (FIRST, LAST):
        return str(value)
    if isinstance(value, str):
        meant = _MEANT.get(value.lower())
        hint = "" if meant is None else f": did you mean {meant}?"
        raise ConfigError(
            f'start_from is "{FIRST}", "{LAST}" or a moment, not {checks.described(value)}{hint}'
        )
    return checks.moment_ms("start_from", value, ConfigError)


def told(start: str | int) -> ConsumeFrom:
    """As heartbeats say it."""
    return _TOLD.get(start, ConsumeFrom.TIMESTAMP)


async def group_start(calls: QueueCalls, queue: MessageQueue, start: str | int) -> GroupOffset:
    """The first message of a queue that a group wants: by its offset, or where it is to begin."""
    begin = await begin_at(calls, queue, start, partial(calls.committed_offset, zero_for_young=start == LAST))
    if start == LAST and begin == 0:
        with suppress(BolideError):  # it is only for the log
            await _say_old_messages(calls, queue)
    return begin


async def _say_old_messages(calls: QueueCalls, queue: MessageQueue) -> None:
    """Who asks for "last" expects new messages alone; brokers give a new group of a young queue all of them.

    Brokers before 5.0 answer 0 to the second question, too: with them nothing is said.
    """
    if await calls.committed_offset(queue) is None and (waiting := await calls.max_offset(queue)) > 0:
        log.info(
            'a new group begins at the first message of %s, by "last" too while the queue still has it: '
            "%d messages wait there; start_from=datetime.now() leaves them out",
            *(queue, waiting),
        )


async def begin_at(calls: QueueCalls, queue: MessageQueue, start: str | int, stored: Stored) -> GroupOffset:
    """The stored offset; where there is none, where the consumer was told to begin."""
    if (offset := await stored(queue)) is not None:
        return offset
    if start == FIRST or queue.topic.startswith(RETRY_PREFIX):
        return GroupOffset(0)  # where the queue begins later, the broker corrects it
    if isinstance(start, int):
        return GroupOffset(await calls.offset_at(queue, start))
    if (end := await calls.max_offset(queue)) == 0:
        return GroupOffset(0)
    # Apache's brokers know no offset of a queue without messages: what was the first one may have come since
    return GroupOffset(end) if (offset := await stored(queue)) is None else offset
