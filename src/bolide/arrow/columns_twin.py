"""From stored records to the buffers of Arrow columns; the readable twin of `_columns.pyx`.

A `ColumnBuilder` takes blocks of records as a pull returns them (`record/layout.py` has the fields) and appends every
message to one growing column each: numbers as they lie in memory, texts as offsets and data, a bitmap where a value
can be missing.  The compiled twin builds no Python object per message; only packed bodies and texts that are not
UTF-8 go through Python.

What it answers for: bytes that are not whole records raise `MalformedRecord` with the place, and nothing is read
outside of the block; what was appended before is kept.  What is merely odd is kept too: text that is not UTF-8 is read
as Java reads it, with U+FFFD in place of each bad piece; a time that microseconds cannot hold is null.  A body that is
marked as packed and does not unpack comes as it is stored, with the reason in `bodyError`, unless `bad_bodies` says
otherwise.  Of a reader of one queue (`queue`) no record is taken that is of another, or that comes out of turn.
"""

import struct
from array import array
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Protocol

from bolide.arrow.record_row import keys_of, row_of
from bolide.model.errors import BadBody, MalformedRecord, ProtocolError
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.model.pairs import parse_properties
from bolide.record.codec_twin import RecordHead, inspect_record
from bolide.record.compress import unpack_body, unpacked_at_most
from bolide.record.layout import (
    BLANK_BYTES,
    CHECK_SUMS,
    FIXED_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    OpenRecord,
    open_record,
)

ROWS_MAX = 1 << 20
SIZE_BYTES_MAX = 1 << 29
BROKER_NAME_BYTES_MAX = 1024
"""Together they keep every text column of a batch below 2 GiB, as far as Arrow's 32-bit offsets reach."""

BAD_BODIES = ("deliver", "skip", "fail")
"""What becomes of a message whose body does not unpack.  Brokers do not look into bodies, so anybody can send one."""

TIME_MS_END = 2**63 - 1

OF_PROPERTIES = frozenset({"tags", "key", "keys", "properties", "msgId"})
"""Columns for which the properties of a message have to be read."""

DONE = 0
"""The data has been read, or the batch is full."""
CUT_OFF = 1
"""A record is longer than the data, as far as can be seen."""
BLANK = 2
"""The segment's records end here."""
UNSOUND = 3
"""No record is here, or a damaged one."""

_SIZE_AND_MAGIC = struct.Struct(">II")

Buffers = tuple[memoryview | None, ...]
"""In the order of Arrow's columnar format, children after their parents; None is a bitmap without a null."""


class LogFilter:
    """Which records of a log are wanted: those stored from `since_ms` to before `until_ms`, of the queues that are.

    `opens_at` is asked once for each queue that is met, by the bytes of its topic and its number: from which place of
    the log on are its records wanted?  Halves of transactions are of no queue.
    """

    def __init__(
        self, opens_at: Callable[[bytes, int], int], *, since_ms: int = 0, until_ms: int = TIME_MS_END
    ) -> None:
        self._opens_at = opens_at
        self.since_ms = since_ms
        self.until_ms = until_ms
        self._places: dict[tuple[bytes, int], int] = {}

    def takes(self, topic: bytes, record: OpenRecord) -> bool:
        if record.sys_flag & TRANSACTION_MASK in (SysFlag.PREPARED, SysFlag.ROLLBACK):
            return False
        if not self.since_ms <= record.store_timestamp_ms < self.until_ms:
            return False
        key = topic, record.queue_id
        if key not in self._places:
            self._places[key] = self._opens_at(*key)
        return record.log_offset >= self._places[key]


class ColumnBuilder:
    """Columns of one batch.  `tags` and `keys` keep only messages that have one of them; none given keeps all."""

    def __init__(
        self,
        broker_name: str,
        columns: Collection[str],
        *,
        queue: tuple[str, int] | None = None,
        tags: Collection[str] = (),
        keys: Collection[str] = (),
        bad_bodies: str = BAD_BODIES[0],
        rows_max: int = 65_536,
        size_bytes_max: int = 8 * 1024 * 1024,
    ) -> None:
        if not 0 < rows_max <= ROWS_MAX or not 0 < size_bytes_max <= SIZE_BYTES_MAX:
            raise ValueError(f"a batch of {rows_max} rows and {size_bytes_max} bytes is out of range")
        unknown = [name for name in columns if name not in _COLUMN_TYPES]
        if unknown:
            raise ValueError(f"no such column: {', '.join(unknown)}")
        if bad_bodies not in BAD_BODIES:
            raise ValueError(f"bad bodies are {', '.join(BAD_BODIES)}, not {bad_bodies!r}")
        self._names = tuple(columns)
        self._turn_to(broker_name, queue, tags)
        self.found = 0
        """Records that were in the range asked for, rows or not, in all batches so far."""
        self._keys = frozenset(keys)
        self._rows_max = rows_max
        self._size_bytes_max = size_bytes_max
        self._bad_bodies = bad_bodies
        self._looks_into_bodies = bad_bodies != "deliver" or not {"body", "bodyError"}.isdisjoint(columns)
        self.skipped = 0
        """Messages left out because of their bodies, in all batches so far."""
        self.in_vain_bytes = 0
        """What bodies were unpacked to, at most, and is in no batch: they were bad, or only looked at."""
        self._start()

    def turn_to(self, broker_name: str, queue: tuple[str, int], tags: Collection[str] = ()) -> None:
        """The next records are those of this queue, from any place in it on; they are appended to the same batch."""
        self._turn_to(broker_name, queue, tags)

    def _turn_to(self, broker_name: str, queue: tuple[str, int] | None, tags: Collection[str]) -> None:
        if len(broker_name.encode()) > BROKER_NAME_BYTES_MAX:
            raise ValueError("the broker name is too long")
        self._broker_name = broker_name
        self._queue = None if queue is None else (queue[0].encode(), queue[1])
        self._tags = frozenset(tags)
        self.offset_due = 0
        """Of a queue: the offset behind its last record so far."""

    def _start(self) -> None:
        self.rows = 0
        self.size_bytes = 0
        self._columns = {name: _COLUMN_TYPES[name]() for name in self._names}

    @property
    def full(self) -> bool:
        """Whether the batch is to be taken before more is appended."""
        return self.rows >= self._rows_max or self.size_bytes >= self._size_bytes_max

    def append(self, data: bytes, at: int, offset_begin: int, offset_end: int) -> int:
        """Append the records from position `at` whose queue offset is in the range.

        Returns the position to go on at: the end of the data, or before it when the batch is full, or when as much
        was unpacked in vain as a batch may have: whoever has others to serve does so before going on.
        """
        if at < 0:
            raise ValueError("a position is not negative")
        end, enough = len(data), self.in_vain_bytes + self._size_bytes_max
        while at < end and not self.full and self.in_vain_bytes < enough:
            record = open_record(data, at, end)
            if offset_begin <= record.queue_offset < offset_end:
                if self._queue is not None:
                    self._check_place(data[record.topic_at : record.topic_end], record)
                self.found += 1
                self._append_record(data, record)
            at = record.end
        return at

    def append_log(self, data: bytes, at: int, end: int, base: int, wanted: LogFilter) -> tuple[int, int]:
        """Append the wanted records between two positions of data that stands in a log at its place `base`.

        Returns the position to go on at, and why that is: DONE, CUT_OFF, BLANK or UNSOUND.  Checksums are looked at
        where a record is wanted.
        """
        if not 0 <= at <= end <= len(data):
            raise ValueError(f"there is no part from {at} to {end} in {len(data)} bytes")
        while at < end and not self.full:
            if end - at < BLANK_BYTES:
                return at, CUT_OFF
            size, magic = _SIZE_AND_MAGIC.unpack_from(data, at)
            if magic == MAGIC_BLANK:
                return at, BLANK
            try:
                record = open_record(data, at, end)
            except MalformedRecord:
                is_cut = magic in (MAGIC_V1, MAGIC_V2) and (size > end - at or end - at < FIXED_BYTES)
                return at, CUT_OFF if is_cut else UNSOUND
            if record.log_offset != base + at:
                return at, UNSOUND
            if wanted.takes(data[record.topic_at : record.topic_end], record):
                if not isinstance(inspect_record(data, at, record.end, CHECK_SUMS), RecordHead):
                    return at, UNSOUND
                self._append_record(data, record)
            at = record.end
        return at, DONE

    def take(self) -> dict[str, Buffers]:
        """The finished columns by name; the builder starts again, empty."""
        taken = {name: column.buffers() for name, column in self._columns.items()}
        self._start()
        return taken

    def _check_place(self, topic: bytes, record: OpenRecord) -> None:
        assert self._queue is not None
        if (topic, record.queue_id) != self._queue or record.queue_offset < self.offset_due:
            raise stranger(self._queue, (topic, record.queue_id), record.queue_offset, self.offset_due)
        self.offset_due = record.queue_offset + 1

    def _append_record(self, data: bytes, record: OpenRecord) -> None:
        properties = parse_properties(data[record.properties_at : record.end].decode("utf-8", "replace"))
        if self._tags and properties.get(Property.TAGS) not in self._tags:
            return
        if self._keys and self._keys.isdisjoint(keys_of(properties)):
            return
        body = stored = data[record.body_at : record.body_end]
        body_error = None
        if record.sys_flag & SysFlag.COMPRESSED and self._looks_into_bodies:
            try:
                body = unpack_body(body, record.sys_flag)
                self.in_vain_bytes += 0 if "body" in self._columns else len(body)
            except MalformedRecord as error:
                body_error = str(error)
                self.in_vain_bytes += unpacked_at_most(body, record.sys_flag)
        if body_error is not None and self._bad_bodies == "fail":
            raise BadBody(f"the message at offset {record.queue_offset}: {body_error}")
        if body_error is not None and self._bad_bodies == "skip":
            self.skipped += 1
            return
        row = row_of(data, record, properties)
        row |= {"brokerName": self._broker_name, "body": body, "bodyError": body_error}
        for name, column in self._columns.items():
            column.append(row[name])
        self.rows += 1
        self.size_bytes += record.size + (len(body) - len(stored) if "body" in self._columns else 0)


def stranger(asked: tuple[bytes, int], given: tuple[bytes, int], offset: int, due: int) -> ProtocolError:
    """A record that nobody asked for."""
    names = [f"{topic.decode('utf-8', 'replace')!r}, queue {queue_id}" for topic, queue_id in (asked, given)]
    return ProtocolError(
        f"a broker that was asked for messages of {names[0]}, from offset {due} on, gives one of {names[1]}, offset"
        f" {offset}"
    )


# ---- columns, each with the buffers of one Arrow layout --------------------------------------------------------


class _Column(Protocol):
    def append(self, value: Any, /) -> None: ...

    def buffers(self) -> Buffers: ...


def _bytes_of(numbers: "array[int]") -> memoryview:
    return memoryview(numbers.tobytes())


class _Validity:
    """A bitmap, least significant bit first; not there at all while nothing is missing."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._rows = 0
        self._nulls = 0

    def append(self, valid: bool) -> None:
        if self._rows % 8 == 0:
            self._bits.append(0)
        self._bits[-1] |= valid << (self._rows % 8)
        self._rows += 1
        self._nulls += not valid

    def buffer(self) -> memoryview | None:
        return memoryview(self._bits) if self._nulls else None


class _Numbers:
    def __init__(self, kind: str) -> None:
        self._values = array(kind)
        self._validity = _Validity()

    def append(self, value: int | None) -> None:
        self._values.append(value or 0)
        self._validity.append(value is not None)

    def buffers(self) -> Buffers:
        return self._validity.buffer(), _bytes_of(self._values)


class _Texts:
    """Texts or bytes: where each ends, and all of them in a row."""

    def __init__(self) -> None:
        self._offsets = array("i", [0])
        self._data = bytearray()
        self._validity = _Validity()

    def append(self, value: str | bytes | None) -> None:
        self._data += value.encode() if isinstance(value, str) else value or b""
        self._offsets.append(len(self._data))
        self._validity.append(value is not None)

    def buffers(self) -> Buffers:
        return self._validity.buffer(), _bytes_of(self._offsets), memoryview(self._data)


class _TextLists:
    def __init__(self) -> None:
        self._offsets = array("i", [0])
        self._items = _Texts()

    def append(self, items: Iterable[str]) -> None:
        count = 0
        for item in items:
            self._items.append(item)
            count += 1
        self._offsets.append(self._offsets[-1] + count)

    def buffers(self) -> Buffers:
        return None, _bytes_of(self._offsets), *self._items.buffers()


class _TextMaps:
    """A map is a list of pairs; the pair has a bitmap of its own, and so have names and values."""

    def __init__(self) -> None:
        self._offsets = array("i", [0])
        self._names = _Texts()
        self._values = _Texts()

    def append(self, pairs: dict[str, str]) -> None:
        for name, value in pairs.items():
            self._names.append(name)
            self._values.append(value)
        self._offsets.append(self._offsets[-1] + len(pairs))

    def buffers(self) -> Buffers:
        offsets = _bytes_of(self._offsets)
        return None, offsets, None, *self._names.buffers(), *self._values.buffers()


_NUMBERS_32 = partial(_Numbers, "i")
_NUMBERS_64 = partial(_Numbers, "q")

_COLUMN_TYPES: dict[str, Callable[[], _Column]] = {
    "topic": _Texts,
    "brokerName": _Texts,
    "queueId": _NUMBERS_32,
    "queueOffset": _NUMBERS_64,
    "body": _Texts,
    "bodyError": _Texts,
    "tags": _Texts,
    "key": _Texts,
    "keys": _TextLists,
    "properties": _TextMaps,
    "msgId": _Texts,
    "offsetMsgId": _Texts,
    "bornTimestamp": _NUMBERS_64,
    "storeTimestamp": _NUMBERS_64,
    "bornHost": _Texts,
    "storeHost": _Texts,
    "reconsumeTimes": _NUMBERS_32,
    "flag": _NUMBERS_32,
    "sysFlag": _NUMBERS_32,
    "logOffset": _NUMBERS_64,
}
