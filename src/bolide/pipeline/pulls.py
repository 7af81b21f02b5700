"""The blocks of one range of a queue, in order, with pulls running ahead.

A pull takes a round trip, and brokers other than ours give 32 messages for it.  Offsets in a queue are consecutive,
so the next pulls need not wait for the answers of those before: after a first pull has shown how far one reaches,
the range is cut into pieces of that size and several are asked for at a time.  A piece that comes short, because its
messages are larger, is asked for again from where it stopped.

What has come and is not read yet is bounded in bytes: when there is enough of it, a piece ends with the pull that it
has under way, and the rest of it is asked for when its turn comes.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bolide.client.results import PullBlock, PullStatus
from bolide.model.errors import CallTimeout, ConnectionLost, ProtocolError, RouteNotFound
from bolide.model.limits.spark import SPARK_AHEAD_BYTES_MAX, SPARK_PULLS_AHEAD_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.ticks import pause
from bolide.pipeline.errors import DataLost, OffsetsExpired, QueueRecreated
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.ranges import QueueRange, report_loss

PULL_MESSAGES_MAX = 32_768
GROW_AFTER_PIECES = 16
TRIES = 12
PAUSE_MS = 300
PAUSE_MAX_MS = 1_000
"""The driver has just reached the broker, so one that does not answer may be starting again: some seconds."""

LATE_MS = 5_000
"""How long to wait for a message that the broker counted but does not show yet."""


class Pulling(Protocol):
    """What is needed of `client.queue_calls.QueueCalls`."""

    async def pull(
        self,
        queue: MessageQueue,
        offset: GroupOffset,
        subscription: Subscription,
        *,
        messages_max: int,
        bytes_max: int | None = None,
        bulk: bool = False,
        wait_ms: int = 0,
    ) -> PullBlock: ...


class Block(NamedTuple):
    """The records of one answer: what the broker has from `begin` to before `end`, as far as it is wanted."""

    begin: int
    end: int
    data: bytes


@dataclass(frozen=True)
class Piece:
    """Blocks that hold the messages from `begin` to before `end`; with a filter on tags, perhaps later ones too."""

    begin: int
    end: int
    blocks: list[Block]
    pulls: int
    first_span: int

    @property
    def size_bytes(self) -> int:
        return sum(len(block.data) for block in self.blocks)


@dataclass(frozen=True)
class Asked:
    """A piece on its way, and where it should end."""

    end: int
    fetching: "asyncio.Task[Piece]"


class BlockReader:
    """Reads one range: `next` until it gives None, then `close`."""

    def __init__(self, calls: Pulling, wanted: QueueRange, options: ReadOptions) -> None:
        self._calls = calls
        self._wanted = wanted
        self._options = options
        self._subscription = options.wanted.subscription(wanted.queue.topic)
        self._asked: deque[Asked] = deque()
        self._asked_to = wanted.begin
        self._span = 0
        self._span_kept = 0
        self._ahead_max = 2
        self._held_bytes = 0

    async def close(self) -> None:
        """End the pulls that nobody waits for any more."""
        for asked in self._asked:
            asked.fetching.cancel()
        await asyncio.gather(*(asked.fetching for asked in self._asked), return_exceptions=True)

    async def next(self) -> Piece | None:
        """The next piece, perhaps without a block; None when the range has been read."""
        if self._span == 0 and self._asked_to < self._wanted.end:
            piece = await self._fetch(self._asked_to, self._wanted.end, once=True)
            self._asked_to = end = piece.end
        elif self._asked:
            asked = self._asked.popleft()
            piece, end = await asked.fetching, asked.end
        else:
            return None
        self._held_bytes -= piece.size_bytes
        if piece.end < end:
            self._asked.appendleft(self._ask(piece.end, end))
        self._learn(piece, end)
        self._ask_ahead()  # now, so that the broker works while the caller does
        return piece

    def _learn(self, piece: Piece, end: int) -> None:
        """How far a pull reaches, from the last one; a span that was always filled at once is tried larger."""
        self._span_kept += 1
        if piece.pulls > 1 or piece.end < end or self._span == 0:
            self._span, self._span_kept = piece.first_span, 0
        elif self._span_kept >= GROW_AFTER_PIECES:
            self._span, self._span_kept = min(self._span * 2, PULL_MESSAGES_MAX), 0
        self._ahead_max = max(
            2, min(SPARK_PULLS_AHEAD_MAX, SPARK_AHEAD_BYTES_MAX // max(1, piece.size_bytes))
        )

    def _ask_ahead(self) -> None:
        while self._asked_to < self._wanted.end and len(self._asked) < self._ahead_max:
            if self._asked and self._has_enough:
                break
            end = min(self._asked_to + self._span, self._wanted.end)
            self._asked.append(self._ask(self._asked_to, end))
            self._asked_to = end

    def _ask(self, begin: int, end: int) -> Asked:
        return Asked(end, asyncio.get_running_loop().create_task(self._fetch(begin, end)))

    @property
    def _has_enough(self) -> bool:
        return self._held_bytes >= SPARK_AHEAD_BYTES_MAX

    async def again(self, begin: int, *, alone: bool) -> Piece:
        """One pull from another offset on, out of turn, for who could not use what came with others.

        `alone` asks for one message: whatever the answer has is it, and it lies right before the answer's end.
        """
        messages_max = 1 if alone else PULL_MESSAGES_MAX
        piece = await self._fetch(begin, self._wanted.end, once=True, messages_max=messages_max)
        self._held_bytes -= piece.size_bytes
        return piece

    # ---- one piece -----------------------------------------------------------------------------------------

    async def _fetch(
        self, begin: int, end: int, *, once: bool = False, messages_max: int = PULL_MESSAGES_MAX
    ) -> Piece:
        blocks: list[Block] = []
        offset, pulls, first_span = begin, 0, 0
        while offset < end and not (pulls and (once or self._has_enough)):
            count = min(end - offset, messages_max)
            block = await self._pull(offset, count)
            if block.status is PullStatus.NO_NEW_MESSAGE and block.next_offset <= offset:
                # Counted but not shown: a broker that syncs its disk shows it in a moment.
                block = await self._pull(offset, count, wait_ms=LATE_MS)
            following = self._go_on(offset, end, block)
            offset_next = min(following, end)
            if block.data:
                blocks.append(Block(offset, following, block.data))
                self._held_bytes += len(block.data)
            pulls += 1
            first_span = first_span or offset_next - offset
            offset = offset_next
        return Piece(begin, offset, blocks, pulls, first_span)

    async def _pull(self, offset: int, messages_max: int, *, wait_ms: int = 0) -> PullBlock:
        """One pull; connections that break are made again a few times."""
        for attempt in range(1, TRIES + 1):
            try:
                return await self._calls.pull(
                    self._wanted.queue,
                    GroupOffset(offset),
                    self._subscription,
                    messages_max=messages_max,
                    bytes_max=self._options.pull_bytes_max,
                    bulk=True,
                    wait_ms=wait_ms,
                )
            except (ConnectionLost, CallTimeout, RouteNotFound):
                if attempt == TRIES:
                    raise
                await pause(min(PAUSE_MS * attempt, PAUSE_MAX_MS) / 1000)
        raise AssertionError("every try returns or raises")

    def _go_on(self, offset: int, end: int, block: PullBlock) -> int:
        """The next offset that the broker has, perhaps behind `end`.

        What an answer without messages leaves out has been reported; one with messages is held against its offsets by
        whoever reads it (`task.py`).
        """
        loss = self._loss(offset, block)
        if loss is not None:
            report_loss(loss, fail=self._options.fail_on_data_loss)
        if isinstance(loss, QueueRecreated):
            return end
        is_found = block.status is PullStatus.FOUND
        offset_next = block.next_offset if is_found else max(block.next_offset, block.min_offset)
        if offset_next <= offset:
            raise ProtocolError(f"{self._wanted.queue}: the broker does not go on at offset {offset}")
        return offset_next

    def _loss(self, offset: int, block: PullBlock) -> DataLost | None:
        queue = self._wanted.queue
        if block.status is PullStatus.FOUND:
            return None
        if offset < block.min_offset:
            return OffsetsExpired(
                f"{queue}: the messages from offset {offset} to {block.min_offset} have expired during the read"
            )
        if block.status is PullStatus.NO_MATCHED_MESSAGE:
            if self._options.wanted.leaves_out:
                return None
            return DataLost(
                f"{queue}: the broker does not give the messages from offset {offset} to {block.next_offset}: they are"
                " being deleted by retention, or are damaged on its disk (its log says so, and `bolide store verify`)"
            )
        if block.next_offset > offset:
            return DataLost(f"{queue}: the messages from offset {offset} to {block.next_offset} are missing")
        return QueueRecreated(
            f"{queue} ends at {block.max_offset}, before offset {offset} that it had when the read was planned: "
            "the topic was deleted and made again"
        )
