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

from bolide.model.message import StoredMessage
from bolide.model.offsets import GroupOffset, QueueOffset

# Defaults of the original's push consumer (pullThresholdForQueue, …SizeForQueue, consumeConcurrentlyMaxSpan).
CACHED_MESSAGES_MAX = 1000
CACHED_BYTES_MAX = 100 * 1024 * 1024
SPAN_MAX = 2000

RETRY_PAUSES_MS = (1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
"""How long a failed message waits, by the number of failures; the last pause repeats."""


class ProcessQueue:
    """The messages of one queue between pull and success.  Pulls must come in the order of the queue."""

    def __init__(
        self,
        start: GroupOffset,
        *,
        messages_max: int = CACHED_MESSAGES_MAX,
        bytes_max: int = CACHED_BYTES_MAX,
        span_max: int = SPAN_MAX,
    ) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._span_max = span_max
        self._next = start
        self._open: dict[QueueOffset, int] = {}  # not yet succeeded: offset to body size, in queue order
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
            self._open[message.queue_offset] = len(message.body)
            self._bytes += len(message.body)
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
        return None

    # ---- working -------------------------------------------------------------------------------------------

    def take(self, now_ms: int, count_max: int) -> list[StoredMessage]:
        """What the listener gets next: a failed message that is due, alone, or the next fresh ones."""
        if self._failed and self._failed[0][0] <= now_ms:
            return [heapq.heappop(self._failed)[2]]
        return [self._fresh.popleft() for _ in range(min(count_max, len(self._fresh)))]

    def succeeded(self, messages: Sequence[StoredMessage]) -> None:
        for message in messages:
            self._bytes -= self._open.pop(message.queue_offset)
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
