"""Bulk: any number of messages to any topics, in as few requests as they fit into, several of them under way.

Messages that may lie in any queue go to all of them, a batch to each in turn.  Those with a sharding key go to the
queue of the key, where a batch waits for the one before it, so that they stay in their order.  What cannot be part of a
batch, or would be compressed, goes alone.  After the first failure nothing more is begun.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bolide.client.gather import SendReceipt
from bolide.client.outgoing import Outgoing, alone_because, batch_item, batch_of
from bolide.client.preparation import Preparation
from bolide.client.results import PartlyStored
from bolide.client.sending import Sending
from bolide.client.under_way import UnderWay
from bolide.model.errors import BolideError
from bolide.model.limit import KIB
from bolide.model.limits import SEND_AHEAD_BYTES_MAX, SEND_AHEAD_MAX
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.rules.choose import hashed

BATCH_BYTES = 256 * KIB
"""A batch that is as large goes; larger ones are hardly faster, and keep others waiting."""


@dataclass(slots=True)
class _Lane:
    """What goes the same way: to one queue in its order, or to any."""

    queue: MessageQueue | None
    places: list[int] = field(default_factory=list)
    messages: list[Outgoing] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    seen: list[Message] = field(default_factory=list)
    """The same as the application gave them, where its hooks look at them."""
    size: int = 0
    tail: "asyncio.Task[None] | None" = None


class Bulk:
    """Messages are added in their order; `finish` gives the receipts in the same.

    Args:
        sending: the way to the brokers.
        preparation: makes messages ready.
        timeout_ms: for each request; the producer's own if None.
    """

    def __init__(self, sending: Sending, preparation: Preparation, timeout_ms: int | None) -> None:
        self._sending = sending
        self._preparation = preparation
        self._alone_from_bytes = min(preparation.pack_from_bytes, BATCH_BYTES)
        self._timeout_ms = sending.time(timeout_ms)
        self._receipts: list[SendReceipt | None] = []
        self._lanes: dict[str | MessageQueue, _Lane] = {}
        self._under_way = UnderWay(SEND_AHEAD_MAX, SEND_AHEAD_BYTES_MAX // 2)
        self._collected_bytes = 0
        self._trouble: BolideError | None = None

    async def add(self, messages: Iterable[Message]) -> None:
        """Take messages; returns when there is room for more.  Errors of those before them come here, too."""
        for message in messages:
            try:
                outgoing = self._preparation.prepared(message)
                lane = await self._lane(outgoing)
            except BolideError as error:
                self._receipts.append(None)
                self._note(error)
            else:
                await self._take(message, outgoing, lane)
            if self._trouble is not None:
                await self._give_up()

    async def finish(self) -> list[SendReceipt]:
        """Wait until all are stored."""
        for lane in self._lanes.values():
            await self._send(lane)
        await self._under_way.all_done()
        if self._trouble is not None:
            await self._give_up()
        return [receipt for receipt in self._receipts if receipt is not None]

    async def abandon(self) -> None:
        """Nobody wants to know any more: end what is under way."""
        await self._under_way.abandon()

    # ---- collecting ----------------------------------------------------------------------------------------

    async def _lane(self, outgoing: Outgoing) -> _Lane:
        key: str | MessageQueue = outgoing.topic
        if outgoing.sharding_key is not None:
            key = hashed(outgoing.sharding_key, await self._sending.queues(outgoing.topic))
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key if isinstance(key, MessageQueue) else None)
        return lane

    async def _take(self, message: Message, outgoing: Outgoing, lane: _Lane) -> None:
        place = len(self._receipts)
        self._receipts.append(None)
        if len(outgoing.body) >= self._alone_from_bytes or alone_because(message, outgoing):
            await self._send(lane)  # what came before it
            await self._begin(lane, await self._preparation.packed(outgoing), [place], [message])
            return
        item = batch_item(outgoing)
        lane.places.append(place)
        lane.messages.append(outgoing)
        if self._sending.is_watched:
            lane.seen.append(message)
        lane.items.append(item)
        lane.size += len(item)
        self._collected_bytes += len(item)
        if lane.size >= BATCH_BYTES:
            await self._send(lane)
        elif self._collected_bytes > SEND_AHEAD_BYTES_MAX // 2:
            for one in self._lanes.values():  # many topics, and little for each
                await self._send(one)

    async def _send(self, lane: _Lane) -> None:
        """Let go what a lane has collected."""
        if not lane.items:
            return
        batch, places, seen = batch_of(lane.messages, lane.items), lane.places, lane.seen
        self._collected_bytes -= lane.size
        lane.places, lane.messages, lane.items, lane.seen, lane.size = [], [], [], [], 0
        await self._begin(lane, batch, places, seen)

    # ---- sending -------------------------------------------------------------------------------------------

    async def _begin(
        self, lane: _Lane, outgoing: Outgoing, places: Sequence[int], seen: Sequence[Message]
    ) -> None:
        size = len(outgoing.body)
        await self._under_way.room(size)
        if self._trouble is not None:
            return
        task = await self._under_way.start(self._deliver(outgoing, lane.queue, places, seen, lane.tail), size)
        if lane.queue is not None:
            lane.tail = task

    async def _deliver(
        self,
        outgoing: Outgoing,
        queue: MessageQueue | None,
        places: Sequence[int],
        seen: Sequence[Message],
        before: "asyncio.Task[None] | None",
    ) -> None:
        if before is not None:
            await asyncio.wait((before,))
            if self._trouble is not None:  # it may have been the one before, and this one would overtake it
                return
        try:
            receipts = await self._sending.watched(
                seen, None, lambda: self._sending.store(outgoing, self._timeout_ms, queue=queue)
            )
        except BolideError as error:
            self._note(error)
            return
        for place, receipt in zip(places, receipts, strict=True):
            self._receipts[place] = receipt

    def _note(self, error: BolideError) -> None:
        if self._trouble is None:
            self._trouble = error

    async def _give_up(self) -> None:
        """Let end what is under way, and say what is stored."""
        assert self._trouble is not None
        await self._under_way.all_done()
        if any(self._receipts):
            raise PartlyStored(self._receipts, self._trouble) from self._trouble
        raise self._trouble
