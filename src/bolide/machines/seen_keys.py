"""SeenKeys: which keys were seen lately.  Bounded by a number and by an age; it is told the time."""

from collections.abc import Iterable


class SeenKeys:
    """Remembers the newest keys.  Of two times of one key the later counts."""

    __slots__ = ("_age_max_ms", "_keys_max", "_seen_ms")

    def __init__(self, keys_max: int, age_max_ms: int) -> None:
        self._keys_max = keys_max
        self._age_max_ms = age_max_ms
        self._seen_ms: dict[bytes, int] = {}  # the oldest first

    def __len__(self) -> int:
        return len(self._seen_ms)

    def known(self, keys: Iterable[bytes], now_ms: int) -> set[bytes]:
        """Those of the keys that are remembered."""
        self._forget_old(now_ms)
        return {key for key in keys if key in self._seen_ms}

    def add(self, keys: Iterable[bytes], now_ms: int) -> None:
        for key in keys:
            self._seen_ms.pop(key, None)  # it goes to the end
            self._seen_ms[key] = now_ms
            if len(self._seen_ms) > self._keys_max:
                del self._seen_ms[next(iter(self._seen_ms))]
        self._forget_old(now_ms)

    def _forget_old(self, now_ms: int) -> None:
        while self._seen_ms:
            key = next(iter(self._seen_ms))
            if now_ms - self._seen_ms[key] <= self._age_max_ms:
                return
            del self._seen_ms[key]
