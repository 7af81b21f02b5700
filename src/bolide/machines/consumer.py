"""ProcessQueue: what a consumer holds of one queue, from the pull to the end of the work on it.

Answers three questions: what goes to the listener next, whether there is room to pull more, and how far the group's
offset may move.  The invariant: the offset never passes a message whose work has not succeeded, so a crash repeats
messages and never loses one.  Failed messages stay here and come again, each alone, after a growing pause; messages
behind them go on meanwhile, until the span limit stops the pulls.
"""

import dataclasses
import heapq
from collections import deque
from collections.abc import Sequence

from bolide.model.limits import (
    CONSUMER_CACHE_BYTES_MAX,
    QUEUE_CACHE_BYTES_MAX,
    QUEUE_CACHE_MESSAGES_MAX,
    QUEUE_SPAN_MAX,
)
from bolide.model.message import StoredMessage
from bolide.model.offsets import GroupOffset, QueueOffset

RETRY_PAUSES_MS = (1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
"""How long a failed message waits, by the number of failures; the last pause repeats."""


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
        self._failures: dict[QueueOffset, int] = {}

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
            return [heapq.heappop(self._failed)[2]]
        return [self._fresh.popleft() for _ in range(min(count_max, len(self._fresh)))]

    def succeeded(self, messages: Sequence[StoredMessage]) -> None:
        for message in messages:
            self._grow(-self._open.pop(message.queue_offset))
            self._failures.pop(message.queue_offset, None)

    def failed(self, messages: Sequence[StoredMessage], now_ms: int) -> int:
        """Keep the messages for another try; returns the longest pause."""
        longest_ms = 0
        for message in messages:
            failures = self._failures.get(message.queue_offset, 0)
            self._failures[message.queue_offset] = failures + 1
            pause_ms = RETRY_PAUSES_MS[min(failures, len(RETRY_PAUSES_MS) - 1)]
            again = dataclasses.replace(message, reconsume_times=message.reconsume_times + 1)
            heapq.heappush(self._failed, (now_ms + pause_ms, message.queue_offset, again))
            longest_ms = max(longest_ms, pause_ms)
        return longest_ms

    def has_work(self, now_ms: int) -> bool:
        """Whether `take` would return something."""
        return bool(self._fresh) or bool(self._failed and self._failed[0][0] <= now_ms)

    @property
    def retry_due_ms(self) -> int | None:
        """When the next failed message comes again, or None."""
        return self._failed[0][0] if self._failed else None

    # ---- progress ------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether everything that was pulled has succeeded."""
        return not self._open

    @property
    def commit_offset(self) -> GroupOffset:
        """Everything before it has succeeded: the smallest open message, or the place of the next pull."""
        for offset in self._open:
            return GroupOffset(offset)
        return self._next
