"""Held pulls: requests at the end of a queue that wait for a message instead of being answered "nothing new".

A held pull ends when a message arrives that it wants, when its time is over, or when its connection closes.  It is
then executed again, without permission to wait a second time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bolide.model.filter import Filter
from bolide.net.link import Link
from bolide.store.append import QueueTail, first_wanted
from bolide.store.queue_index import ConsumeQueue
from bolide.wire.command import Command

HELD_MAX = 100_000
"""Pulls held at once; above this new ones are answered at once."""

HELD_BYTES_MAX = 128 * 1024**2
"""What their requests may take together: each is kept whole, and one may fill a frame."""

LOOK_ENTRIES = 4096
"""Entries that are looked at in one go for a message that a held pull wants."""

QueueKey = tuple[str, int]

LOG_OFFSET_MAX = 2**63 - 1


@dataclass(slots=True, eq=False)
class HeldPull:
    link: Link
    request: Command
    offset: int
    filter: Filter
    deadline_ms: int
    seen: int = 0
    """Entries below this are known not to be wanted."""
    size: int = 0
    """About the bytes that the request takes; known while it is held."""


class PullHold:
    """`resume` executes a pull again and answers it; `read_at` gives the record at a place of the log."""

    def __init__(self, resume: Callable[[HeldPull], None], read_at: Callable[[int], bytes | None]) -> None:
        self._resume = resume
        self._read_at = read_at
        self._held: dict[QueueKey, list[HeldPull]] = {}
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    def add(self, key: QueueKey, held: HeldPull) -> bool:
        """Hold a pull; False when too many are held already."""
        fields = held.request.fields
        held.size = len(held.request.body) + sum(map(len, fields)) + sum(map(len, fields.values()))
        if self._count >= HELD_MAX or self._bytes + held.size > HELD_BYTES_MAX:
            return False
        self._bytes += held.size
        self._held.setdefault(key, []).append(held)
        self._count += 1
        return True

    def arrived(self, tail: QueueTail, readable_end: int = LOG_OFFSET_MAX) -> None:
        """A queue has messages up to `readable_end` of the log: wake the pulls that want one, of whatever group."""
        waiting = self._held.get(tail.key)
        if waiting is None:
            return
        queue = tail.owner
        assert isinstance(queue, ConsumeQueue)
        woken: list[HeldPull] = []
        asleep: list[HeldPull] = []
        for held in waiting:
            (woken if self._wants(held, queue, readable_end) else asleep).append(held)
        if woken:
            self._keep(tail.key, asleep)
        for held in woken:
            self._resume(held)

    def sweep(self, now_ms: int) -> None:
        """Answer pulls whose time is over and forget those whose connection is gone."""
        for key, waiting in list(self._held.items()):
            over = [held for held in waiting if held.deadline_ms <= now_ms]
            alive = [held for held in waiting if held.deadline_ms > now_ms and held.link.is_open]
            if len(alive) != len(waiting):
                self._keep(key, alive)
            for held in over:
                self._resume(held)

    def _keep(self, key: QueueKey, alive: list[HeldPull]) -> None:
        before = self._held[key]
        self._count -= len(before) - len(alive)
        self._bytes -= sum(held.size for held in before) - sum(held.size for held in alive)
        if alive:
            self._held[key] = alive
        else:
            del self._held[key]

    def _wants(self, held: HeldPull, queue: ConsumeQueue, readable_end: int) -> bool:
        """Whether the queue now has something for this pull; messages that it does not want leave it waiting."""
        at = max(held.offset, held.seen)
        while at < queue.end:
            entries = queue.read(at, LOOK_ENTRIES)
            scanned, found = first_wanted(entries, held.filter, readable_end, self._read_at)
            if found:
                return True
            if scanned == 0:  # not readable yet
                break
            at += scanned
        held.seen = at
        return False
