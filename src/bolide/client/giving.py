"""Giving: what polls give out, taken from the queues in turn.

Blocks are decoded here, as far as a poll wants them and no further.  What cannot be read is asked for again, alone,
and passed over at last, so that one broken record costs one message.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from bolide.client.answers import Part, Wanted, part_of
from bolide.client.hooks import HookChain
from bolide.client.lite_queue import LiteQueue
from bolide.client.rounds import wait_at_most
from bolide.machines.fetched import Block
from bolide.model.clock import Clock
from bolide.model.errors import MalformedRecord
from bolide.model.limits import PULL_COST_BYTES_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.net.ticks import pause
from bolide.record.stored import StoredMessage

log = logging.getLogger(__name__)


class Giving:
    """The queues that have something, the one that has waited longest first."""

    def __init__(self, clock: Clock, hooks: HookChain, *, skips_bad_bodies: bool) -> None:
        self._hooks = hooks
        self.wanted = Wanted(clock, self._skip, skips_bad_bodies=skips_bad_bodies)
        self._ready: dict[MessageQueue, LiteQueue] = {}
        self._touched: dict[MessageQueue, LiteQueue] = {}
        self.begun: dict[MessageQueue, GroupOffset] = {}
        """Where those queues stood of which something was given out since this was emptied."""
        self.arrived = asyncio.Event()
        self.skipped = 0

    def offer(self, held: LiteQueue) -> None:
        """The queue may have something."""
        if held.fetched.head is not None and not held.is_gone:
            self._ready[held.queue] = held
            self.arrived.set()

    async def wait(self, timeout_ms: int) -> None:
        """Until there may be something, or the time is up."""
        if self._ready:  # a poll that found nothing that it wanted, and has done enough for one turn
            await pause(0)
            return
        self.arrived.clear()
        await wait_at_most(self.arrived, timeout_ms)

    def touch(self, held: LiteQueue) -> None:
        """The place in this queue changes."""
        self._touched[held.queue] = held
        self.begun.setdefault(held.queue, held.fetched.given)

    def touched(self) -> list[LiteQueue]:
        """The queues of which something was given out since this was asked last."""
        touched, self._touched = list(self._touched.values()), {}
        return touched

    def take(self, count_max: int) -> list[StoredMessage]:
        """The next messages; as many as may be in memory at once, but one at least if there is one."""
        messages: list[StoredMessage] = []
        cost_left = int(PULL_COST_BYTES_MAX)
        while self._ready and len(messages) < count_max and cost_left > 0:
            with self.turn() as held:
                while (
                    (block := held.fetched.head) is not None and len(messages) < count_max and cost_left > 0
                ):
                    part = self._part(held, block, count_max - len(messages), cost_left)
                    if part is None:
                        break
                    cost_left -= part.cost_bytes
                    wanted = self.wanted.of(part.messages, held.queue, held.subscription)
                    messages += self._hooks.kept(wanted)
        return messages

    @property
    def is_ready(self) -> bool:
        """Whether a queue may have something."""
        return bool(self._ready)

    @contextmanager
    def turn(self) -> Iterator[LiteQueue]:
        """The queue that has waited longest, to take something from; it waits again if it has more."""
        queue, held = next(iter(self._ready.items()))
        del self._ready[queue]
        self.touch(held)
        try:
            yield held
        finally:
            held.stir()
            if held.fetched.head is not None:
                self._ready[queue] = held

    def _part(self, held: LiteQueue, block: Block, count_max: int, cost_bytes_max: int) -> Part | None:
        fetched = held.fetched
        try:
            part = part_of(
                *(block.data, held.queue, block.begin, block.end),
                at=block.at,
                count_max=count_max,
                cost_bytes_max=cost_bytes_max,
            )
        except MalformedRecord as error:
            if fetched.cannot_read():
                self.skipped += 1
                log.error(
                    "%s: what is at offset %d cannot be read and is skipped: %s",
                    *(held.queue, block.begin, error),
                )
            return None
        fetched.gave(part.end_at, part.next_offset)
        if part.is_broken:
            fetched.rewind()
        return part

    def _skip(self, count: int) -> None:
        self.skipped += count
