"""TableSending: rows of a table to their topics, in as few requests as they fit into, several of them under way.

A piece of the table becomes requests as a whole before any of it is sent, so a row that is no message is found in time
for its piece.  Rows that may lie in any queue go to all of them, a request to each in turn.  Those with a sharding key
or a queue go there, where a request waits for the one before it, so that they stay in their order.  After the first
failure nothing more is begun.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bolide.arrow.frames import Frame, frames_of, queue_ids_of, queues_of, rest_of
from bolide.arrow.rows import RowEncoder
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import Outgoing
from bolide.client.results import RowsPartlyStored, SendStatus, TableReceipt
from bolide.client.sending import Sending
from bolide.client.under_way import UnderWay
from bolide.model.errors import BadRow, BolideError, ProtocolError
from bolide.model.limits import (
    SEND_AHEAD_BYTES_MAX,
    SEND_AHEAD_MAX,
    SEND_ROWS_FRAME_BYTES_MAX,
    SEND_ROWS_FRAME_MAX,
)
from bolide.model.message import Property
from bolide.model.names import RETRY_PREFIX
from bolide.model.offsets import MessageQueue
from bolide.net.ticks import pause

if TYPE_CHECKING:
    from bolide.arrow.batches import RecordBatch
    from bolide.arrow.row_columns import Rows
    from bolide.arrow.tables import Pieces


@dataclass(frozen=True, eq=False)
class _Part:
    """A request, and which rows of the table it has."""

    frame: Frame
    queues: list[MessageQueue]
    rows: "Rows"
    base: int

    def places(self) -> Iterator[int]:
        """Keys are counted from one on, so a message's says which row it was."""
        return (self.base + self.rows.place(number - 1) for number in self.frame.numbers)


class TableSending:
    """Pieces are added in their order.

    Args:
        instance: the client.
        sending: the way to the brokers.
        pieces: the table, which cuts its pieces.
        timeout_ms: for each request; the producer's own if None.
        names_messages: whether somebody wants to know the messages' ids.
    """

    def __init__(
        self,
        instance: ClientInstance,
        sending: Sending,
        pieces: "Pieces",
        timeout_ms: int | None,
        *,
        names_messages: bool,
    ) -> None:
        self._random = instance.surroundings.random
        self._sending = sending
        self._pieces = pieces
        self._timeout_ms = sending.time(timeout_ms)
        self._names_messages = names_messages
        self._under_way = UnderWay(SEND_AHEAD_MAX, SEND_AHEAD_BYTES_MAX)
        self._tails: dict[MessageQueue, asyncio.Task[None]] = {}
        self._named: dict[tuple[str, int], MessageQueue] = {}  # one broker's of all queues with this number
        self._open: dict[_Part, None] = {}
        self._taken = 0
        self._stored = self._requests = self._less_safe = 0
        self._trouble: BolideError | None = None

    async def add(self, piece: "RecordBatch") -> None:
        """Take a piece; returns when there is room for more.  Errors of those before it come here, too."""
        try:
            parts = await self._parts(piece)
        except BadRow as error:
            await self._give_up(BadRow(self._taken + error.row, error.column, error.why))
        except BolideError as error:
            await self._give_up(error)
        self._taken += piece.num_rows
        self._open |= dict.fromkeys(parts)
        for part in parts:
            await self._begin(part)

    async def finish(self) -> TableReceipt:
        """Wait until all are stored."""
        await self._under_way.all_done()
        if self._trouble is not None:
            await self._give_up(self._trouble)
        return TableReceipt(self._stored, self._requests, self._less_safe)

    async def abandon(self) -> None:
        """Nobody wants to know any more: end what is under way."""
        await self._under_way.abandon()

    # ---- rows into requests --------------------------------------------------------------------------------

    async def _parts(self, piece: "RecordBatch") -> list[_Part]:
        parts: list[_Part] = []
        for rows in self._pieces.cut(piece):
            queues = await self._sending.queues(rows.topic)
            alone = rows.delayed or rows.topic.startswith(RETRY_PREFIX)
            encoder = RowEncoder(
                f"{self._random.getrandbits(64):016X}",
                queues=len(queues),
                queue_ids=queue_ids_of(queues),
                rows_max=1 if alone else SEND_ROWS_FRAME_MAX,
                size_bytes_max=SEND_ROWS_FRAME_BYTES_MAX,
            )
            frames = frames_of(rows, encoder) + rest_of(rows.topic, encoder)
            parts += [_Part(frame, queues, rows, self._taken) for frame in frames]
            await pause(0)  # others have their turn between the topics
        return parts

    def _queue(self, part: _Part) -> MessageQueue | None:
        """The one where a request must go; None where any will do."""
        choices, is_ordered = queues_of(part.frame.lane, part.queues)
        if not is_ordered:
            return None
        if len(choices) == 1:
            return choices[0]
        return self._named.setdefault(
            (part.frame.topic, choices[0].queue_id), self._random.choice(list(choices))
        )

    def _outgoing(self, frame: Frame) -> Outgoing:
        ids: tuple[str, ...] = ()
        if self._names_messages:
            ids = tuple(pairs[Property.UNIQUE_KEY] for pairs in frame.properties())
        if frame.is_alone:
            return Outgoing(frame.topic, ids, *frame.only_message(), 0, 0)
        return Outgoing(frame.topic, ids, frame.data, "", 0, 0, batch=True)

    # ---- sending -------------------------------------------------------------------------------------------

    async def _begin(self, part: _Part) -> None:
        size = len(part.frame.data)
        await self._under_way.room(size)
        if self._trouble is not None:
            await self._give_up(self._trouble)
        queue = self._queue(part)
        before = None if queue is None else self._tails.get(queue)
        task = await self._under_way.start(self._deliver(part, queue, before), size)
        if queue is not None:
            self._tails[queue] = task

    async def _deliver(
        self, part: _Part, queue: MessageQueue | None, before: "asyncio.Task[None] | None"
    ) -> None:
        if before is not None:
            await asyncio.wait((before,))
        if self._trouble is not None:  # it may have been the one before, and this one would overtake it
            return
        try:
            stored = await self._sending.acknowledged(
                self._outgoing(part.frame), self._timeout_ms, queue=queue
            )
            count = stored.header.msg_id.count(",") + 1
            if count != part.frame.rows:
                raise ProtocolError(f"{part.frame.rows} messages sent, {count} acknowledged")
        except BolideError as error:
            if self._trouble is None:
                self._trouble = error
            return
        del self._open[part]
        self._stored += part.frame.rows
        self._requests += 1
        if stored.status is not SendStatus.SEND_OK:
            self._less_safe += part.frame.rows

    async def _give_up(self, trouble: BolideError) -> None:
        """Let end what is under way, and say what is not stored."""
        self._trouble = trouble if self._trouble is None else self._trouble
        await self._under_way.all_done()
        if not self._stored:
            raise self._trouble
        missing = sorted(place for part in self._open for place in part.places())
        raise RowsPartlyStored(self._stored, missing, self._taken, self._trouble) from self._trouble
