"""The readable twin of `_append.pyx`.

Messages that were decided one by one become records with `Appender.encode`.  `Appender.append_run` is the hot path of a
broker: rows of a `SendRun` (see `model.send_rows`) become records, ready to be written to the log in one piece, and
entries in their queues, in one step and in order.  A row that asks to wait for something goes where its detour says.
Any other that needs a decision ends the run early: the caller handles it by the general path and comes back for the
rest.
"""

import base64
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bolide.model import send_rows as column
from bolide.model.delay_levels import DEFAULT_LEVELS, DelayLevels
from bolide.model.errors import MessageIllegal
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.properties import leaves_fast_path
from bolide.record.checksum_twin import seal_record
from bolide.record.codec_twin import encode_record, split_batch, tags_code_of
from bolide.record.layout import (
    BLANK_BYTES,
    FIXED_BYTES,
    HOST_V4_BYTES,
    LENGTH_MAX,
    RECORD_CHECKSUM_BYTES,
    TOPIC_V1_BYTES_MAX,
)
from bolide.store.asking_twin import asking_of
from bolide.store.new_message import Appended, NewMessage
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES

DONE = 0
SEGMENT_FULL = 1
NEEDS_GENERAL_PATH = 2
NEEDS_QUEUE = 3
_SCRATCH_FULL = 4

_ONE_RECORD = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)

ASKED_PER_RUN = 16
"""Decisions that are made in one go."""

SUFFIX_BYTES_MAX = 1024
"""Of what the broker writes behind the pairs of a message that waits."""
_QUEUE_ROOM = 22


_WAIT = Property.WAIT.encode()
_UNIQUE_KEY = Property.UNIQUE_KEY.encode()

_Part = tuple[int, bytes, bytes]
"""A record's flag, body and stored properties."""


class QueueTail:
    """The newest entries of one consume queue: those not yet written to its file, in memory."""

    __slots__ = ("_data", "key", "next_offset", "owner", "start", "touched")

    def __init__(self, key: tuple[str, int], next_offset: int, owner: object) -> None:
        self.key = key
        self.owner = owner
        self.next_offset = next_offset
        self.start = next_offset  # queue offset of the first entry in memory
        self.touched = False
        self._data = bytearray()

    def append(self, log_offset: int, size: int, tags_code: int) -> None:
        self._data += ENTRY.pack(log_offset, size, tags_code)
        self.next_offset += 1

    def entries(self, first: int, last: int) -> bytes:
        """Entries `first` to `last - 1`, all of which must be in memory."""
        assert self.start <= first <= last <= self.next_offset
        return bytes(self._data[(first - self.start) * ENTRY_BYTES : (last - self.start) * ENTRY_BYTES])

    def drop_before(self, offset: int) -> None:
        """Forget entries below `offset`: they are in the file."""
        assert self.start <= offset <= self.next_offset
        del self._data[: (offset - self.start) * ENTRY_BYTES]
        self.start = offset

    def reset(self, next_offset: int) -> None:
        """Start again, empty, at another offset."""
        self._data.clear()
        self.start = self.next_offset = next_offset


class TopicLane:
    """A topic whose plain messages may take the fast path: its name and the tails of its queues.

    A queue that nobody has written to has none.  The first message for it stops with NEEDS_QUEUE, `missing` then says
    which one it is, and `open_missing` gives the lane its tail.
    """

    __slots__ = ("detours", "missing", "tails", "topic", "turn", "write_queues")

    def __init__(self, topic: bytes, tails: Sequence[QueueTail | None], write_queues: int) -> None:
        self.topic = topic
        self.tails = list(tails)
        if not 1 <= write_queues <= len(self.tails):
            raise ValueError(f"{write_queues} of {len(self.tails)} queues to write to")
        self.write_queues = write_queues
        self.missing = -1
        self.detours: dict[bytes, Detour] = {}  # that hold as long as the lane does
        self.turn = 0  # whose it is among the write queues, for messages that leave the choice to the broker

    def open_missing(self, tail: QueueTail) -> None:
        self.tails[self.missing] = tail


class Detour(NamedTuple):
    """Where messages wait that ask for it in the same words, and what is written into them.

    Behind the pairs that all messages of this broker get: the message's key under `key_name`, if there is one, then
    `pairs`, of which the number of its own queue is the end.
    """

    tail: QueueTail
    key_name: bytes
    pairs: bytes
    delay_ms: int
    """Its queue entry has the time when this is over; below 0, the hash of its tags as others."""
    handle: bytes
    """If there is one, the answer has a handle: base64 of this and its key."""
    properties_bytes_max: int
    size_bytes_max: int
    """Of properties and body; what is larger takes the general path."""


class Appender:
    """What is the same for every record of this broker."""

    def __init__(
        self,
        store_host: bytes,
        suffix: bytes,
        body_bytes_max: int,
        sealed: bool = False,
        levels: DelayLevels = DEFAULT_LEVELS,
    ) -> None:
        self._store_host = store_host
        self._checksum_room = bytes(RECORD_CHECKSUM_BYTES) if sealed else b""
        self._suffix = suffix + self._checksum_room
        self._body_bytes_max = body_bytes_max
        self._sealed = sealed
        self._levels = levels

    # ---- messages that were decided one by one -------------------------------------------------------------

    def records_size(self, messages: Sequence[NewMessage]) -> int:
        """How many bytes their records have; errors that a message alone can give come from here."""
        for message in messages:
            message.record(0, 0, 0, self._store_host, sealed=self._sealed)
            message.entry_code(0, self._levels)
        return sum(message.record_size(self._store_host, sealed=self._sealed) for message in messages)

    def encode(
        self,
        messages: Sequence[NewMessage],
        tails: list[QueueTail],
        log_offset: int,
        now_ms: int,
        touched: list[QueueTail],
    ) -> tuple[bytes, list[Appended]]:
        """Their records, to be written to the log at this place in one piece, and where each is then.

        Each has its entry in its tail, if it is one of its queue's; tails are marked and added to `touched`.
        """
        self.records_size(messages)
        records: list[bytes] = []
        appended: list[Appended] = []
        at = log_offset
        for message, tail in zip(messages, tails, strict=True):
            code, number = message.entry_code(now_ms, self._levels), 0
            if code is not None:
                number = tail.next_offset
            record = message.record(number, at, now_ms, self._store_host, sealed=self._sealed)
            if code is not None:
                tail.append(at, len(record), code)
                if not tail.touched:
                    tail.touched = True
                    touched.append(tail)
            records.append(record)
            appended.append(Appended(LogOffset(at), QueueOffset(number), LogOffset(at + len(record))))
            at += len(record)
        return b"".join(records), appended

    # ---- runs of plain sends -------------------------------------------------------------------------------

    def append_run(
        self,
        rows: "array[int]",
        log_offsets: "array[int]",
        buffer: bytearray,
        properties: bytearray,
        lanes: Sequence[TopicLane | None],
        first: int,
        count: int,
        scratch: bytearray,
        room: int,
        log_offset: int,
        born_host: bytes,
        now_ms: int,
        touched: list[QueueTail],
        find: Callable[[TopicLane, bytes], Detour | None] | None = None,
        texts_used: int = 0,
    ) -> tuple[int, int, int]:
        """Encode rows `first` to `count - 1` into `scratch`, for the place `log_offset` of the log.

        `room` is what the segment has left there.  Returns the first row not taken, how many bytes were encoded, and
        why it stopped.  Tails that got entries are marked and added to `touched`.

        `find` is asked for detours that the lane does not know: by a byte (the bits of a transaction, `HAS_GROUP`) and
        the pair that asks.  Texts that only answers need go behind those that are used in `properties`.
        """
        run = _Run(
            rows, log_offsets, buffer, properties, scratch, room, log_offset, born_host, now_ms, touched
        )
        run.find, run.texts_used = find, min(texts_used, len(properties))
        for row in range(first, count):
            lane = lanes[rows[row * column.COLUMNS + column.TOPIC]]
            if lane is None:
                return row, run.used, NEEDS_GENERAL_PATH
            if run.records == column.RECORDS_MAX:
                return row, run.used, DONE
            outcome = self._append_row(run, row * column.COLUMNS, lane)
            if outcome == _SCRATCH_FULL:
                return row, run.used, DONE if run.used else NEEDS_GENERAL_PATH
            if outcome != DONE:
                return row, run.used, outcome
        return count, run.used, DONE

    def _append_row(self, run: "_Run", at: int, lane: TopicLane) -> int:
        """One request of a run: its record or records, and what its answer needs, into its row."""
        rows = run.rows
        values = rows[at : at + column.COLUMNS]
        queue_id, turn = values[column.QUEUE_ID], lane.turn
        body_length = values[column.BODY_LENGTH]
        if (
            queue_id >= len(lane.tails)
            or values[column.SYS_FLAG] & _ONE_RECORD
            or not 0 < body_length <= self._body_bytes_max
        ):
            return NEEDS_GENERAL_PATH
        parts = self._plain_parts(values, run.buffer, run.properties)
        if parts is None:
            is_batch = values[column.KIND] & column.KIND_BATCH
            return NEEDS_GENERAL_PATH if is_batch else self._append_asking(run, at, values, lane)
        if values[column.SYS_FLAG] & TRANSACTION_MASK:
            return NEEDS_GENERAL_PATH
        if run.records + len(parts) > column.RECORDS_MAX:  # as the first of a run it may have room
            return _SCRATCH_FULL
        size = self._size_of(lane.topic, parts, run.born_host)
        if run.used + size + BLANK_BYTES > run.room:
            return SEGMENT_FULL
        if run.used + size > len(run.scratch):
            return _SCRATCH_FULL
        if queue_id < 0:
            turn += 1
            queue_id = turn % lane.write_queues
        tail = lane.tails[queue_id]
        if tail is None:
            lane.missing = queue_id
            return NEEDS_QUEUE
        lane.turn = turn
        rows[at + column.QUEUE_ID] = queue_id
        rows[at + column.QUEUE_OFFSET] = tail.next_offset
        rows[at + column.RECORDS_AT] = run.records
        rows[at + column.RECORDS_COUNT] = len(parts)
        key_at, key_length = _unique_key(values, run.properties)
        rows[at + column.UNIQUE_KEY_AT] = key_at
        rows[at + column.UNIQUE_KEY_LENGTH] = key_length
        for part in parts:
            self._put(run, values, lane.topic, tail, part, tags_code_of(part[2]))
        return DONE

    def _append_asking(self, run: "_Run", at: int, values: "array[int]", lane: TopicLane) -> int:
        """One request whose message waits, if all of it is as usual; into the queue where it does."""
        at_, length = values[column.PROPERTIES_AT], values[column.PROPERTIES_LENGTH]
        asking = asking_of(bytes(run.properties[at_ : at_ + length]), values[column.SYS_FLAG])
        if asking is None or run.find is None:
            return NEEDS_GENERAL_PATH
        if values[column.QUEUE_ID] < 0 or values[column.RECONSUME_TIMES]:
            return NEEDS_GENERAL_PATH
        detour = lane.detours.get(asking.key) or run.found.get((lane, asking.key))
        if detour is None:
            if run.asked == ASKED_PER_RUN:
                return _SCRATCH_FULL
            run.asked += 1
            detour = run.find(lane, asking.key)
            if detour is None:
                return NEEDS_GENERAL_PATH
            run.found[lane, asking.key] = detour
        room = sum(map(len, (self._suffix, detour.key_name, asking.unique_key, detour.pairs))) + _QUEUE_ROOM
        named = detour.key_name + asking.unique_key + b"\x02" if detour.key_name else b""
        stored = b"%b%b%b%b%d\x02" % (
            asking.properties,
            self._suffix[: len(self._suffix) - len(self._checksum_room)],
            named,
            detour.pairs,
            values[column.QUEUE_ID],
        )
        size = values[column.BODY_LENGTH] + len(stored)
        if (
            room > SUFFIX_BYTES_MAX
            or len(stored) > detour.properties_bytes_max
            or size > detour.size_bytes_max
        ):
            return NEEDS_GENERAL_PATH
        stored += self._checksum_room
        handle = base64.urlsafe_b64encode(detour.handle + asking.unique_key) if detour.handle else b""
        if run.texts_used + len(handle) > len(run.properties):
            return _SCRATCH_FULL
        body_at = values[column.BODY_AT]
        body = bytes(run.buffer[body_at : body_at + values[column.BODY_LENGTH]])
        part = (values[column.FLAG], body, stored)
        topic = detour.tail.key[0].encode()
        size = self._size_of(topic, [part], run.born_host)
        if run.used + size + BLANK_BYTES > run.room:
            return SEGMENT_FULL
        if run.used + size > len(run.scratch):
            return _SCRATCH_FULL
        rows = run.rows
        rows[at + column.QUEUE_OFFSET] = detour.tail.next_offset
        rows[at + column.RECORDS_AT] = run.records
        rows[at + column.RECORDS_COUNT] = 1
        key_at, key_length = _unique_key(values, run.properties)
        rows[at + column.UNIQUE_KEY_AT] = key_at
        rows[at + column.UNIQUE_KEY_LENGTH] = key_length
        if handle:
            rows[at + column.RECALL_HANDLE_AT] = run.texts_used
            rows[at + column.RECALL_HANDLE_LENGTH] = len(handle)
            run.properties[run.texts_used : run.texts_used + len(handle)] = handle
            run.texts_used += len(handle)
        code = tags_code_of(stored) if detour.delay_ms < 0 else run.now_ms + detour.delay_ms
        self._put(run, values, topic, detour.tail, part, code)
        return DONE

    def _put(
        self, run: "_Run", values: "array[int]", topic: bytes, tail: QueueTail, part: _Part, code: int
    ) -> None:
        """A record into the scratch, and its entry."""
        place = run.log_offset + run.used
        record = self._encode(topic, values, tail, part, place, run.born_host, run.now_ms)
        run.scratch[run.used : run.used + len(record)] = record
        run.log_offsets[run.records] = place
        run.records += 1
        run.used += len(record)
        tail.append(place, len(record), code)
        if not tail.touched:
            tail.touched = True
            run.touched.append(tail)

    def _size_of(self, topic: bytes, parts: list[_Part], born_host: bytes) -> int:
        fixed = FIXED_BYTES - 2 * HOST_V4_BYTES + len(born_host) + len(self._store_host)
        fixed += len(topic) + (1 if len(topic) > TOPIC_V1_BYTES_MAX else 0)
        return sum(fixed + len(body) + len(text) for _, body, text in parts)

    def _encode(
        self,
        topic: bytes,
        values: "array[int]",
        tail: QueueTail,
        part: _Part,
        log_offset: int,
        born_host: bytes,
        now_ms: int,
    ) -> bytes:
        flag, body, text = part
        record = encode_record(
            topic=topic,
            body=body,
            properties=text,
            queue_id=tail.key[1],
            flag=flag,
            queue_offset=tail.next_offset,
            log_offset=log_offset,
            sys_flag=values[column.SYS_FLAG] & ~TRANSACTION_MASK,
            born_timestamp_ms=values[column.BORN_TIMESTAMP],
            born_host=born_host,
            store_timestamp_ms=now_ms,
            store_host=self._store_host,
            reconsume_times=values[column.RECONSUME_TIMES],
            prepared_offset=0,
        )
        if not self._checksum_room:
            return record
        sealed = bytearray(record)
        seal_record(sealed)
        return bytes(sealed)

    def _plain_parts(
        self, values: "array[int]", buffer: bytearray, properties: bytearray
    ) -> list[_Part] | None:
        """What each record holds, or None when the properties are not plain."""
        at, length = values[column.BODY_AT], values[column.BODY_LENGTH]
        body = bytes(buffer[at : at + length])
        at, length = values[column.PROPERTIES_AT], values[column.PROPERTIES_LENGTH]
        text = bytes(properties[at : at + length])
        items, suffix = [(values[column.FLAG], body, text)], self._suffix
        if values[column.KIND] & column.KIND_BATCH:
            try:
                # The original adds no pairs to the messages of a batch.
                items, suffix = split_batch(body), self._checksum_room
            except MessageIllegal:
                return None
            if _needs_general_path(text):
                return None
        parts: list[_Part] = []
        for flag, item, text in items:
            stored = _stored_properties(text, suffix)
            if stored is None:
                return None
            parts.append((flag, item, stored))
        return parts


class _Run:
    """What the requests of a run share, and how far it has come."""

    __slots__ = (
        *("asked", "born_host", "buffer", "find", "found", "log_offset", "log_offsets", "now_ms"),
        *("properties", "records", "room", "rows", "scratch", "texts_used", "touched", "used"),
    )

    def __init__(
        self,
        rows: "array[int]",
        log_offsets: "array[int]",
        buffer: bytearray,
        properties: bytearray,
        scratch: bytearray,
        room: int,
        log_offset: int,
        born_host: bytes,
        now_ms: int,
        touched: list[QueueTail],
    ) -> None:
        self.rows, self.log_offsets, self.buffer, self.properties = rows, log_offsets, buffer, properties
        self.scratch, self.room, self.log_offset = scratch, room, log_offset
        self.born_host, self.now_ms, self.touched = born_host, now_ms, touched
        self.records = self.used = self.asked = self.texts_used = 0
        self.find: Callable[[TopicLane, bytes], Detour | None] | None = None
        self.found: dict[tuple[TopicLane, bytes], Detour] = {}


def _stored_properties(text: bytes, suffix: bytes) -> bytes | None:
    """The client's text without WAIT=true, with ours behind it; None when a pair needs the general path."""
    if b"\0" in text:
        return None
    kept: list[bytes] = []
    waits = 0
    unique_key = b""
    for pair in text.removesuffix(b"\x02").split(b"\x02") if text else []:
        name, _, value = pair.partition(b"\x01")
        if leaves_fast_path(name):
            return None
        if name == _WAIT and value:
            waits += 1
            if value != b"true" or waits > 1:
                return None
            continue
        if name == _UNIQUE_KEY and value:
            unique_key = value
        kept.append(pair + b"\x02")
    if not unique_key or not all(0x20 <= c <= 0x7E and c not in b'"\\' for c in unique_key):
        return None
    stored = b"".join(kept) + suffix
    return stored if len(stored) <= LENGTH_MAX else None


def _needs_general_path(text: bytes) -> bool:
    return any(leaves_fast_path(pair.partition(b"\x01")[0]) for pair in text.split(b"\x02"))


def _unique_key(values: "array[int]", properties: bytearray) -> tuple[int, int]:
    """Where the request's own unique key is; a batch has none of its own."""
    at, length = values[column.PROPERTIES_AT], values[column.PROPERTIES_LENGTH]
    if values[column.KIND] & column.KIND_BATCH:
        return 0, 0
    found = (0, 0)
    cursor = at
    begin = _UNIQUE_KEY + b"\x01"
    for pair in bytes(properties[at : at + length]).split(b"\x02"):
        if pair.startswith(begin) and len(pair) > len(begin):
            found = (cursor + len(begin), len(pair) - len(begin))
        cursor += len(pair) + 1
    return found
