"""FetchedQueue: what a polling consumer has fetched of one queue and not given out yet, and what to fetch next.

Answers three questions: what may be asked for now, what is given out next, and how far the group's offset may move.
Blocks stay as the broker sent them; whoever gives them out decodes as much as is wanted.

A pull takes a round trip, and some brokers give 32 messages for it, however many are asked for.  Offsets of a queue are
consecutive, so the next pulls need not wait for the answers of those before: an *open* ask takes what the broker gives;
where that ends before the queue does, it shows how far a pull reaches, and then pieces of that size are asked for, some
at a time.  From time to time, and when a piece comes short, the line runs empty and an open ask learns the reach anew.

The line of asks is the truth: an answer to an ask that does not stand in it any more is dropped.  So a seek, or a
broker that moves us, needs to cancel nothing.
"""

from collections import deque
from dataclasses import dataclass

from bolide.machines.consumer import Cache
from bolide.model.limit import KIB
from bolide.model.limits import (
    POLL_PULLS_AHEAD_MAX,
    POLL_QUEUE_BYTES_MAX,
    POLL_QUEUE_MESSAGES_MAX,
    PULL_BULK_MESSAGES_MAX,
)
from bolide.model.offsets import GroupOffset

AHEAD_BYTES = 512 * KIB
"""Where one answer brings as much, the next pull may as well wait for it."""

RELEARN_AFTER = 64
"""Pieces that are asked for before the reach of a pull is looked at again: messages may have become smaller."""

ALONE_TRIES = 3
"""How often a message that cannot be read is asked for alone, before it is passed over."""


@dataclass(eq=False, slots=True)
class Block:
    """Records as they came: the messages from `begin` to before `end`; those before the byte `at` were given out."""

    begin: GroupOffset
    end: GroupOffset
    data: bytes
    at: int = 0


@dataclass(eq=False, slots=True)
class Ask:
    """A pull: `count` messages from `begin` on; an open one takes fewer and goes on from there."""

    begin: GroupOffset
    count: int
    is_open: bool
    may_wait: bool
    """Whether the broker may hold it until something comes."""
    is_under_way: bool = True
    answer: Block | None = None

    @property
    def end(self) -> GroupOffset:
        return GroupOffset(self.begin + self.count)


class FetchedQueue:
    """One queue between the pulls and the polls."""

    def __init__(
        self,
        start: GroupOffset,
        cache: Cache,
        /,
        *,
        bytes_max: int = POLL_QUEUE_BYTES_MAX,
        messages_max: int = POLL_QUEUE_MESSAGES_MAX,
    ) -> None:
        self._cache = cache
        self._bytes_max = bytes_max
        self._messages_max = messages_max
        self._blocks: deque[Block] = deque()
        self._asks: deque[Ask] = deque()  # behind the blocks, in the order of the queue
        self._next = start  # where the next ask begins
        self._queue_end = start  # as the last answer told it
        self._bytes = 0
        self._reach = 0  # how many offsets a pull brings where there are more; 0 for not known
        self._ahead_max = 1
        self._pieces = 0  # asked for since the reach was learned
        self._tries = 0  # answers in a row whose first message could not be read
        self.is_paused = False
        self.given = start
        """Everything before it has been given out."""
        self.done = start
        """Everything before it counts as worked on."""

    # ---- asking --------------------------------------------------------------------------------------------

    def ask(self, *, whole: bool) -> Ask | None:
        """What to pull now, or None.  `whole`: no message is filtered out, so every offset in reach comes."""
        if self.is_paused or self.is_full:
            return None
        for ask in self._asks:
            if not ask.is_under_way and ask.answer is None:
                ask.is_under_way = True
                return ask
        if whole and self._may_go_ahead:
            self._pieces += 1
            ask = Ask(self._next, self._reach, is_open=False, may_wait=False)
            self._next = ask.end
        elif not self._asks:
            count = 1 if self.is_unread else PULL_BULK_MESSAGES_MAX
            ask = Ask(self._next, count, is_open=True, may_wait=True)
        else:
            return None
        self._asks.append(ask)
        return ask

    @property
    def _may_go_ahead(self) -> bool:
        return (
            0 < self._reach <= self._queue_end - self._next
            and len(self._asks) < self._ahead_max
            and self._pieces < RELEARN_AFTER
            and not self.is_unread
            and not (self._asks and self._asks[-1].is_open)
        )

    @property
    def is_full(self) -> bool:
        """Whether so much waits that nothing more is fetched."""
        return (
            self._bytes >= self._bytes_max
            or self._next - self.given >= self._messages_max
            or self.is_crowded_out
        )

    @property
    def is_crowded_out(self) -> bool:
        """Whether there is no room because of all queues together."""
        return self._cache.is_full

    @property
    def is_unread(self) -> bool:
        """Whether the next message could not be read, and is asked for alone."""
        return self._tries > 0

    # ---- answers -------------------------------------------------------------------------------------------

    def answered(
        self, ask: Ask, data: bytes, next_offset: GroupOffset, queue_end: int, *, is_moved: bool = False
    ) -> None:
        """What a pull brought.  `is_moved`: its offset is outside the queue, which goes on at `next_offset`."""
        if ask not in self._asks:
            return
        ask.is_under_way = False
        self._queue_end = GroupOffset(queue_end)
        if is_moved:
            self._moved(ask, next_offset)
        elif next_offset <= ask.begin:
            self._brought_nothing(ask)
        elif data and self.is_crowded_out:
            return  # others were faster; there will be room later, and the broker still has it
        else:
            self._brought(ask, data, next_offset)
            self._line_up()

    def failed(self, ask: Ask) -> None:
        """No answer: it is to be asked again."""
        ask.is_under_way = False

    def _brought_nothing(self, ask: Ask) -> None:
        if ask.is_open:
            self._asks.clear()  # an open one is alone
        else:
            ask.may_wait = True  # counted and not shown yet

    def _brought(self, ask: Ask, data: bytes, next_offset: GroupOffset) -> None:
        if ask.is_open:
            self._next = next_offset
            self._learn(ask, len(data))
        elif next_offset < ask.end:
            rest = Ask(next_offset, ask.end - next_offset, is_open=False, may_wait=True, is_under_way=False)
            self._asks.insert(self._asks.index(ask) + 1, rest)
            self._pieces = RELEARN_AFTER
        elif next_offset > ask.end:  # the offsets are not consecutive after all
            self._cut_behind(ask)
            self._next = next_offset
        ask.answer = Block(ask.begin, next_offset, data)
        self._grow(len(data))

    def _learn(self, ask: Ask, size_bytes: int) -> None:
        """How far a pull reaches, if it was the broker that stopped it: not we, and not the end of the queue."""
        self._ahead_max = min(POLL_PULLS_AHEAD_MAX, AHEAD_BYTES // max(1, size_bytes))
        is_told = size_bytes > 0 and self._next < min(ask.end, self._queue_end)
        self._reach = self._next - ask.begin if is_told and self._ahead_max > 1 else 0
        self._pieces = 0

    def _moved(self, ask: Ask, next_offset: GroupOffset) -> None:
        if next_offset < ask.begin:  # the queue was cut or made again, or somebody has set the group back
            self.seek(next_offset)
            self.done = min(self.done, next_offset)
        elif next_offset == ask.begin:
            self._brought_nothing(ask)
        else:  # what was before has expired; what was fetched of it is as good as ever
            self._cut_behind(ask)
            self._next = next_offset
            ask.answer = Block(ask.begin, next_offset, b"")
            self._line_up()

    def _cut_behind(self, ask: Ask) -> None:
        while self._asks[-1] is not ask:
            dropped = self._asks.pop()
            if dropped.answer is not None:
                self._grow(-len(dropped.answer.data))

    def _line_up(self) -> None:
        """Answers that have nothing missing before them become blocks."""
        while self._asks and (block := self._asks[0].answer) is not None:
            self._asks.popleft()
            if self._blocks and not self._blocks[-1].data and not block.data:
                self._blocks[-1].end = block.end
            else:
                self._blocks.append(block)

    # ---- giving out ----------------------------------------------------------------------------------------

    @property
    def head(self) -> Block | None:
        """What is given out next, perhaps without a message."""
        return None if self.is_paused or not self._blocks else self._blocks[0]

    def gave(self, end_at: int, next_offset: GroupOffset) -> None:
        """Of the first block everything before this byte, and before this offset, was given out."""
        block = self._blocks[0]
        self._tries = 0
        if end_at >= len(block.data):
            self._blocks.popleft()
            self._grow(-len(block.data))
            next_offset = block.end
        else:
            block.at, block.begin = end_at, next_offset
        self.given = next_offset

    def cannot_read(self) -> bool:
        """The first block does not begin with a message.  It is asked for again, and at last passed over: then True."""
        block = self._blocks[0]
        self._tries += 1
        if self._tries <= ALONE_TRIES:
            self.rewind()
            return False
        self.gave(len(block.data), block.end)
        return True

    def rewind(self) -> None:
        """Forget what was fetched and not given out; it is asked for again."""
        self._asks.clear()
        self._blocks.clear()
        self._grow(-self._bytes)
        self._next = self.given
        self._reach = 0

    def seek(self, offset: GroupOffset) -> None:
        """Go on at another place."""
        self.given = offset
        self.rewind()
        self._tries = 0

    def let_go(self) -> None:
        """Another consumer has the queue now: nothing of it is given out any more."""
        self.rewind()
        self._cache = Cache()

    def _grow(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self._cache.size_bytes += size_bytes
