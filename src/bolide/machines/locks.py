"""QueueLocks: which member of a group may consume a queue in order.

A lock lives for `LIFETIME_MS` after it was last asked for; members ask every 20 s and trust a lock for 30 s.  It is
free again when its owner gives it back or when its time is up, and by nothing else: an owner that has lost its
connection may still be at work, and two members would work on one queue.  A machine: no clock, no I/O; nothing is
persisted, because members ask again.

They take at most `LOCKS_BYTES_MAX`, and a host takes no more of that than stays free for others (`shares.py`).  Who
asks for more does not get it, as if somebody else had it.  What is held is renewed all the same: nobody loses a lock
that he works by.
"""

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from bolide.machines.shares import room
from bolide.model.limits import LOCKS_BYTES_MAX

LIFETIME_MS = 60_000

LOCK_BYTES = 500
"""What a lock takes beside its names."""

Queue = tuple[str, int]
"""A queue of this broker: topic and number."""


@dataclass(frozen=True, slots=True)
class _Lock:
    client_id: str
    host: str
    asked_ms: int
    bytes_: int


class QueueLocks:
    """Locks by group and queue, the one longest not asked for first."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, Queue], _Lock] = {}
        self._groups: dict[str, dict[Queue, None]] = {}  # the same by group, in the same order
        self._shares: Counter[str] = Counter()  # what the locks of each host take
        self.bytes_kept = 0

    def __len__(self) -> int:
        return len(self._locks)

    def lock(
        self, group: str, client_id: str, queues: Iterable[Queue], now_ms: int, *, host: str = ""
    ) -> list[Queue]:
        """Take or renew what can be had; returns what the client, which asks from a host, now holds of it."""
        held = []
        mine = _Lock(client_id, host, now_ms, lock_bytes(group, client_id))
        for queue in queues:
            key = (group, queue)
            lock = self._locks.get(key)
            if lock is None:
                if mine.bytes_ > room(self._shares[host], LOCKS_BYTES_MAX, self.bytes_kept):
                    continue
            elif lock.client_id != client_id and now_ms - lock.asked_ms <= LIFETIME_MS:
                continue
            else:
                self._forget(key)  # to be the last one
            self._locks[key] = mine
            self._groups.setdefault(group, {})[queue] = None
            self._count(host, mine.bytes_)
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

    def is_any_held(self, group: str, now_ms: int) -> bool:
        """Whether any member of the group holds a lock: the one asked for last is the last to be over."""
        newest = next(reversed(self._groups.get(group, {})), None)
        return newest is not None and self.owner(group, newest, now_ms) is not None

    def _forget(self, key: tuple[str, Queue]) -> None:
        lock = self._locks.pop(key)
        group, queue = key
        del self._groups[group][queue]
        if not self._groups[group]:
            del self._groups[group]
        self._count(lock.host, -lock.bytes_)

    def _count(self, host: str, bytes_: int) -> None:
        self.bytes_kept += bytes_
        self._shares[host] += bytes_
        if not self._shares[host]:
            del self._shares[host]


def lock_bytes(group: str, client_id: str) -> int:
    """About what a lock takes in memory, with names of its own."""
    return LOCK_BYTES + sys.getsizeof(group) + sys.getsizeof(client_id)
