"""The readable twin of `_append.pyx`.

`Appender.append_run` is the hot path of a broker: rows of a `SendRun` (see `model.send_rows`) become records in the
mapped segment and entries in their queues, in one step and in order.  A row that needs a decision ends the run
early: the caller handles it by the general path and comes back for the rest.
"""

import struct
from array import array
from collections.abc import Sequence

from bolide.model import send_rows as column
from bolide.model.errors import MessageIllegal
from bolide.record.codec_twin import encode_record, split_batch, tags_code_of
from bolide.record.layout import BLANK_BYTES

DONE = 0
SEGMENT_FULL = 1
NEEDS_GENERAL_PATH = 2

ENTRY_BYTES = 20
_ENTRY = struct.Struct(">qiq")
_PROPERTIES_BYTES_MAX = 32767
_TRANSACTION_MASK = 0xC
_INNER_BATCH_MASK = 0xC0

_SPECIAL = (b"DELAY", b"TRAN_MSG", b"TRACE_ON", b"MSG_REGION", b"CLUSTER", b"POP_CK", b"__CRC32#")
_SPECIAL_PREFIXES = (b"TIMER_", b"INNER_")


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
        self._data += _ENTRY.pack(log_offset, size, tags_code)
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
    """A topic whose plain messages may take the fast path: its name and the tails of its queues."""

    __slots__ = ("_turn", "tails", "topic", "write_queues")

    def __init__(self, topic: bytes, tails: Sequence[QueueTail], write_queues: int) -> None:
        self.topic = topic
        self.tails = list(tails)
        self.write_queues = write_queues
        self._turn = 0

    def choose(self) -> int:
        """A write queue for a message that left the choice to the broker, in turn."""
        self._turn += 1
        return self._turn % self.write_queues


class Appender:
    """What is the same for every record of this broker."""

    def __init__(self, store_host: bytes, suffix: bytes, body_bytes_max: int) -> None:
        self._store_host = store_host
        self._suffix = suffix
        self._body_bytes_max = body_bytes_max

    def append_run(
        self,
        rows: "array[int]",
        log_offsets: "array[int]",
        buffer: bytearray,
        properties: bytearray,
        lanes: Sequence[TopicLane | None],
        first: int,
        count: int,
        segment: memoryview,
        position: int,
        base: int,
        born_host: bytes,
        now_ms: int,
        touched: list[QueueTail],
    ) -> tuple[int, int, int]:
        """Append rows `first` to `count - 1` at `position` of the segment that begins at log offset `base`.

        Returns the first row not appended, the new position, and why it stopped.  Tails that got entries are
        marked and added to `touched`.
        """
        records = 0
        for row in range(first, count):
            at = row * column.COLUMNS
            values = rows[at : at + column.COLUMNS]
            lane = lanes[values[column.TOPIC]]
            parts = self._plain_parts(values, buffer, properties, lane, records)
            if lane is None or parts is None:
                return row, position, NEEDS_GENERAL_PATH
            size = sum(map(len, self._encode(values, lane, lane.tails[0], parts, 0, born_host, now_ms)))
            if position + size + BLANK_BYTES > len(segment):
                return row, position, SEGMENT_FULL
            if values[column.QUEUE_ID] < 0:
                values[column.QUEUE_ID] = lane.choose()
            tail = lane.tails[values[column.QUEUE_ID]]
            encoded = self._encode(values, lane, tail, parts, base + position, born_host, now_ms)
            values[column.QUEUE_OFFSET] = tail.next_offset
            values[column.RECORDS_AT] = records
            values[column.RECORDS_COUNT] = len(encoded)
            values[column.UNIQUE_KEY_AT], values[column.UNIQUE_KEY_LENGTH] = _unique_key(values, properties)
            rows[at : at + column.COLUMNS] = values
            for (_, _, text), record in zip(parts, encoded, strict=True):
                segment[position : position + len(record)] = record
                log_offsets[records] = base + position
                records += 1
                tail.append(base + position, len(record), tags_code_of(text))
                position += len(record)
            if not tail.touched:
                tail.touched = True
                touched.append(tail)
        return count, position, DONE

    def _encode(
        self,
        values: "array[int]",
        lane: TopicLane,
        tail: QueueTail,
        parts: list[tuple[int, bytes, bytes]],
        log_offset: int,
        born_host: bytes,
        now_ms: int,
    ) -> list[bytes]:
        """The records of one request, the first of them at `log_offset`."""
        encoded: list[bytes] = []
        for number, (flag, body, text) in enumerate(parts):
            record = encode_record(
                topic=lane.topic,
                body=body,
                properties=text,
                queue_id=values[column.QUEUE_ID],
                flag=flag,
                queue_offset=tail.next_offset + number,
                log_offset=log_offset,
                sys_flag=values[column.SYS_FLAG],
                born_timestamp_ms=values[column.BORN_TIMESTAMP],
                born_host=born_host,
                store_timestamp_ms=now_ms,
                store_host=self._store_host,
                reconsume_times=values[column.RECONSUME_TIMES],
                prepared_offset=0,
            )
            encoded.append(record)
            log_offset += len(record)
        return encoded

    def _plain_parts(
        self,
        values: "array[int]",
        buffer: bytearray,
        properties: bytearray,
        lane: TopicLane | None,
        records: int,
    ) -> list[tuple[int, bytes, bytes]] | None:
        """(flag, body, stored properties) of each record, or None when the row is not plain."""
        if lane is None or values[column.QUEUE_ID] >= len(lane.tails):
            return None
        if values[column.SYS_FLAG] & (_TRANSACTION_MASK | _INNER_BATCH_MASK):
            return None
        at, length = values[column.BODY_AT], values[column.BODY_LENGTH]
        if not 0 < length <= self._body_bytes_max:
            return None
        body = bytes(buffer[at : at + length])
        if values[column.KIND] & column.KIND_BATCH:
            try:
                items = split_batch(body)
            except MessageIllegal:
                return None
            if records + len(items) > column.RECORDS_MAX:
                return None
        else:
            at, length = values[column.PROPERTIES_AT], values[column.PROPERTIES_LENGTH]
            items = [(values[column.FLAG], body, bytes(properties[at : at + length]))]
        # The original adds nothing to the messages of a batch.
        suffix = b"" if values[column.KIND] & column.KIND_BATCH else self._suffix
        parts: list[tuple[int, bytes, bytes]] = []
        for flag, item, text in items:
            stored = _stored_properties(text, suffix)
            if stored is None:
                return None
            parts.append((flag, item, stored))
        return parts


def _stored_properties(text: bytes, suffix: bytes) -> bytes | None:
    """The client's text without WAIT=true, with ours behind it; None when a pair needs the general path."""
    kept: list[bytes] = []
    waits = 0
    unique_key = b""
    for pair in text.removesuffix(b"\x02").split(b"\x02") if text else []:
        name, _, value = pair.partition(b"\x01")
        if name in _SPECIAL or (name.startswith(_SPECIAL_PREFIXES) and len(name) > 6):
            return None
        if name == b"WAIT" and value:
            waits += 1
            if value != b"true" or waits > 1:
                return None
            continue
        if name == b"UNIQ_KEY" and value:
            unique_key = value
        kept.append(pair + b"\x02")
    if not unique_key or not all(0x20 <= c <= 0x7E and c not in b'"\\' for c in unique_key):
        return None
    stored = b"".join(kept) + suffix
    return stored if len(stored) <= _PROPERTIES_BYTES_MAX else None


def _unique_key(values: "array[int]", properties: bytearray) -> tuple[int, int]:
    """Where the request's own unique key is; a batch has none of its own."""
    at, length = values[column.PROPERTIES_AT], values[column.PROPERTIES_LENGTH]
    if values[column.KIND] & column.KIND_BATCH:
        return 0, 0
    found = (0, 0)
    cursor = at
    for pair in bytes(properties[at : at + length]).split(b"\x02"):
        if pair.startswith(b"UNIQ_KEY\x01") and len(pair) > 9:
            found = (cursor + 9, len(pair) - 9)
        cursor += len(pair) + 1
    return found


def select_entries(
    entries: bytes,
    codes: frozenset[int] | None,
    count_max: int,
    size_bytes_max: int,
    log_offset_end: int,
) -> tuple[int, int, "array[int]"]:
    """Choose messages for a pull: entries scanned, bytes chosen, and (log offset, size) pairs.

    Stops before `log_offset_end`, at `count_max` messages, or before their size passes `size_bytes_max`; the
    first message is always taken.  `codes` are hashes of the wanted tags, None for all.  An entry of size
    2147483647 at offset 0 fills a gap and is skipped.
    """
    chosen = array("q")
    total = 0
    scanned = 0
    for log_offset, size, tags_code in _ENTRY.iter_unpack(entries):
        if log_offset + size > log_offset_end and size != 0x7FFFFFFF:
            break
        if len(chosen) >= 2 * count_max:
            break
        if size != 0x7FFFFFFF and (codes is None or tags_code in codes):
            if chosen and total + size > size_bytes_max:
                break
            chosen.append(log_offset)
            chosen.append(size)
            total += size
        scanned += 1
    return scanned, total, chosen


def gather(segment: memoryview, base: int, chosen: "array[int]", total: int) -> bytes:
    """The chosen records, all of one segment, back to back."""
    return b"".join(
        bytes(segment[chosen[at] - base : chosen[at] - base + chosen[at + 1]])
        for at in range(0, len(chosen), 2)
    )
