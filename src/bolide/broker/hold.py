"""Held pulls: requests at the end of a queue that wait for a message instead of being answered "nothing new".

A held pull ends when a message arrives that it wants, when its time is over, or when its connection closes.  It is
then executed again, without permission to wait a second time.  However many are held, a turn of the event loop looks
at a bounded number of them.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from bolide.model.filter import Filter
from bolide.net.link import Link
from bolide.net.turns import Slices
from bolide.store.append import QueueTail, first_wanted
from bolide.store.queue_index import ConsumeQueue
from bolide.store.reading import StoreReader
from bolide.wire.command import Command

log = logging.getLogger(__name__)

HELD_MAX = 100_000
"""Pulls held at once; above this new ones are answered at once."""

HELD_BYTES_MAX = 128 * 1024**2
"""What their requests may take together: each is kept whole, and one may fill a frame."""

LOOK_ENTRIES = 4096
"""Entries that are looked at in one go for a message that a held pull wants."""

LOOKED_AT_PER_TURN = 64
BUCKET_MS = 500
"""Deadlines are kept so exactly."""

QueueKey = tuple[str, int]
K = TypeVar("K")


@dataclass(slots=True, eq=False)
class HeldPull:
    link: Link
    request: Command
    key: QueueKey
    offset: int
    filter: Filter
    deadline_ms: int
    queue: ConsumeQueue | None = None
    """The queue that was looked at; one of the same name may have taken its place."""
    seen: int = 0
    """Entries of that queue below this are known not to be wanted."""
    is_over: bool = False
    size: int = 0
    """About the bytes that the request takes; known while it is held."""


_Pulls = dict[HeldPull, None]


class PullHold:
    """`resume` executes a pull again and answers it."""

    def __init__(self, resume: Callable[[HeldPull], None], reader: StoreReader) -> None:
        self._resume = resume
        self._reader = reader
        self._held: dict[QueueKey, _Pulls] = {}
        self._by_link: dict[Link, _Pulls] = {}
        self._buckets: dict[int, _Pulls] = {}  # by deadline
        self._count = 0
        self._bytes = 0
        self._arrived: dict[QueueKey, ConsumeQueue] = {}  # queues with something new
        self._looking: deque[tuple[HeldPull, ConsumeQueue]] = deque()  # at pulls of one of them
        self._over: deque[HeldPull] = deque()  # pulls whose time is over
        self._gone: deque[HeldPull] = deque()  # pulls behind which nobody waits
        self._work = Slices(self._work_some)

    def __len__(self) -> int:
        return self._count

    def add(self, held: HeldPull) -> bool:
        """Hold a pull; False when too many are held already."""
        fields = held.request.fields
        held.size = len(held.request.body) + sum(map(len, fields)) + sum(map(len, fields.values()))
        if self._count >= HELD_MAX or self._bytes + held.size > HELD_BYTES_MAX:
            return False
        self._bytes += held.size
        self._count += 1
        self._held.setdefault(held.key, {})[held] = None
        self._by_link.setdefault(held.link, {})[held] = None
        self._buckets.setdefault(_bucket(held), {})[held] = None
        return True

    def arrived(self, tail: QueueTail) -> None:
        """A queue has more to see: wake the pulls that want some of it, of whatever group."""
        if tail.key in self._held:
            queue = tail.owner
            assert isinstance(queue, ConsumeQueue)
            self._arrived[tail.key] = queue
            self._work.go()

    def sweep(self, now_ms: int) -> None:
        """Answer pulls whose time is over."""
        now = now_ms // BUCKET_MS
        for bucket in sorted(bucket for bucket in self._buckets if bucket <= now):
            self._give_up(held for held in self._buckets[bucket] if held.deadline_ms <= now_ms)
        self._work.go()

    def end(self, keys: Iterable[QueueKey]) -> None:
        """Answer the pulls of these queues, whatever there is for them."""
        for key in keys:
            self._give_up(self._held.get(key, ()))
        self._work.go()

    def forget(self, link: Link) -> None:
        """A connection has closed, and nobody waits behind it any more."""
        self._gone.extend(self._by_link.get(link, ()))
        self._work.go()

    def _give_up(self, pulls: Iterable[HeldPull]) -> None:
        for held in pulls:
            if not held.is_over:
                held.is_over = True
                self._over.append(held)

    def _work_some(self) -> bool:
        for _ in range(LOOKED_AT_PER_TURN):
            if self._gone:
                held = self._gone.popleft()
                if self._is_held(held):
                    self._release(held)
            elif self._over:
                held = self._over.popleft()
                if self._is_held(held):
                    self._wake(held)
            elif self._looking:
                held, queue = self._looking.popleft()
                if self._is_held(held) and self._wants_or_fails(held, queue):
                    self._wake(held)
            elif self._arrived:
                key, queue = next(iter(self._arrived.items()))
                del self._arrived[key]
                self._looking.extend((held, queue) for held in self._held.get(key, ()))
            else:
                return False
        return bool(self._gone or self._over or self._looking or self._arrived)

    def _wants_or_fails(self, held: HeldPull, queue: ConsumeQueue) -> bool:
        """Whether to execute the pull again: also when nobody can tell, and it will hear why."""
        try:
            return self._wants(held, queue)
        except Exception:
            log.exception("cannot tell whether a held pull of %s wants the new messages", held.key)
            return True

    def _wants(self, held: HeldPull, queue: ConsumeQueue) -> bool:
        """Whether the queue now has something for this pull; messages that it does not want leave it waiting."""
        if held.queue is not queue:
            held.queue, held.seen = queue, 0
        at, readable_end = max(held.offset, held.seen), self._reader.readable_end
        while at < queue.end:
            entries = queue.read(at, LOOK_ENTRIES)
            scanned, found = first_wanted(entries, held.filter, readable_end, self._reader.read_at)
            if found:
                return True
            if scanned == 0:  # not readable yet
                break
            at += scanned
        held.seen = at
        return False

    def _is_held(self, held: HeldPull) -> bool:
        return held in self._held.get(held.key, ())

    def _wake(self, held: HeldPull) -> None:
        self._release(held)
        self._resume(held)

    def _release(self, held: HeldPull) -> None:
        self._count -= 1
        self._bytes -= held.size
        _remove(self._held, held.key, held)
        _remove(self._by_link, held.link, held)
        _remove(self._buckets, _bucket(held), held)


def _bucket(held: HeldPull) -> int:
    return held.deadline_ms // BUCKET_MS


def _remove(index: dict[K, _Pulls], key: K, held: HeldPull) -> None:
    pulls = index[key]
    del pulls[held]
    if not pulls:
        del index[key]
