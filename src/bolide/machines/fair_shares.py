"""FairShares: who takes how much of something that is bounded, for each and for all together.

Whoever finds no room has a rival: one of those that take most, if it takes more than he would.  The rival gives
something up, and so nobody can keep others out by coming first.  A machine: what is counted, and how somebody gives
up, is not its business.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

GIVEN_UP_AT_ONCE = 8
"""How often somebody is made to give up something for one newcomer, at most."""


class FairShares(Generic[K]):
    """By order of magnitude, so that one of the largest is found without a look at all."""

    def __init__(self, total_max: int, each_max: int) -> None:
        self._total_max = int(total_max)
        self._each_max = int(each_max)
        self._shares: dict[K, int] = {}
        self._ranks: list[dict[K, None]] = [{} for _ in range(64)]  # by the number of bits of a share
        self.total = 0

    def of(self, key: K) -> int:
        return self._shares.get(key, 0)

    def take(self, key: K, size: int, give_up: Callable[[K], None]) -> bool:
        """Add to somebody's share; False when that is too much for him, or for all and no rival should give way.

        `give_up` makes a rival give back something, here and now.
        """
        share = self.of(key) + size
        if share > self._each_max:
            return False
        for _ in range(GIVEN_UP_AT_ONCE):
            if self.total + size <= self._total_max:
                break
            rival = self._greatest()
            if rival is None or self._shares[rival] <= share:
                return False
            give_up(rival)
        if self.total + size > self._total_max:
            return False
        self._set(key, self.of(key) + size)
        return True

    def burden(self, key: K, size: int) -> None:
        """Add to somebody's share what was there before and has to be somebody's."""
        self._set(key, self.of(key) + size)

    def give_back(self, key: K, size: int) -> None:
        self._set(key, self.of(key) - size)

    def _greatest(self) -> K | None:
        """One of those with most."""
        for rank in reversed(self._ranks):
            if rank:
                return next(iter(rank))
        return None

    def _set(self, key: K, share: int) -> None:
        old = self.of(key)
        assert share >= 0, "more is given back than was taken"
        if share:
            self._shares[key] = share
        else:
            self._shares.pop(key, None)
        before, after = old.bit_length(), share.bit_length()
        if before != after:
            if before:
                del self._ranks[before][key]
            if after:
                self._ranks[after][key] = None
        self.total += share - old
