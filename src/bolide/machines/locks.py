"""QueueLocks: which member of a group may consume a queue in order.

A lock lives for `LIFETIME_MS` after it was last asked for; members ask every 20 s and trust a lock for 30 s.  It is
free again when its owner gives it back or when its time is up, and by nothing else: an owner that has lost its
connection may still be at work, and two members would work on one queue.  A machine: no clock, no I/O; nothing is
persisted, because members ask again.

There are at most `LOCKS_MAX`; who asks for more does not get it, as if somebody else had it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bolide.model.limits import LOCKS_MAX

LIFETIME_MS = 60_000

Queue = tuple[str, int]
"""A queue of this broker: topic and number."""


@dataclass(frozen=True, slots=True)
class _Lock:
    client_id: str
    asked_ms: int


class QueueLocks:
    """Locks by group and queue, the one longest not asked for first."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, Queue], _Lock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    def lock(self, group: str, client_id: str, queues: Iterable[Queue], now_ms: int) -> list[Queue]:
        """Take or renew what can be had; returns what the client now holds of it."""
        held = []
        mine = _Lock(client_id, now_ms)
        for queue in queues:
            key = (group, queue)
            lock = self._locks.get(key)
            if lock is None:
                if len(self._locks) >= LOCKS_MAX:
                    continue
            elif lock.client_id != client_id and now_ms - lock.asked_ms <= LIFETIME_MS:
                continue
            else:
                del self._locks[key]  # to be the last one
            self._locks[key] = mine
            held.append(queue)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[Queue]) -> None:
        """Give back what the client holds of it."""
        for queue in queues:
            lock = self._locks.get((group, queue))
            if lock is not None and lock.client_id == client_id:
                del self._locks[group, queue]

    def expire(self, now_ms: int, count_max: int) -> bool:
        """Forget locks whose time is up, so many of them; tells whether there may be more."""
        over: list[tuple[str, Queue]] = []
        for key, lock in self._locks.items():
            if now_ms - lock.asked_ms <= LIFETIME_MS or len(over) == count_max:
                break
            over.append(key)
        for key in over:
            del self._locks[key]
        return len(over) == count_max

    def owner(self, group: str, queue: Queue, now_ms: int) -> str | None:
        """Whoever holds the queue's lock."""
        lock = self._locks.get((group, queue))
        return None if lock is None or now_ms - lock.asked_ms > LIFETIME_MS else lock.client_id
