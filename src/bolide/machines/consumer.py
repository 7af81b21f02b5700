"""ProcessQueue: what a consumer holds of one queue, from the pull to the end of the work on it.

Answers four questions: what goes to the listener next, whether there is room to pull more, how far the group's offset
may move, and which work takes too long.  The invariant: the offset never passes a message that is neither done nor in
somebody else's hands, so a crash repeats messages and never loses one.  A failed message goes back to its broker, and
has succeeded here when the broker has it.  Only those that nobody takes back stay, and come again after a pause, each
alone; messages behind them go on meanwhile, until the span limit stops the pulls.

A queue that is worked on in order is an `OrderedQueue` (`orderly.py`).
"""

import heapq
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from bolide.model.limits import (
    CONSUMER_CACHE_BYTES_MAX,
    QUEUE_CACHE_BYTES_MAX,
    QUEUE_CACHE_MESSAGES_MAX,
    QUEUE_SPAN_MAX,
)
from bolide.model.offsets import GroupOffset, QueueOffset
from bolide.record.stored import StoredMessage
from bolide.rules.retry import one_more

RETRY_PAUSE_MS = 5_000
"""How long a failed message waits that no broker takes back (RocketMQ: submitConsumeRequestLater), and one whose work
ended with an error of our own."""

OVERDUE_MAX = 16
"""Messages of one queue that are given up at a time because their work takes too long."""


class Held(NamedTuple):
    """What is held of a queue: messages, their bytes, the offsets of the first and the last, how many are at work."""

    messages: int
    size_bytes: int
    first: int
    last: int
    at_work: int


class Cache:
    """How much the queues of one consumer hold together: many queues that each have room may be too much."""

    __slots__ = ("_bytes_max", "size_bytes")

    def __init__(self, bytes_max: int = CONSUMER_CACHE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self.size_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= self._bytes_max


class ProcessQueue:
    """The messages of one queue between pull and success.  Pulls must come in the order of the queue."""

    def __init__(
        self,
        start: GroupOffset,
        cache: Cache | None = None,
        /,
        *,
        messages_max: int = QUEUE_CACHE_MESSAGES_MAX,
        bytes_max: int = QUEUE_CACHE_BYTES_MAX,
        span_max: int = QUEUE_SPAN_MAX,
    ) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._span_max = span_max
        self._cache = cache or Cache()
        self._next = start
        self._open: dict[QueueOffset, int] = {}  # not yet succeeded: offset to bytes, in queue order
        self._bytes = 0
        self._fresh: deque[StoredMessage] = deque()
        self._failed: list[tuple[int, QueueOffset, StoredMessage]] = []  # a heap by due time
        self._begun: dict[
            QueueOffset, tuple[int, StoredMessage]
        ] = {}  # at work and since when, the oldest first

    # ---- pulling -------------------------------------------------------------------------------------------

    @property
    def next_offset(self) -> GroupOffset:
        """Where to pull next."""
        return self._next

    def pulled(self, messages: Sequence[StoredMessage], next_offset: GroupOffset) -> None:
        """A pull answer: the messages that passed the filter, and where the broker says to go on."""
        assert next_offset >= self._next, (next_offset, self._next)
        for message in messages:
            if message.queue_offset in self._open:
                continue  # brings nothing new: in a repaired store a copy may stand in the place of a lost message
            self._open[message.queue_offset] = message.cost_bytes
            self._grow(message.cost_bytes)
            self._fresh.append(message)
        self._next = next_offset

    def moved_back(self, next_offset: GroupOffset) -> None:
        """The broker's queue ends before our place.  Only for a queue with nothing open."""
        assert self.is_idle, "messages of the old place are still open"
        self._next = next_offset

    @property
    def brake(self) -> str | None:
        """Why not to pull now, or None."""
        if len(self._open) >= self._messages_max:
            return f"{len(self._open)} messages are waiting for the listener"
        if self._bytes >= self._bytes_max:
            return f"{self._bytes} bytes are waiting for the listener"
        if self._next - self.commit_offset > self._span_max:
            return f"the message at offset {self.commit_offset} holds back those behind it"
        if self.is_crowded_out:
            return "the messages of all queues together leave no room"
        return None

    @property
    def is_crowded_out(self) -> bool:
        """Whether there is no room because of all queues together: it may come from work on another one."""
        return self._cache.is_full

    def let_go(self) -> None:
        """What is left of it counts for the consumer no more."""
        self._cache.size_bytes -= self._bytes
        self._cache = Cache()

    def _grow(self, size_bytes: int) -> None:
        self._bytes += size_bytes
        self._cache.size_bytes += size_bytes

    # ---- working -------------------------------------------------------------------------------------------

    def take(self, now_ms: int, count_max: int) -> list[StoredMessage]:
        """What the listener gets next: a failed message that is due, alone, or the next fresh ones."""
        if self._failed and self._failed[0][0] <= now_ms:
            taken = [heapq.heappop(self._failed)[2]]
        else:
            taken = [self._fresh.popleft() for _ in range(min(count_max, len(self._fresh)))]
        for message in taken:
            self._begun[message.queue_offset] = (now_ms, message)
        return taken

    def still_open(self, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
        """Those that were not given up meanwhile."""
        return [message for message in messages if message.queue_offset in self._open]

    def succeeded(self, messages: Sequence[StoredMessage]) -> None:
        """The work on them is done, or theirs to do who has them now.  What was given up before stays so."""
        for message in messages:
            self._begun.pop(message.queue_offset, None)
            self._grow(-self._open.pop(message.queue_offset, 0))

    def failed(self, messages: Sequence[StoredMessage], now_ms: int) -> None:
        """Keep the messages for another try."""
        for message in self.still_open(messages):
            self._begun.pop(message.queue_offset, None)
            heapq.heappush(
                self._failed, (now_ms + RETRY_PAUSE_MS, message.queue_offset, tried_again(message))
            )

    def unsettled(self, messages: Sequence[StoredMessage], now_ms: int) -> None:
        """An error came before it was known what becomes of them: those that are still at work come again."""
        self.failed([message for message in messages if message.queue_offset in self._begun], now_ms)

    def has_work(self, now_ms: int) -> bool:
        """Whether `take` would return something."""
        return bool(self._fresh) or bool(self._failed and self._failed[0][0] <= now_ms)

    @property
    def retry_due_ms(self) -> int | None:
        """When something comes again that waits for its time, or None."""
        return self._failed[0][0] if self._failed else None

    def overdue(self, now_ms: int, timeout_ms: int) -> list[StoredMessage]:
        """Some messages on which the work takes too long, those that were begun first."""
        late: list[StoredMessage] = []
        for begun_ms, message in self._begun.values():
            if now_ms - begun_ms < timeout_ms or len(late) == OVERDUE_MAX:
                break
            late.append(message)
        return late

    @property
    def is_at_work(self) -> bool:
        """Whether the listener has something of it."""
        return bool(self._begun)

    # ---- progress ------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether everything that was pulled has succeeded."""
        return not self._open

    @property
    def held(self) -> Held:
        """What an operator may want to know."""
        offsets = (next(iter(self._open)), next(reversed(self._open))) if self._open else (0, 0)
        return Held(len(self._open), self._bytes, *offsets, len(self._begun))

    @property
    def commit_offset(self) -> GroupOffset:
        """Everything before it has succeeded: the smallest open message, or the place of the next pull."""
        for offset in self._open:
            return GroupOffset(offset)
        return self._next


def tried_again(message: StoredMessage) -> StoredMessage:
    """The message, with one more failure counted."""
    return message.replaced(reconsume_times=one_more(message.reconsume_times))
