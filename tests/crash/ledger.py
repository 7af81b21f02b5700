"""Ledger: what was given to a store, what it has promised, and whether it holds that.

Each queue is a list of messages in the order in which they were given.  `promised` counts those at its front that no
power loss may take: those whose sync has succeeded.  What lies behind may be there or not, but only as a whole, in
order and unchanged.  Retention takes messages from the front: those in segments that it was told to delete may be
gone, the others keep their numbers.
"""

import struct
from dataclasses import dataclass

from bolide.store.reading import PullLimits
from bolide.store.store import MessageStore
from tests.unit.store.stage import records_of

Queue = tuple[str, int]

Found = tuple[int, list[bytes]]
"""The first offset of a queue and its records from there on."""

LIMITS = PullLimits(1000, 1 << 30, 1000, 1 << 30, hot_bytes_behind=2**40)


class Broken(AssertionError):
    """A promise was not kept."""


@dataclass(slots=True)
class Given:
    """A message as it was given to the store, and what the store has made of it."""

    body: bytes
    properties: bytes
    record: bytes = b""  # empty until the append has returned
    end: int = 0


class Ledger:
    def __init__(self) -> None:
        self.queues: dict[Queue, list[Given]] = {}
        self.promised: dict[Queue, int] = {}
        self.deleted: dict[Queue, list[list[Given]]] = {}
        """Of each queue what it held when its topic was deleted, while nobody was told so.  A crash may bring it back,
        unless there is something newer."""
        self.leaving: set[str] = set()  # topics that this process has deleted, and nobody was told yet
        self.expired_to = 0  # what lies before this place of the log may be gone
        self.offset_given = 0
        self.offset_promised = 0

    # ---- writing -------------------------------------------------------------------------------------------

    def give(self, queue: Queue, body: bytes, properties: bytes) -> Given:
        """A message is about to be appended: from here on it may be found."""
        given = Given(body, properties)
        self.queues.setdefault(queue, []).append(given)
        self.promised.setdefault(queue, 0)
        return given

    def refuse_the_rest(self) -> None:
        """What was given and not appended was refused, and must never be found."""
        for messages in self.queues.values():
            while messages and not messages[-1].record:
                messages.pop()

    def delete(self, topic: str) -> None:
        """The queues of a topic are deleted, and begin anew with the next message."""
        self.leaving.add(topic)
        for queue in [queue for queue in self.queues if queue[0] == topic]:
            self.deleted.setdefault(queue, []).append(self.queues[queue])
            self.queues[queue] = []
            self.promised[queue] = 0

    def deletions_last(self) -> None:
        """Whoever deleted topics is told: nothing of what they held is ever seen again."""
        for queue in [queue for queue in self.deleted if queue[0] in self.leaving]:
            del self.deleted[queue]
        self.leaving.clear()

    def appended(self, queue: Queue, queue_offset: int, log_offset: int, record: bytes) -> None:
        """The store has taken a message, at this place and in this form."""
        given = self._at(queue, queue_offset)
        expect_message(record, queue, queue_offset, given)
        expect(_log_offset_of(record) == log_offset, f"a record says it is elsewhere than at {log_offset}")
        given.record, given.end = record, log_offset + len(record)

    def durable_to(self, log_offset: int) -> None:
        """A sync has succeeded: everything before this place is promised."""
        for queue, messages in self.queues.items():
            count = self.promised[queue]
            while count < len(messages) and messages[count].record and messages[count].end <= log_offset:
                count += 1
            self.promised[queue] = count

    def counts(self) -> dict[Queue, int]:
        """How many messages of each queue were appended."""
        return {
            queue: sum(1 for given in messages if given.record) for queue, messages in self.queues.items()
        }

    def settle(self, found: dict[Queue, Found]) -> None:
        """A recovery has decided what exists: that is the truth from now on."""
        for queue, messages in self.queues.items():
            start, records = found[queue]
            before = self._deleted_before(queue, start, records)
            if before is not None:
                messages = self.queues[queue] = before
                self.deleted[queue].remove(before)
            del messages[start + len(records) :]
            for given, record in zip(messages[start:], records, strict=True):
                given.record, given.end = record, _log_offset_of(record) + len(record)
            self.promised[queue] = min(self.promised[queue], len(messages))

    # ---- checking ------------------------------------------------------------------------------------------

    def check(self, store: MessageStore, at_least: dict[Queue, int] | None = None) -> dict[Queue, Found]:
        """Every promise against what readers get; returns that.  `at_least` replaces what power loss must leave."""
        promised = at_least or self.promised
        found = {queue: read_queue(store, queue) for queue in self.queues}
        for queue, (start, records) in found.items():
            messages = self.queues[queue]
            if not promised[queue] and self._deleted_before(queue, start, records) is not None:
                continue
            lost = promised[queue] - start - len(records)
            expect(lost <= 0, f"{queue} lost {lost} of {promised[queue]} promised messages")
            extra = start + len(records) - len(messages)
            expect(extra <= 0, f"{queue} has {extra} messages more than it was given")
            expired = sum(1 for given in messages if given.record and given.end <= self.expired_to)
            # Of a queue that has lost everything only the name of a file may be left, which tells its number.
            expect(
                start <= expired or not records,
                f"{queue} begins at {start} where {expired} messages have expired",
            )
            for offset, (given, record) in enumerate(zip(messages[start:], records, strict=False), start):
                if given.record:
                    expect(record == given.record, f"{queue} offset {offset} is not what was appended there")
                else:
                    expect_message(record, queue, offset, given)
        unknown = [queue.tail.key for queue in store.queues if queue.end and queue.tail.key not in found]
        expect(not unknown, f"queues that nobody has written to: {unknown}")
        return found

    def check_offset(self, offset: int) -> None:
        """A group's progress: what was written last, or what was being written."""
        expect(
            self.offset_promised <= offset <= self.offset_given,
            f"the group stands at {offset}, not in {self.offset_promised} to {self.offset_given}",
        )

    def _deleted_before(self, queue: Queue, start: int, records: list[bytes]) -> list[Given] | None:
        """The deleted messages that these are among."""
        for messages in self.deleted.get(queue, []) if start or records else []:
            is_long_enough = len(messages) >= start + len(records)
            if is_long_enough and {given.record for given in messages}.issuperset(records):
                return messages
        return None

    def _at(self, queue: Queue, queue_offset: int) -> Given:
        messages = self.queues[queue]
        expect(queue_offset < len(messages), f"{queue} gave offset {queue_offset} of {len(messages)}")
        given = messages[queue_offset]
        expect(not given.record, f"{queue} gave offset {queue_offset} twice")
        return given


def read_queue(store: MessageStore, queue: Queue) -> Found:
    """All records of a queue, as consumers get them."""
    topic, queue_id = queue
    start, end = store.reader.queue_range(topic, queue_id)
    offset = start
    records: list[bytes] = []
    while offset < end:
        result = store.reader.pull(topic, queue_id, offset, limits=LIMITS)
        if result.next_offset <= offset or not result.data:
            raise Broken(f"{queue} stops at {offset}: {result}")
        records += records_of(result.data)
        expect(start + len(records) == result.next_offset, f"{queue} has a gap before {result.next_offset}")
        offset = type(offset)(result.next_offset)
    return start, records


def expect_message(record: bytes, queue: Queue, queue_offset: int, given: Given) -> None:
    """The record holds this message at this place of this queue (hosts are IPv4, so all positions are fixed)."""
    (queue_id,) = struct.unpack_from(">i", record, 12)
    (offset,) = struct.unpack_from(">q", record, 20)
    (body_length,) = struct.unpack_from(">I", record, 84)
    topic_at = 88 + body_length
    topic_end = topic_at + 1 + record[topic_at]
    topic = record[topic_at + 1 : topic_end].decode()
    where = f"{queue} offset {queue_offset}"
    expect((topic, queue_id) == queue, f"{where} is a message of {(topic, queue_id)}")
    expect(offset == queue_offset, f"{where} says it is offset {offset}")
    expect(record[88:topic_at] == given.body, f"{where} has another body")
    expect(record[topic_end + 2 :].startswith(given.properties), f"{where} has other properties")


def expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Broken(otherwise)


def _log_offset_of(record: bytes) -> int:
    (log_offset,) = struct.unpack_from(">q", record, 28)
    return int(log_offset)
