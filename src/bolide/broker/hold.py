"""Held pulls: requests at the end of a queue that wait for a message instead of being answered "nothing new".

A held pull ends when a message arrives that it wants, when its time is over, or when its connection closes.  It is
then executed again, without permission to wait a second time.  However many are held, a turn of the event loop looks
at a bounded number of them, and at those of different queues in turn.

What they take is bounded in bytes, for each connection and for all.  When there is no room left, the connection that
takes most is answered early, so that others can wait too (`machines/fair_shares.py`).
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from bolide.broker.waiting_pulls import HeldPull, Pulls, QueueKey, Step, WaitingPulls
from bolide.machines.fair_shares import FairShares
from bolide.model.limits import HELD_BYTES_MAX, HELD_CONNECTION_BYTES_MAX
from bolide.net.link import Link
from bolide.net.turns import Slices
from bolide.store.append import QueueTail
from bolide.store.queue_index import ConsumeQueue
from bolide.store.reading import StoreReader

LOOKED_AT_PER_TURN = 64
ANSWERED_PER_TURN = 32
FORGOTTEN_PER_TURN = 256

BUCKET_MS = 500
"""Deadlines are kept so exactly."""

K = TypeVar("K")

_END: Step = (None, 0)


class PullHold:
    """`resume` executes a pull again and answers it."""

    def __init__(self, resume: Callable[[HeldPull], None], reader: StoreReader) -> None:
        self._resume = resume
        self._reader = reader
        self._waiting: dict[QueueKey, WaitingPulls] = {}
        self._by_link: dict[Link, Pulls] = {}
        self._buckets: dict[int, Pulls] = {}  # by deadline
        self._shares: FairShares[Link] = FairShares(HELD_BYTES_MAX, HELD_CONNECTION_BYTES_MAX)
        self._count = 0
        self._looks: OrderedDict[WaitingPulls, Iterator[Step]] = OrderedDict()  # at what has come
        self._over: deque[Iterator[HeldPull]] = deque()  # pulls whose time is over
        self._gone: deque[Iterator[HeldPull]] = deque()  # pulls behind which nobody waits
        self._work = Slices(self._work_some)

    def __len__(self) -> int:
        return self._count

    @property
    def bytes_held(self) -> int:
        """About what all of them take."""
        return self._shares.total

    def add(self, held: HeldPull) -> bool:
        """Hold a pull; False when there is no room for it."""
        if not self._shares.take(held.link, held.size, self._give_up_one):
            return False
        waiting = self._waiting.get(held.key)
        if waiting is None:
            waiting = self._waiting[held.key] = WaitingPulls(held.queue, held.offset)
        if not waiting.add(held):
            self._shares.give_back(held.link, held.size)
            return False
        self._count += 1
        self._by_link.setdefault(held.link, {})[held] = None
        self._buckets.setdefault(_bucket(held), {})[held] = None
        return True

    def arrived(self, tail: QueueTail) -> None:
        """A queue has more to see: wake the pulls that want some of it, of whatever group."""
        waiting = self._waiting.get(tail.key)
        if waiting is None:
            return
        queue = tail.owner
        assert isinstance(queue, ConsumeQueue)
        if waiting.queue is not queue:
            waiting.begin(queue)
            self._looks.pop(waiting, None)
        if waiting not in self._looks:
            self._looks[waiting] = waiting.look(self._reader)
            self._work.go()

    def sweep(self, now_ms: int) -> None:
        """Answer pulls whose time is over."""
        now = now_ms // BUCKET_MS
        for bucket in sorted(bucket for bucket in self._buckets if bucket <= now):
            self._over.append(iter(list(self._buckets.pop(bucket))))
        self._work.go()

    def end(self, keys: Iterable[QueueKey]) -> None:
        """Answer the pulls of these queues, whatever there is for them."""
        for key in keys:
            waiting = self._waiting.pop(key, None)
            if waiting is not None:
                self._over.append(waiting.everybody())
        self._work.go()

    def forget(self, link: Link) -> None:
        """A connection has closed, and nobody waits behind it any more."""
        self._gone.append(iter(list(self._by_link.get(link, ()))))
        self._work.go()

    def close(self) -> None:
        """Who waits still is not answered: the connections close."""
        self._work.close()

    def _work_some(self) -> bool:
        left = LOOKED_AT_PER_TURN
        while left > 0 and self._looks:
            left -= self._look_on()
        left = ANSWERED_PER_TURN
        for held in _next_of(self._over, ANSWERED_PER_TURN):
            self._wake(held)
            left -= held.cost
            if left <= 0:
                break
        for held in _next_of(self._gone, FORGOTTEN_PER_TURN):
            self._release(held)
        return bool(self._looks or self._over or self._gone)

    def _look_on(self) -> int:
        """One step for the queue whose turn it is; gives its cost."""
        waiting, look = next(iter(self._looks.items()))
        held, cost = next(look, _END)
        if cost == 0:
            del self._looks[waiting]
            return 1
        self._looks.move_to_end(waiting)
        if held is not None:
            self._wake(held)
            cost += held.cost
        return cost

    def _give_up_one(self, link: Link) -> None:
        """Answer the pull of this connection that came last."""
        held, _ = self._by_link[link].popitem()
        self._wake(held)

    def _wake(self, held: HeldPull) -> None:
        self._release(held)
        self._resume(held)

    def _release(self, held: HeldPull) -> None:
        waiting = held.waiting
        assert waiting is not None, "it is held"
        waiting.remove(held)
        if not waiting:
            self._looks.pop(waiting, None)
            if self._waiting.get(held.key) is waiting:
                del self._waiting[held.key]
        self._count -= 1
        self._shares.give_back(held.link, held.size)
        _discard(self._by_link, held.link, held)
        _discard(self._buckets, _bucket(held), held)


def _bucket(held: HeldPull) -> int:
    """The first moment of the buckets at which its time is over."""
    return -(-held.deadline_ms // BUCKET_MS)


def _next_of(sources: deque[Iterator[HeldPull]], count: int) -> Iterator[HeldPull]:
    """Up to so many pulls that are still held; a source without any more is dropped."""
    while sources and count > 0:
        held = next(sources[0], None)
        if held is None:
            sources.popleft()
        elif held.waiting is not None:
            yield held
        count -= 1


def _discard(index: dict[K, Pulls], key: K, held: HeldPull) -> None:
    pulls = index.get(key)
    if pulls is not None:
        pulls.pop(held, None)
        if not pulls:
            del index[key]
