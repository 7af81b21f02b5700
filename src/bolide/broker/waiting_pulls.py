"""The pulls that wait at one queue, by the tags that they want.

A message wakes who wants it, and costs nothing for all others: the entries of a queue are gone over once for all who
wait there, and only those whose tags have come are looked at.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from bolide.model.filter import Filter
from bolide.net.link import Link
from bolide.store.collect import first_by_code, first_wanted
from bolide.store.queue_entry import ENTRY_BYTES
from bolide.store.queue_index import ConsumeQueue
from bolide.store.reading import StoreReader

log = logging.getLogger(__name__)

LOOK_ENTRIES = 4096
"""Entries that are gone over in one piece."""

HELD_BYTES = 1024
CODE_BYTES = 256
"""About what a held pull takes beside its request, and with each tag that it wants."""

EXAMINING_COST = 32
"""What looking into messages costs beside looking at their tags."""

QueueKey = tuple[str, int]
Pulls = dict["HeldPull", None]


@dataclass(slots=True, eq=False)
class HeldPull:
    """A request that is executed again later, and how to tell when."""

    link: Link
    frame: bytes
    """The request as it would come again."""
    key: QueueKey
    offset: int
    filter: Filter
    deadline_ms: int
    queue: ConsumeQueue | None = None
    """The queue that was found, and later the one that was looked at; one of the same name may have taken its place."""
    seen: int = 0
    """Entries of that queue below this are known not to be wanted."""
    waiting: "WaitingPulls | None" = None
    """Where it is held, while it is."""

    @property
    def cost(self) -> int:
        """Of looking whether it wants something, or of executing it again, beside that of others."""
        return 1 if self.filter.examine is None else EXAMINING_COST

    @property
    def size(self) -> int:
        """About the bytes that it takes."""
        filter = self.filter
        return HELD_BYTES + len(self.frame) + CODE_BYTES * len(filter.codes or ()) + filter.examine_bytes


Step = tuple[HeldPull | None, int]
"""A pull that wants what has come, or none, and what it has cost to find out."""


class WaitingPulls:
    """All who wait at one queue.  None stands for the tag of those who want any."""

    __slots__ = ("_by_code", "_reach", "queue", "seen")

    def __init__(self, queue: ConsumeQueue | None, offset: int) -> None:
        self.queue = queue
        self.seen = offset
        """Entries below this are not wanted by anybody who is here."""
        self._reach = 0  # and below this they are just being looked at
        self._by_code: dict[int | None, Pulls] = {}

    def __bool__(self) -> bool:
        return bool(self._by_code)

    def add(self, held: HeldPull) -> bool:
        """False for a pull that asks for entries which were looked at without it."""
        if held.offset < max(self.seen, self._reach):
            return False
        for code in _codes(held):
            self._by_code.setdefault(code, {})[held] = None
        held.waiting = self
        return True

    def remove(self, held: HeldPull) -> None:
        """Leaves in the pull what is known of its queue."""
        held.queue, held.seen = self.queue, max(held.seen, self.seen)
        held.waiting = None
        for code in _codes(held):
            pulls = self._by_code[code]
            del pulls[held]
            if not pulls:
                del self._by_code[code]

    def everybody(self) -> Iterator[HeldPull]:
        """One by one, some perhaps twice or gone meanwhile."""
        for pulls in list(self._by_code.values()):
            yield from list(pulls)

    def begin(self, queue: ConsumeQueue) -> None:
        """The queue under this name is another one than before: nothing of it has been looked at."""
        self.queue, self.seen, self._reach = queue, 0, 0

    def look(self, reader: StoreReader) -> Iterator[Step]:
        """Go over what has come, up to what may be read: whoever wants some of it, and None between them; with each
        what the step has cost.

        A step looks at one pull or one piece of the queue.  When all is seen there are no more steps.
        """
        queue = self.queue
        assert queue is not None, "something has come there"
        while self.seen < queue.end:
            entries = queue.read(self.seen, LOOK_ENTRIES)
            if not entries:  # a file is missing
                passed = queue.following(self.seen) - self.seen
            else:
                passed, first_at = first_by_code(entries, reader.readable_end)
                self._reach = self.seen + passed
                for code in self._awaited(first_at):
                    for held in list(self._by_code.get(code, ())):
                        if held.waiting is self:
                            is_wanted = self._wants(held, entries, first_at[code], reader)
                            yield held if is_wanted else None, held.cost
            if not passed:
                break
            self.seen += passed
            yield None, 1

    def _awaited(self, first_at: dict[int | None, int]) -> list[int | None]:
        """Those tags that have come and that somebody wants."""
        if len(first_at) <= len(self._by_code):
            return [code for code in first_at if code in self._by_code]
        return [code for code in self._by_code if code in first_at]

    def _wants(self, held: HeldPull, entries: bytes, at: int, reader: StoreReader) -> bool:
        """Whether the pull wants one of the entries from `at` on, where its tag comes first: it goes on there.

        Also when nobody can tell; it is executed again then, and will hear why.
        """
        if held.filter.examine is None and held.offset <= self.seen + at:
            held.seen = self.seen + at
            return True
        first = max(at, held.offset - self.seen)
        rest = entries[first * ENTRY_BYTES :]
        try:
            scanned, found = first_wanted(rest, held.filter, reader.readable_end, reader.read_at)
        except Exception:
            log.exception("cannot tell whether a held pull of %s wants the new messages", held.key)
            return True
        if found:
            held.seen = self.seen + first + scanned
        return found


def _codes(held: HeldPull) -> frozenset[int] | tuple[None]:
    return (None,) if held.filter.codes is None else held.filter.codes
