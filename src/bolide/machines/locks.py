"""QueueLocks: which member of a group may consume a queue in order.

A lock lives for `LIFETIME_MS` after it was last asked for; members ask every 20 s and trust a lock for 30 s.  It is
free again when its owner gives it back or when its time is up, and by nothing else: an owner that has lost its
connection may still be at work, and two members would work on one queue.  A machine: no clock, no I/O; nothing is
persisted, because members ask again.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bolide.model.offsets import MessageQueue

LIFETIME_MS = 60_000


@dataclass(slots=True)
class _Lock:
    client_id: str
    asked_ms: int


class QueueLocks:
    """Locks by group and queue."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}

    def lock(
        self, group: str, client_id: str, queues: Iterable[MessageQueue], now_ms: int
    ) -> list[MessageQueue]:
        """Take or renew what can be had; returns what the client now holds of it."""
        locks = self._groups.setdefault(group, {})
        held = []
        for queue in queues:
            lock = locks.get(queue)
            if lock is None or lock.client_id == client_id or now_ms - lock.asked_ms > LIFETIME_MS:
                locks[queue] = _Lock(client_id, now_ms)
                held.append(queue)
        if not locks:
            del self._groups[group]
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> None:
        """Give back what the client holds of it."""
        locks = self._groups.get(group)
        if locks is None:
            return
        for queue in queues:
            lock = locks.get(queue)
            if lock is not None and lock.client_id == client_id:
                del locks[queue]
        if not locks:
            del self._groups[group]

    def expire(self, now_ms: int) -> None:
        """Forget locks whose time is up."""
        for group, locks in list(self._groups.items()):
            for queue in [queue for queue, lock in locks.items() if now_ms - lock.asked_ms > LIFETIME_MS]:
                del locks[queue]
            if not locks:
                del self._groups[group]

    def owner(self, group: str, queue: MessageQueue, now_ms: int) -> str | None:
        """Whoever holds the queue's lock."""
        lock = self._groups.get(group, {}).get(queue)
        return None if lock is None or now_ms - lock.asked_ms > LIFETIME_MS else lock.client_id
