"""Bringers: which host brought what into a table that is for all, and stays.

Nothing of such a table may be taken away, so whoever comes first could fill it for good.  Instead a host brings no more
than stays free for others: then there is always room for one more host, half of what is left.  A machine; it does not
outlive the process, and what was there before is nobody's.
"""

from collections import Counter


class Bringers:
    """How many entries, of how many bytes, are a host's."""

    def __init__(self) -> None:
        self._brought: dict[str, tuple[str, int]] = {}  # by the entry's name
        self._counts: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def may_bring(self, host: str, *, bytes_: int, count_free: int, bytes_free: int) -> bool:
        """Whether one entry more, or a larger one, leaves others as much as the host has."""
        return self._counts[host] < count_free and self._bytes[host] + bytes_ <= bytes_free

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
