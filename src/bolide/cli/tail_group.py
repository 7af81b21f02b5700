"""`bolide tail --group`: reading as a member of a group, which shares its queues and moves its offsets.

What was written to stdout counts as consumed, and nothing else does: an offset is stored when what lies before it has
been flushed.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from bolide.aio import ClientError, LitePullConsumer, MessageQueue, PullConsumer
from bolide.cli.access import access
from bolide.cli.follow import Choice

if TYPE_CHECKING:
    from bolide.aio import StoredMessage

POLL_MS = 1_000
POLL_MESSAGES = 500

Take = Callable[["StoredMessage"], bool]


async def read_as_member(
    nameserver: str,
    group: str,
    topic: str,
    choice: Choice,
    *,
    start_from: str | int,
    follow: bool,
    count: int | None,
    take: Take,
    flush: Callable[[], None],
) -> None:
    """Hand messages over until `take` says that this was the last one; without `follow`, until the group has come to
    the present end of every queue.
    """
    async with PullConsumer(nameserver, group=group, **access()) as eyes:
        ends = {queue: await eyes.max_offset(queue) for queue in await eyes.queues(topic)}
        consumer = LitePullConsumer(nameserver, group=group, start_from=start_from, **access())
        await consumer.subscribe(topic, choice.tags, choice.sql)
        async with consumer:
            left = count
            try:
                while True:
                    messages = await consumer.poll(POLL_MS, min(POLL_MESSAGES, left or POLL_MESSAGES))
                    taken = 0
                    for message in messages:
                        taken += take(message)
                    flush()
                    if messages:
                        await _tell(consumer)
                    if left is not None and (left := left - taken) == 0:
                        return
                    if not messages and not follow and await _is_at(eyes, consumer, ends):
                        return
            except asyncio.CancelledError:  # Ctrl-C, while nothing was in hand
                await consumer.commit()
                raise


async def _tell(consumer: LitePullConsumer) -> None:
    """A queue that goes to another member, or comes back, goes on behind what was written."""
    with suppress(ClientError):  # of a broker that is away: the next time tells it, or leaving does
        await consumer.commit()


async def _is_at(eyes: PullConsumer, consumer: LitePullConsumer, ends: Mapping[MessageQueue, int]) -> bool:
    await consumer.commit()
    for queue, end in ends.items():
        committed = await eyes.committed_offset(queue)
        if committed is None and end > await eyes.min_offset(queue):
            return False
        if committed is not None and committed < end:
            return False
    return True
