"""OrderedQueue: what a consumer holds of one queue whose messages it works on in their order, one call at a time.

Beside what every `ProcessQueue` answers: whether the queue is still ours to work on.  The broker gives its lock to one
member; the member asks again every 20 s and trusts it for 30 s, half of what the broker does.  So while brokers answer
nothing, work ends before anybody else can have the queue.  A lock that may have been another's meanwhile is worth
nothing, though it is ours again: what is held here is old then, and so is where we are.

Failed messages go back to the front and wait there, and everything behind them waits too.  With commits by hand, what
is done and not committed stays held, and comes again after a rollback.
"""

from collections.abc import Sequence

from bolide.machines.consumer import RETRY_PAUSE_MS, Cache, ProcessQueue, tried_again
from bolide.model.offsets import GroupOffset
from bolide.record.stored import StoredMessage

TRUST_MS = 30_000
"""How long a lock is believed in after it was asked for (RocketMQ: REBALANCE_LOCK_MAX_LIVE_TIME)."""

LIFETIME_MS = 60_000
"""How long brokers keep a lock that nobody asks for."""


class OrderedQueue(ProcessQueue):
    """`locked_ms` is when the lock was asked for that the broker has granted; None for a queue that needs none."""

    def __init__(
        self,
        start: GroupOffset,
        cache: Cache | None = None,
        /,
        *,
        locked_ms: int | None = None,
        **limits: int,
    ) -> None:
        super().__init__(start, cache, **limits)
        self.locked_ms = locked_ms
        self._is_lost = False
        self._taken: list[StoredMessage] = []
        self._kept: list[StoredMessage] = []  # done, and not committed
        self._due_ms = 0

    # ---- the lock ------------------------------------------------------------------------------------------

    def is_trusted(self, now_ms: int) -> bool:
        """Whether nobody else can have the queue."""
        return not self._is_lost and (self.locked_ms is None or now_ms - self.locked_ms <= TRUST_MS)

    def renewed(self, asked_ms: int, now_ms: int) -> bool:
        """The broker has granted the lock again, which was asked for then; whether it was ours all the time."""
        if self.locked_ms is not None and now_ms - self.locked_ms > LIFETIME_MS:
            return False
        self.locked_ms = asked_ms
        return True

    def lost(self) -> None:
        """The queue is, or was, another's: nothing of it is ours to work on, or to tell."""
        self._is_lost = True

    # ---- working -------------------------------------------------------------------------------------------

    def take(self, now_ms: int, count_max: int) -> list[StoredMessage]:
        """The next messages, unless the listener has some, a pause is not over, or the queue may be another's."""
        if not self.has_work(now_ms):
            return []
        self._taken = super().take(now_ms, count_max)
        return list(self._taken)

    def has_work(self, now_ms: int) -> bool:
        return bool(self._fresh) and not self._taken and now_ms >= self._due_ms and self.is_trusted(now_ms)

    @property
    def retry_due_ms(self) -> int | None:
        return self._due_ms if self._fresh and not self._taken else None

    def done(self, *, commit: bool) -> None:
        """The listener has returned.  What is not committed now is with a later commit, or rolled back."""
        for message in self._taken:
            self._begun.pop(message.queue_offset, None)
        self._kept += self._taken
        self._taken = []
        if commit:
            self.succeeded(self._kept)
            self._kept = []

    def given_away(self, message: StoredMessage) -> None:
        """One of the messages that the listener had is somebody else's now."""
        self.succeeded([message])
        self._taken = [one for one in self._taken if one.queue_offset != message.queue_offset]

    def suspended(self, now_ms: int, pause_ms: int) -> None:
        """The listener has failed: its messages are the next again, after a pause."""
        self._put_back([tried_again(message) for message in self._taken], now_ms, pause_ms)

    def unsettled(self, messages: Sequence[StoredMessage], now_ms: int) -> None:
        if self._taken:
            self.suspended(now_ms, RETRY_PAUSE_MS)

    def rolled_back(self, now_ms: int, pause_ms: int) -> None:
        """Everything since the last commit is the next again, after a pause."""
        again, self._kept = self._kept + self._taken, []
        self._put_back(again, now_ms, pause_ms)

    def _put_back(self, messages: Sequence[StoredMessage], now_ms: int, pause_ms: int) -> None:
        for message in self._taken:
            self._begun.pop(message.queue_offset, None)
        self._taken = []
        self._fresh.extendleft(reversed(messages))
        self._due_ms = now_ms + pause_ms

    # ---- progress ------------------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to work on; what waits for a commit by hand may wait for ever."""
        return not self._fresh and not self._taken

    def moved_back(self, next_offset: GroupOffset) -> None:
        self.succeeded(self._kept)
        self._kept = []
        super().moved_back(next_offset)

    @property
    def uncommitted(self) -> int:
        """How many messages wait for a commit."""
        return len(self._kept)
