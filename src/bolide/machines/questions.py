"""Questions: which of them wait for answers of clients, and whether one more may.

Who is asked may never answer, so a question is bounded three times: for who is asked, for the connection that asks, and
for the host that asks, which takes no more than stays free for others (`shares.py`).  So whoever keeps clients that say
nothing, and asks them, takes the places of his own and leaves some to everybody else.  A machine: it counts.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from bolide.machines.shares import room
from bolide.model.limits import RELAYS_MAX, RELAYS_OF_ASKER_MAX, RELAYS_OF_ONE_MAX

K = TypeVar("K", bound=Hashable)


class Questions(Generic[K]):
    def __init__(self) -> None:
        self._asked: Counter[K] = Counter()
        self._asking: Counter[K] = Counter()
        self._hosts: Counter[str] = Counter()
        self.count = 0

    def begin(self, asking: K, host: str, asked: K) -> bool:
        """Whether one more may wait; if so, it does."""
        if self._asked[asked] >= RELAYS_OF_ONE_MAX or self._asking[asking] >= RELAYS_OF_ASKER_MAX:
            return False
        if not room(self._hosts[host], RELAYS_MAX, self.count, small=RELAYS_OF_ONE_MAX):
            return False
        self._count(asking, host, asked, 1)
        return True

    def end(self, asking: K, host: str, asked: K) -> None:
        """It waits no more."""
        self._count(asking, host, asked, -1)

    def _count(self, asking: K, host: str, asked: K, by: int) -> None:
        self.count += by
        _add(self._asked, asked, by)
        _add(self._asking, asking, by)
        _add(self._hosts, host, by)


def _add(counter: Counter[K], key: K, by: int) -> None:
    counter[key] += by
    if not counter[key]:
        del counter[key]
