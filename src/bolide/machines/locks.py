"""QueueLocks: which member of a group may consume a queue in order.

A lock lives for `LIFETIME_MS` after it was last asked for; members ask every 20 s and trust a lock for 30 s.  It is
free again when its owner gives it back or when its time is up, and by nothing else: an owner that has lost its
connection may still be at work, and two members would work on one queue.  A machine: no clock, no I/O; nothing is
persisted, because members ask again.

There are at most `LOCKS_MAX`, and a host takes no more of them than stay free for others; who asks for more does not
get it, as if somebody else had it.  What is held is renewed all the same: nobody loses a lock that he works by.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bolide.model.limits import LOCKS_MAX

LIFETIME_MS = 60_000

Queue = tuple[str, int]
"""A queue of this broker: topic and number."""


@dataclass(frozen=True, slots=True)
class _Lock:
    client_id: str
    host: str
    asked_ms: int


class QueueLocks:
    """Locks by group and queue, the one longest not asked for first."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, Queue], _Lock] = {}
        self._shares: Counter[str] = Counter()  # how many locks each host has

    def __len__(self) -> int:
        return len(self._locks)

    def lock(
        self, group: str, client_id: str, queues: Iterable[Queue], now_ms: int, *, host: str = ""
    ) -> list[Queue]:
        """Take or renew what can be had; returns what the client, which asks from a host, now holds of it."""
        held = []
        mine = _Lock(client_id, host, now_ms)
        for queue in queues:
            key = (group, queue)
            lock = self._locks.get(key)
            if lock is None:
                if self._shares[host] >= LOCKS_MAX - len(self._locks):
                    continue
            elif lock.client_id != client_id and now_ms - lock.asked_ms <= LIFETIME_MS:
                continue
            else:
                self._forget(key)  # to be the last one
            self._locks[key] = mine
            self._shares[host] += 1
            held.append(queue)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[Queue]) -> None:
        """Give back what the client holds of it."""
        for queue in queues:
            lock = self._locks.get((group, queue))
            if lock is not None and lock.client_id == client_id:
                self._forget((group, queue))

    def expire(self, now_ms: int, count_max: int) -> bool:
        """Forget locks whose time is up, so many of them; tells whether there may be more."""
        over: list[tuple[str, Queue]] = []
        for key, lock in self._locks.items():
            if now_ms - lock.asked_ms <= LIFETIME_MS or len(over) == count_max:
                break
            over.append(key)
        for key in over:
            self._forget(key)
        return len(over) == count_max

    def owner(self, group: str, queue: Queue, now_ms: int) -> str | None:
        """Whoever holds the queue's lock."""
        lock = self._locks.get((group, queue))
        return None if lock is None or now_ms - lock.asked_ms > LIFETIME_MS else lock.client_id

    def _forget(self, key: tuple[str, Queue]) -> None:
        host = self._locks.pop(key).host
        self._shares[host] -= 1
        if not self._shares[host]:
            del self._shares[host]
