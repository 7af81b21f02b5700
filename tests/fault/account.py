"""The books of a campaign: what was acknowledged, what was read, and every way in which the two may disagree.

An acknowledgement names a place (queue, offset) for a message (thread, number).  A reading says what is at a place.
The account never forgets a reading, so a place that changes, or a message that appears twice, is seen however much
later that happens.  It judges nothing by time and reads no files of the store.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Place(NamedTuple):
    queue: int
    offset: int


class Ack(NamedTuple):
    """One acknowledged send of some messages, numbered from `number` on."""

    began_ms: int
    answered_ms: int
    thread: int
    number: int
    messages: int
    queue: int
    offset: int


def parse_outcome(line: str) -> Ack | None:
    """A line of the Java program `Endure`; None for a send that was not acknowledged."""
    words = line.split()
    return Ack(*map(int, words[1:8])) if words[0] == "+" else None


@dataclass
class Account:
    """Everything one campaign knows about its topic."""

    acknowledged: int = 0
    problems: list[str] = field(default_factory=list)
    _owed: dict[Place, tuple[int, int]] = field(default_factory=dict)  # not yet read: message, when answered
    _read: defaultdict[int, "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    _sums: defaultdict[int, "array[int]"] = field(default_factory=lambda: defaultdict(lambda: array("q")))
    _newest: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # (queue, thread) to the last number read

    @property
    def owed(self) -> int:
        """Messages that were acknowledged since the last reading."""
        return len(self._owed)

    def ends(self) -> dict[int, int]:
        """How far each queue was read."""
        return {queue: len(read) for queue, read in self._read.items()}

    def acknowledge(self, acks: Iterable[Ack]) -> None:
        for ack in acks:
            self.acknowledged += ack.messages
            for i in range(ack.messages):
                message = _message(ack.thread, ack.number + i)
                self._owe(Place(ack.queue, ack.offset + i), message, ack.answered_ms)

    def read(self, lines: Iterable[str]) -> None:
        """Take a reading: lines `queue offset sum intact thread-number`, ascending within each queue."""
        for line in lines:
            queue, offset, total, intact, name = line.split()
            thread, _, number = name.partition("-")
            place = Place(int(queue), int(offset))
            if intact != "1" or not (thread.isdigit() and number.isdigit()):
                self.problems.append(f"damaged: {place} holds {name!r}")
            else:
                self._see(place, int(thread), int(number), int(total))

    def close_books(self, forgiven_from_ms: int | None = None) -> list[int]:
        """Everything acknowledged so far must have been read by now, or it is lost.

        What was acknowledged at or after a given moment may be: returns when that was, for each message.
        """
        forgiven: list[int] = []
        for place, (message, answered_ms) in self._owed.items():
            if forgiven_from_ms is not None and answered_ms >= forgiven_from_ms:
                forgiven.append(answered_ms)
            else:
                self.problems.append(f"lost: {_name(message)}, acknowledged at {place} at {answered_ms} ms")
        self._owed.clear()
        return forgiven

    def delivered(self, seen: Mapping[int, set[int]]) -> None:
        """The offsets of each queue that a consumer group saw: at least everything that was read."""
        for queue, read in self._read.items():
            missing = set(range(len(read))) - seen.get(queue, set())
            if missing:
                self.problems.append(
                    f"not delivered: {len(missing)} messages of queue {queue}, first {min(missing)}"
                )

    def _owe(self, place: Place, message: int, answered_ms: int) -> None:
        read = self._read[place.queue]
        if place.offset >= len(read):
            known, _ = self._owed.setdefault(place, (message, answered_ms))
            if known != message:
                self.problems.append(
                    f"acknowledged twice: {place} for {_name(known)} and for {_name(message)}"
                )
        elif read[place.offset] != message:
            self.problems.append(f"lost: {_name(message)}, {place} holds {_name(read[place.offset])}")

    def _see(self, place: Place, thread: int, number: int, total: int) -> None:
        read, sums, message = self._read[place.queue], self._sums[place.queue], _message(thread, number)
        if place.offset < len(read):
            if read[place.offset] != message or sums[place.offset] != total:
                was = _name(read[place.offset])
                self.problems.append(f"changed: {place} was {was}, is {_name(message)}, or its bytes changed")
            return
        if place.offset > len(read):
            self.problems.append(f"hole: {place} follows {place.queue}/{len(read) - 1}")
            for _ in range(place.offset - len(read)):
                read.append(-1)
                sums.append(-1)
        read.append(message)
        sums.append(total)
        newest = self._newest.get((place.queue, thread), -1)
        if number <= newest:
            self.problems.append(f"order: {thread}-{number} at {place} behind {thread}-{newest}")
        self._newest[place.queue, thread] = number
        owed, _ = self._owed.pop(place, (message, 0))
        if owed != message:
            self.problems.append(f"lost: {_name(owed)}, {place} holds {_name(message)}")


def _message(thread: int, number: int) -> int:
    return thread << 48 | number


def _name(message: int) -> str:
    return f"{message >> 48}-{message & (1 << 48) - 1}" if message >= 0 else "nothing"
