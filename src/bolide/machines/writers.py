"""Writers: which connection may write the part of a batch, and which parts have begun.

A part of a batch has one writer at a time.  Who begins it anew takes it over from whoever had it before: a task that
was given up may still be alive, or dead with requests of its own on the way, and nothing of that may be stored after
its successor has looked at what is there.  A machine: no clock, no I/O.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from bolide.model.limits import WRITE_PARTS_KNOWN_MAX, WRITERS_MAX

C = TypeVar("C", bound=Hashable)

Part = tuple[str, int]
"""A writer and the number of a part of its batch."""


class Writers(Generic[C]):
    def __init__(self) -> None:
        self._owners: dict[Part, C] = {}
        self._parts: dict[C, dict[Part, str]] = {}  # by connection, with the topic that has begun last
        self._begun: dict[
            str, tuple[int, set[tuple[int, str]]]
        ] = {}  # writer to batch and what of it has begun
        self._parts_begun = 0  # of all of them

    def take(self, part: Part, topic: str, connection: C) -> C | None:
        """The part belongs to this connection now, which begins the topic; the one that has lost it, if it was
        another."""
        before = self._owners.get(part)
        self._owners[part] = connection
        self._parts.setdefault(connection, {})[part] = topic
        if before is None or before == connection:
            return None
        del self._parts[before][part]
        return before

    def is_beginning(self, connection: C, topic: str) -> bool:
        """Whether it writes a part that has begun this topic last, and so may be looking at what is there."""
        return topic in self._parts.get(connection, {}).values()

    def parts_of(self, connection: C) -> int:
        return len(self._parts.get(connection, ()))

    def lost(self, connection: C) -> None:
        for part in self._parts.pop(connection, ()):
            del self._owners[part]

    def first_batch(self, writer: str, batch: int) -> None:
        """The batch has never been here before: none of its parts has begun."""
        self._forget(writer)
        self._begun[writer] = (batch, set())
        if len(self._begun) > WRITERS_MAX:
            self._forget(next(iter(self._begun)))

    def begins(self, writer: str, batch: int, partition: int, topic: str) -> bool:
        """Whether this is certainly the first time; of a batch that an earlier process has seen, nobody knows."""
        known, begun = self._begun.get(writer, (None, set()))
        if known != batch or (partition, topic) in begun or not self._has_room(writer):
            return False
        begun.add((partition, topic))
        self._parts_begun += 1
        return True

    def _has_room(self, writer: str) -> bool:
        """For one more part; the parts of those whose batch began before are forgotten for it."""
        while self._parts_begun >= WRITE_PARTS_KNOWN_MAX and (first := next(iter(self._begun))) != writer:
            self._forget(first)
        return self._parts_begun < WRITE_PARTS_KNOWN_MAX

    def _forget(self, writer: str) -> None:
        _, begun = self._begun.pop(writer, (None, ()))
        self._parts_begun -= len(begun)
