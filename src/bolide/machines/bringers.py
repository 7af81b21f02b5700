"""Bringers: which host brought what into a table that is for all, and stays.

Nothing of such a table may be taken away, so whoever comes first could fill it for good.  Instead a host brings no more
than stays free for others (`shares.py`).  A machine; it does not outlive the process, and what was there before is
nobody's.
"""

from collections import Counter

from bolide.machines.shares import room

Taken = tuple[int, int]
"""How much there may be, and how much there is."""


class Bringers:
    """How many entries, of how many bytes, are a host's."""

    def __init__(self) -> None:
        self._brought: dict[str, tuple[str, int]] = {}  # by the entry's name
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def may_bring(self, name: str, host: str, bytes_: int, *, count: Taken, bytes_taken: Taken) -> bool:
        """Whether the entry leaves others as much as the host has; what is taken is so without it."""
        owner, had = self._brought.get(name, ("", 0))
        own = owner == host
        counted, weighed = self._counts[host] - own, self._bytes[host] - own * had
        return room(counted, *count) > 0 and bytes_ <= room(weighed, *bytes_taken)

    def brought(self, name: str, host: str, bytes_: int) -> None:
        """The entry is this host's from now on."""
        self.forget(name)
        self._brought[name] = host, bytes_
        self._counts[host] += 1
        self._bytes[host] += bytes_

    def forget(self, name: str) -> None:
        """The entry is gone."""
        known = self._brought.pop(name, None)
        if known is None:
            return
        host, bytes_ = known
        self._counts[host] -= 1
        self._bytes[host] -= bytes_
        if not self._counts[host]:
            del self._counts[host], self._bytes[host]
