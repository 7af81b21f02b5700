"""Lines of those who wait for one thing: host after host, and of each host connection after connection.

Whoever asks for much makes his own wait; everybody else waits for one of each other.  How many may wait is bounded, and
a host has no more places than stay free for others (`shares.py`).  Machines: no clock, no I/O.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from bolide.machines.shares import room
from bolide.model.errors import TooBusy

T = TypeVar("T")


class Places:
    """How many wait, of all and of each host; where one connection may have fewer, also of each connection."""

    def __init__(self, what: str, most: int, small: int, of_one: int | None = None) -> None:
        """A host has `small` places also among many others."""
        self._what = what
        self._most, self._small, self._of_one = most, small, most if of_one is None else of_one
        self._hosts: Counter[str] = Counter()
        self._connections: Counter[Hashable] = Counter()

    @contextmanager
    def place(self, host: str, connection: Hashable) -> Iterator[None]:
        """For one more, from when it is asked for until it is answered; `TooBusy` without room."""
        count, held, of_one = self._hosts.total(), self._hosts[host], self._connections[connection]
        if of_one >= self._of_one or not room(held, self._most, count, small=self._small):
            raise TooBusy(
                f"{count} {self._what} wait already, {held} of them of your host and {of_one} of your connection, and"
                " nothing was done: try again when some of them are answered"
            )
        self._hosts[host] += 1
        self._connections[connection] += 1
        try:
            yield
        finally:
            _less(self._hosts, host)
            _less(self._connections, connection)


def _less(counter: Counter[T], key: T) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


class FairLine(Generic[T]):
    """False while nobody waits."""

    def __init__(self) -> None:
        # First whoever had his turn longest ago, among hosts and among the connections of one.
        self._hosts: dict[str, dict[Hashable, deque[T]]] = {}

    def __bool__(self) -> bool:
        return bool(self._hosts)

    def add(self, host: str, connection: Hashable, waiter: T) -> None:
        self._hosts.setdefault(host, {}).setdefault(connection, deque()).append(waiter)

    def next(self) -> T:
        """Whose turn it is; its connection, and its host, stand behind the others then."""
        host = next(iter(self._hosts))
        connections = self._hosts.pop(host)
        connection = next(iter(connections))
        line = connections.pop(connection)
        waiter = line.popleft()
        if line:
            connections[connection] = line
        if connections:
            self._hosts[host] = connections
        return waiter
