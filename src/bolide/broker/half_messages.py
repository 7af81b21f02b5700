"""HalfMessages: messages that wait for the end of their transaction, as the original stores them.

A half message lies in a topic of its own, and a record in the op topic names the offsets there of those that have
ended.  Both queues together say what is open, so a start reads them, from where they were last known to be settled
(the offsets of a group of the broker's own), and remembers a byte for each (`machines/half_window.py`).

An op record is written in one go with the message that it is about, behind it.  Whatever a crash leaves of the log,
only its very last record can be a committed message, or one that was given up, without its op record; a start looks at
that one.

A half message whose producer is asked is stored again at the end of its queue, and the new one names the first of its
line.  So a transaction that is ended by a former place of its message is found, and no crash leaves two of a line open.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from bolide.broker.state import BrokerState
from bolide.broker.waiting_message import Undeliverable, own_queue
from bolide.machines.half_window import HalfWindow
from bolide.model import names
from bolide.model.errors import MalformedRecord, RequestError, StoreRefusal
from bolide.model.filter import EVERYTHING
from bolide.model.limit import KIB, MIB
from bolide.model.limits import HALF_LINES_MAX, RESUMED_HALVES_MAX
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.model.numbers import parse_count
from bolide.model.pairs import parse_properties
from bolide.record.layout import OpenRecord, open_record
from bolide.store.append import QueueTail
from bolide.store.new_message import Appended, NewMessage
from bolide.store.reading import PullLimits, PullStatus

log = logging.getLogger(__name__)

GROUP = names.TRANSACTIONS_GROUP
QUEUE = 0
ENDED_TAG = "d"

_ONE = PullLimits(1, KIB, 1, KIB, 0)
_MANY = PullLimits(1024, MIB, 1024, MIB, 0)
OP_PROPERTIES = f"{Property.TAGS}\x01{ENDED_TAG}\x02".encode()
_HALF_TOPIC = names.HALF_TOPIC.encode()
_LINE_NAME = f"{Property.PREPARED_QUEUE_OFFSET}\x01".encode()

_Whose = tuple[str | None, str]
"""What a message says itself of which one it is, and of its sender."""

_Line = tuple[int, _Whose]
"""The offset of the first, and whose all of them are."""


class Half(NamedTuple):
    """A half message in its place."""

    offset: int
    log_offset: int
    message: NewMessage
    properties: dict[str, str]
    line: int
    """The offset of the first of those that are the same message."""
    came_ms: int
    """When that one was stored, by the broker's own clock: storing a message again makes it no younger."""
    own_queue: tuple[str, int] | None
    """Topic and queue that its sender meant; None when it does not say so."""

    @property
    def size(self) -> int:
        return len(self.message.body) + len(self.message.properties)

    @property
    def group(self) -> str:
        return self.properties.get(Property.PRODUCER_GROUP, "")

    @property
    def unique_key(self) -> str | None:
        return self.properties.get(Property.UNIQUE_KEY)

    def is_same_as(self, other: "Half") -> bool:
        """Whether both are one message of one sender, as far as it says itself."""
        return _whose(self.properties) == _whose(other.properties)


class Ending(NamedTuple):
    """The end of a transaction: what is stored of it, beside the mark of its half message, which is in this place."""

    half: Half
    place: int
    messages: Sequence[NewMessage]


@dataclass(frozen=True, slots=True)
class _Settled:
    """Everything before these offsets is settled, once the log is durable up to `log_end`."""

    half: int
    op: int
    log_end: int


class HalfMessages:
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._reader = state.store.reader
        self._cursor = self._reader.cursor(names.HALF_TOPIC, QUEUE)
        self._places: dict[int, int] = {}  # where the message of a line is now, if it was stored again
        self._resumed: dict[
            int, None
        ] = {}  # where messages lie that were given up, and are open again or were
        self._op_settled = self._settled_of(names.OP_HALF_TOPIC)
        self.window = HalfWindow(self._settled_of(names.HALF_TOPIC))
        self._seen_ends = (self.window.first, self._op_settled)  # of both queues, some time ago
        self._next = _Settled(self.window.first, self._op_settled, 0)
        self._unnoted: Ending | None = None  # an end whose op record could not be written at the start
        self._recall()

    # ---- what is open --------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """Of the queue of half messages."""
        return self._reader.queue_range(names.HALF_TOPIC, QUEUE)[1]

    @property
    def open_count(self) -> int:
        return self.window.open_count(self.end)

    def at(self, log_offset: int) -> Half | None:
        """The half message in this place of the log."""
        return self._in_line(self._reader.named_at(log_offset))

    def numbered(self, offset: int, log_offset: int, size_max: int) -> Half | None:
        """The half message of this offset, if it is in this place of the log and not larger."""
        return self._in_line(self._reader.entry_at(names.HALF_TOPIC, QUEUE, offset, log_offset, size_max))

    def number(self, offset: int) -> Half | None:
        """The half message of this offset; None when it cannot be read, or not yet."""
        return self._in_line(self._read(offset))

    def is_gone(self, offset: int) -> bool:
        """Of one that cannot be read: whether that is so for good."""
        found = self._reader.pull_at(self._cursor, offset, _ONE, EVERYTHING)
        return found.status is not PullStatus.OFFSET_OVERFLOW_ONE

    def place_of(self, half: Half) -> int | None:
        """Where this message is now; None when its transaction has ended."""
        place = self._places.get(half.line, half.offset)
        return None if self.is_ended(place) or place >= self.end else place

    def is_ended(self, place: int) -> bool:
        return self.window.is_finished(place)

    # ---- what happens --------------------------------------------------------------------------------------

    def ended(self, endings: Sequence[Ending]) -> Appended:
        """These transactions are over, all of them or none."""
        stored: list[NewMessage] = []
        for _, place, messages in endings:
            stored += messages
            stored.append(self.op_record(place))
        appended = self._state.door.append(stored)
        for half, place, _ in endings:
            self._forget(half, place)
        return appended[-1]

    def open_in_front(self, numbers: Sequence[int]) -> int:
        """How many of these are open, named once and where they have always been, before the first that is not."""
        seen: set[int] = set()
        end, is_finished = self.end, self.window.is_finished
        for count, number in enumerate(numbers):
            if number in seen or number in self._places or number >= end or is_finished(number):
                return count
            seen.add(number)
        return len(numbers)

    def op_record(self, offset: int) -> NewMessage:
        """What marks a half message as ended.  A single offset is what all versions of the original read."""
        return NewMessage(
            topic=names.OP_HALF_TOPIC,
            queue_id=QUEUE,
            body=b"%d" % offset,
            properties=OP_PROPERTIES,
            flag=0,
            sys_flag=0,
            born_timestamp_ms=self._state.clock.now_ms(),
            born_host=self._state.identity.store_host,
        )

    def marks_of_move(self, half: Half) -> list[NewMessage]:
        """What is written behind a half message that is stored again: its old place is marked as ended if another one
        stays open before it.

        We know lines and need no such mark.  The original goes by the settled offset and would ask for both.  But one
        that asks for a time of its own it would take for ended by that mark.
        """
        passes = self.window.first < half.offset and Property.CHECK_IMMUNITY not in half.properties
        return [self.op_record(half.offset)] if passes else []

    def moved(self, half: Half, offset: int) -> None:
        """It was stored again there."""
        self.window.finish(half.offset)
        self._note_place(half.line, offset)

    def was_resumed(self, given_up_at: int) -> bool:
        """Whether the message that was given up there was opened again: as far back as is remembered."""
        return given_up_at in self._resumed

    def note_resumed(self, given_up_at: int) -> None:
        """It was; the half message that it has become names this place, and so a start knows of those still open."""
        self._resumed[given_up_at] = None
        if len(self._resumed) > RESUMED_HALVES_MAX:
            del self._resumed[next(iter(self._resumed))]

    def gone(self, offset: int) -> None:
        """It is not to be read any more."""
        self.window.finish(offset)

    def _in_line(self, record: bytes | None) -> Half | None:
        """The half message of a record.  The line that it names may be a client's word, in a store of others: it is
        believed only if the first there is the same message."""
        half = _half_of(record)
        if half is None:
            return None
        named = parse_count(half.properties.get(Property.PREPARED_QUEUE_OFFSET, ""))
        first = _half_of(self._read(named)) if named is not None and named < half.offset else None
        if first is None or not first.is_same_as(half):
            return half
        return half._replace(line=first.offset, came_ms=first.came_ms)

    def _read(self, offset: int) -> bytes | None:
        if self._cursor.queue is None:
            self._cursor = self._reader.cursor(names.HALF_TOPIC, QUEUE)
        found = self._reader.pull_at(self._cursor, offset, _ONE, EVERYTHING)
        is_this = found.status is PullStatus.FOUND and found.next_offset == offset + 1  # or one behind it
        return found.data if is_this else None

    def _forget(self, half: Half, place: int) -> None:
        self.window.finish(place)
        self._places.pop(half.line, None)

    def _note_place(self, line: int, offset: int) -> None:
        self._places.pop(line, None)
        self._places[line] = offset
        if len(self._places) > HALF_LINES_MAX:
            del self._places[next(iter(self._places))]

    # ---- what is settled, for the next start and for the original ------------------------------------------

    def keep_settled(self) -> None:
        """Store how far everything is settled, as far as what was stored again since is durable.

        Op records are settled when all half messages are that were there when they were written.
        """
        state = self._state
        if state.store.durability.durable >= self._next.log_end:
            self._commit(names.HALF_TOPIC, self._next.half)
            self._commit(names.OP_HALF_TOPIC, self._next.op)
            first, ends = self.window.first, (self.end, self._op_end)
            if first >= self._seen_ends[0]:
                self._op_settled = self._seen_ends[1]
                self._seen_ends = ends
            if first >= ends[0]:
                self._op_settled = ends[1]
            self._next = _Settled(first, self._op_settled, int(state.store.log.end))

    def close(self) -> None:
        """Store all of it; the log is made durable first."""
        for _ in range(2):  # what was noted before, then what is so now
            self._state.store.sync_now()
            self.keep_settled()

    @property
    def _op_end(self) -> int:
        return self._reader.queue_range(names.OP_HALF_TOPIC, QUEUE)[1]

    def _commit(self, topic: str, offset: int) -> None:
        offsets = self._state.offsets
        if offsets.query(GROUP, topic, QUEUE) != offset and (offset > 0 or offsets.has_committed(GROUP)):
            offsets.commit(GROUP, topic, QUEUE, offset, offset)

    def _settled_of(self, topic: str) -> int:
        start, end = self._reader.queue_range(topic, QUEUE)
        return min(end, max(start, self._state.offsets.query(GROUP, topic, QUEUE) or 0))

    # ---- a start -------------------------------------------------------------------------------------------

    def _recall(self) -> None:
        """Find out what is open."""
        end = self.end
        for data, record in self._records(names.OP_HALF_TOPIC, self._op_settled):
            for offset in _ended_offsets(data, record, self.window.first, end):
                self.window.finish(offset)
        self._recall_lines()
        self._end_last()
        self._seen_ends = (self.end, self._op_end)

    def _recall_lines(self) -> None:
        """Of those that are one message only the last is open; and some were given up before."""
        first_open = self.window.next_open(self.window.first, self.end)
        if first_open is None:
            return
        firsts: dict[int, _Whose | None] = {}
        # Not bounded as `_places` is: of a line whose last place is forgotten here, two places would stay open.
        places: dict[_Line, int] = {}
        for data, record in self._records(names.HALF_TOPIC, first_open):
            if record.prepared_offset > 0:
                self.note_resumed(record.prepared_offset)
            if data.find(_LINE_NAME, record.properties_at, record.end) < 0:
                continue
            line = self._line_of(data, record, firsts)
            if line is None:
                continue  # somebody else's words
            self.window.finish(places.pop(line, line[0]))
            if not self.window.is_finished(record.queue_offset):
                places[line] = record.queue_offset
        for (first, _), place in places.items():
            self._note_place(first, place)

    def _line_of(self, data: bytes, record: OpenRecord, firsts: dict[int, _Whose | None]) -> _Line | None:
        """The line that it names, if it is of that line (`_in_line`).  The first of each is read once and remembered:
        there may be a hundred records of a line, and nobody is served before all are seen.  If the first is gone, those
        that name it and are the same message are a line still."""
        if data[record.topic_at : record.topic_end] != _HALF_TOPIC or record.queue_id != QUEUE:
            return None
        properties = parse_properties(data[record.properties_at : record.end].decode("utf-8", "replace"))
        line = parse_count(properties.get(Property.PREPARED_QUEUE_OFFSET, ""))
        if line is None or line >= record.queue_offset:
            return None
        if line in firsts:
            whose = firsts[line]
        else:
            first = _half_of(self._read(line))
            whose = None if first is None else _whose(first.properties)
            if len(firsts) < HALF_LINES_MAX:
                firsts[line] = whose
        own = _whose(properties)
        return (line, own) if whose in (own, None) else None

    def _end_last(self) -> None:
        """What was committed or given up at the very end of the log may have lost its op record to a crash."""
        last = self._state.store.log.last_record
        record = self._reader.read_at(last) if last >= 0 else None
        at = None if record is None else open_record(record, 0, len(record))
        if record is None or at is None:
            return
        is_given_up = record[at.topic_at : at.topic_end] == names.TRANS_CHECK_MAX_TOPIC.encode()
        if not is_given_up and at.sys_flag & TRANSACTION_MASK != SysFlag.COMMIT:
            return
        half = self.at(at.prepared_offset)
        place = None if half is None else self.place_of(half)
        if half is None or place is None:
            return
        if not half.is_same_as(half._replace(properties=NewMessage.of_opened(record, at).pairs())):
            return
        ending = Ending(half, place, ())
        try:
            self.ended([ending])
        except StoreRefusal as error:
            log.warning("the end of half message %d is noted with the next message: %s", place, error)
            self._forget(half, place)
            self._unnoted = ending
            self._state.door.on_arrival(self._note_end)

    def _note_end(self, tail: QueueTail) -> None:
        """The store takes messages again: what was the end of the log for the next start is it no more."""
        if self._unnoted is not None:
            with suppress(RequestError, StoreRefusal):  # the one after it tries again
                self.ended([self._unnoted])
                self._unnoted = None

    def _records(self, topic: str, offset: int) -> Iterator[tuple[bytes, OpenRecord]]:
        """All records of a queue from here on, each with the data that it was found in."""
        cursor = self._reader.cursor(topic, QUEUE)
        end = self._reader.queue_range(topic, QUEUE)[1]
        while offset < end:
            found = self._reader.pull_at(cursor, offset, _MANY, EVERYTHING)
            at = 0
            while at < len(found.data):
                record = open_record(found.data, at, len(found.data))
                yield found.data, record
                at = record.end
            if found.next_offset <= offset:
                return  # not to be read yet
            offset = found.next_offset


def _whose(properties: Mapping[str, str]) -> _Whose:
    return properties.get(Property.UNIQUE_KEY), properties.get(Property.PRODUCER_GROUP, "")


def _half_of(record: bytes | None) -> Half | None:
    """A line by itself; None when it is no half message."""
    if record is None:
        return None
    try:
        at = open_record(record, 0, len(record))
        message = NewMessage.of_opened(record, at)
    except (MalformedRecord, UnicodeDecodeError):
        return None
    if message.topic != names.HALF_TOPIC or message.queue_id != QUEUE:
        return None
    properties = message.pairs()
    try:
        meant = own_queue(properties)
    except Undeliverable:
        meant = None
    came_ms = at.store_timestamp_ms
    return Half(at.queue_offset, at.log_offset, message, properties, at.queue_offset, came_ms, meant)


def _ended_offsets(data: bytes, record: OpenRecord, first: int, end: int) -> Iterator[int]:
    """Of half messages, as an op record names them: one, or several with commas."""
    for word in data[record.body_at : record.body_end].split(b","):
        offset = parse_count(word.decode("ascii", "replace"))
        if offset is not None and first <= offset < end:
            yield offset
