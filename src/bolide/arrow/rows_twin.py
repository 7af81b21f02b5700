"""Columns into the messages of batch requests: the readable twin of `_rows.pyx`.  It knows Arrow's buffers and no more:
neither Spark nor a socket.

Rows go to lanes, one growing batch for each place that the sender tells apart:

    lane 0                   any queue
    lanes 1 … queues         the queue at this place in the sorted list of all, by the hash of `sharding_key`
    lanes behind those       the queue with this number, by `queue_id`

Every message gets a unique key: `prefix`, 16 hexadecimal digits, and 16 of its own.  With a seed these come from what
the message says, and from the queue that was named for it, so that the same rows have the same keys whenever and in
whatever order they come; of rows that say the same the second has another key than the first.  Rows whose keys are
among the `stored` ones are passed over.  Without a seed keys are counted.
"""

import re
import struct
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from bolide.model.errors import BadRow, MessageIllegal
from bolide.model.java_hash import java_hash
from bolide.model.limits import SPARK_WRITE_ROWS_MAX
from bolide.model.message import BODY_BYTES_MAX, PROPERTIES_BYTES_MAX, Property
from bolide.model.pairs import NAME_END, PAIR_END
from bolide.model.properties import FAMILIES_OF_OTHERS, SCHEDULING, WRITTEN_BY_OTHERS
from bolide.record.layout import BATCH_ITEM, BATCH_ITEM_FIXED_BYTES

Buffer = memoryview


class Text(NamedTuple):
    """Strings or bytes.  `offset` is the place of the first row in all buffers."""

    validity: Buffer | None
    offsets: Buffer
    data: Buffer
    offset: int


class Texts(NamedTuple):
    """A list of strings in each row."""

    validity: Buffer | None
    offsets: Buffer
    offset: int
    items: Text


class Pairs(NamedTuple):
    """A map of strings in each row."""

    validity: Buffer | None
    offsets: Buffer
    offset: int
    names: Text
    values: Text


class Numbers(NamedTuple):
    """64 bits in each row."""

    validity: Buffer | None
    data: Buffer
    offset: int


Column = Text | Texts | Pairs | Numbers
Columns = Mapping[str, Column]

DROPPED = frozenset(name.encode() for name in {*WRITTEN_BY_OTHERS, *SCHEDULING})
"""Properties that a message gets anew, or that have a column of their own."""

DROPPED_FAMILIES = tuple(name.encode() for name in FAMILIES_OF_OTHERS)
"""All that begin so too: what a timer has written of a message would make it another one for the next timer."""

SHARDING_KEY = Property.SHARDING_KEY.encode()

_NAME_END, _PAIR_END = NAME_END.encode(), PAIR_END.encode()
_U16 = struct.Struct(">H")
_OWN_DIGITS = re.compile(rb"[0-9A-F]{16}")
_MASK = 0xFFFF_FFFF_FFFF_FFFF
_K1, _K2, _K3 = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93


class IdSet:
    """Numbers of 64 bits, 0 not among them."""

    def __init__(self) -> None:
        self._ids: set[int] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, number: int) -> bool:
        return number in self._ids

    def add(self, number: int) -> bool:
        """Whether it is new."""
        if number in self._ids:
            return False
        if len(self._ids) >= SPARK_WRITE_ROWS_MAX:
            raise too_many()
        self._ids.add(number)
        return True

    def add_keys(self, keys: Text, rows: int, prefix: str) -> int:
        """Those unique keys that begin with this prefix; how many there were.

        Anybody can give a message a key that begins so.  What does not end as ours do is none of ours.
        """
        begin, found = prefix.encode(), 0
        for row in range(rows):
            key = _text(keys, row)
            if key is None or not key.startswith(begin) or not _OWN_DIGITS.fullmatch(key, len(begin)):
                continue
            if number := int(key[len(begin) :], 16):
                self.add(number)
                found += 1
        return found


def too_many() -> MessageIllegal:
    return MessageIllegal(
        f"one task writes {SPARK_WRITE_ROWS_MAX} rows of a batch at most: use more partitions, or smaller batches"
    )


class _Lane:
    def __init__(self) -> None:
        self.data = bytearray()
        self.rows = 0


class RowEncoder:
    """`append` until all rows are in; whenever a lane is `full`, `take` it."""

    def __init__(
        self,
        prefix: str,
        *,
        seed: int | None = None,
        stored: IdSet | None = None,
        queues: int = 0,
        queue_ids: int = 0,
        rows_max: int = 1024,
        size_bytes_max: int = 128 * 1024,
    ) -> None:
        if len(prefix) != 16 or rows_max < 1:
            raise ValueError("a prefix has 16 digits, and a batch a message")
        self.full = -1
        self.skipped = 0
        self._stored = IdSet() if stored is None else stored
        self._seen: Counter[int] = Counter()
        self._prefix = prefix.encode()
        self._seed = seed
        self._count = 0
        self._queues = queues
        self._queue_ids = queue_ids
        self._rows_max = rows_max
        self._size_bytes_max = size_bytes_max
        self._lanes = [_Lane() for _ in range(1 + queues + queue_ids)]

    def append(self, columns: Columns, row: int, end: int) -> int:
        """Rows from `row` to before `end`; the next one to give, before `end` when a lane is full."""
        while row < end:
            if not self._append(columns, row):
                return row
            row += 1
        return row

    def take(self, lane: int) -> tuple[bytes, int]:
        """A lane's batch and how many messages it has."""
        taken, self._lanes[lane] = self._lanes[lane], _Lane()
        if lane == self.full:
            self.full = -1
        return bytes(taken.data), taken.rows

    def waiting(self) -> list[int]:
        """Lanes that have messages."""
        return [number for number, lane in enumerate(self._lanes) if lane.rows]

    def _append(self, columns: Columns, row: int) -> bool:
        body = _text(columns["body"], row)
        if body is None:
            raise BadRow(row, "body", "is null")
        if not 0 < len(body) <= BODY_BYTES_MAX:
            raise BadRow(row, "body", f"has {len(body)} bytes; a message has from 1 to {BODY_BYTES_MAX}")
        properties = _properties(columns, row)
        if len(properties) + len("UNIQ_KEY") + 34 > PROPERTIES_BYTES_MAX:
            raise BadRow(
                row, "properties", f"takes more than {PROPERTIES_BYTES_MAX} bytes with tags and keys"
            )
        lane_number = self._lane(columns, row)
        lane = self._lanes[lane_number]
        size = BATCH_ITEM_FIXED_BYTES + len(body) + len(properties) + len("UNIQ_KEY") + 34
        if lane.rows and (lane.rows >= self._rows_max or len(lane.data) + size > self._size_bytes_max):
            self.full = lane_number
            return False
        number = self._id(body, properties, _number(columns.get("queue_id"), row))
        if number in self._stored:
            self.skipped += 1
            return True
        properties += b"UNIQ_KEY\x01%b%016X\x02" % (self._prefix, number)
        lane.data += BATCH_ITEM.pack(size, 0, 0, 0, len(body))
        lane.data += body
        lane.data += _U16.pack(len(properties))
        lane.data += properties
        lane.rows += 1
        return True

    def _id(self, body: bytes, properties: bytes, queue_id: int | None) -> int:
        self._count += 1
        if self._seed is None:
            return self._count
        if self._count > SPARK_WRITE_ROWS_MAX:
            raise too_many()
        state = _mixed(_mixed(self._seed, body), properties)
        if queue_id is not None:
            state = _fold(state ^ (queue_id + 1), _K2)
        number = _finish(state)
        before = self._seen[number]
        self._seen[number] += 1
        return _finish(number ^ before * _K2 & _MASK) if before else number

    def _lane(self, columns: Columns, row: int) -> int:
        queue_id = _number(columns.get("queue_id"), row)
        if queue_id is not None:
            if not 0 <= queue_id < self._queue_ids:
                raise BadRow(
                    row, "queue_id", f"is {queue_id}; the topic has the queues 0 to {self._queue_ids - 1}"
                )
            return 1 + self._queues + queue_id
        key = _text(columns.get("sharding_key"), row)
        if key is None or self._queues == 0:
            return 0
        return 1 + abs(java_hash(key.decode())) % self._queues  # RocketMQ: SelectMessageQueueByHash


def _properties(columns: Columns, row: int) -> bytes:
    """All but the unique key."""
    found = bytearray()
    keys = _keys(columns.get("keys"), row)
    if keys:
        found += b"KEYS\x01" + _checked(row, "keys", keys) + _PAIR_END
    tag = _text(columns.get("tags"), row)
    if tag:
        if tag == b"*" or b"||" in tag or any(byte <= 0x20 for byte in tag):
            raise BadRow(
                row,
                "tags",
                "is one word: no consumer could ask for a tag that is *, or has a blank or || in it",
            )
        found += b"TAGS\x01" + tag + _PAIR_END
    key = _text(columns.get("sharding_key"), row)
    if key:
        found += SHARDING_KEY + _NAME_END + _checked(row, "sharding_key", key) + _PAIR_END
    pairs = columns.get("properties")
    if pairs is not None:
        assert isinstance(pairs, Pairs)
        for at in _span(pairs, row):
            name, value = _text(pairs.names, at), _text(pairs.values, at)
            if not name or not value or _is_dropped(name) or (name == SHARDING_KEY and key):
                continue
            found += (
                _checked(row, "properties", name) + _NAME_END + _checked(row, "properties", value) + _PAIR_END
            )
    level = _number(columns.get("delay_level"), row)
    if level is not None:
        found += b"DELAY\x01%d\x02" % level
    moment_ms = _number(columns.get("deliver_at"), row)
    if moment_ms is not None:
        found += b"TIMER_DELIVER_MS\x01%d\x02" % moment_ms
    return bytes(found)


def _is_dropped(name: bytes) -> bool:
    return name in DROPPED or name.startswith(DROPPED_FAMILIES)


def _keys(column: Column | None, row: int) -> bytes | None:
    """One text, or several, which must be words."""
    if not isinstance(column, Texts):
        return _text(column, row)
    words = []
    for at in _span(column, row):
        word = _text(column.items, at)
        if word:
            if any(byte <= 0x20 for byte in word):
                raise BadRow(row, "keys", "has a blank in a key: each is one word")
            words.append(word)
    return b" ".join(words)


def _checked(row: int, column: str, text: bytes) -> bytes:
    if _NAME_END in text or _PAIR_END in text:
        raise BadRow(row, column, "contains a separator character (U+0001, U+0002)")
    return text


# ---- buffers ---------------------------------------------------------------------------------------------------


def _is_null(validity: Buffer | None, at: int) -> bool:
    return validity is not None and not validity[at >> 3] >> (at & 7) & 1


def _text(column: Column | None, row: int) -> bytes | None:
    if column is None:
        return None
    assert isinstance(column, Text)
    at = row + column.offset
    if _is_null(column.validity, at):
        return None
    begin, end = struct.unpack_from("<ii", column.offsets, at * 4)
    return bytes(column.data[begin:end])


def _number(column: Column | None, row: int) -> int | None:
    if column is None:
        return None
    assert isinstance(column, Numbers)
    at = row + column.offset
    return None if _is_null(column.validity, at) else int(struct.unpack_from("<q", column.data, at * 8)[0])


def _span(column: Texts | Pairs, row: int) -> range:
    at = row + column.offset
    return (
        range(0)
        if _is_null(column.validity, at)
        else range(*struct.unpack_from("<ii", column.offsets, at * 4))
    )


# ---- numbers of messages ---------------------------------------------------------------------------------------


def _fold(one: int, other: int) -> int:
    """Both halves of the product: every bit of it depends on what is multiplied, so no difference can be undone."""
    product = one * other
    return (product ^ product >> 64) & _MASK


def _mixed(state: int, data: bytes) -> int:
    for at in range(0, len(data), 8):
        state = _fold(state ^ int.from_bytes(data[at : at + 8], "little"), _K1)
    return _fold(state ^ len(data), _K2)


def _finish(state: int) -> int:
    state = state * _K3 & _MASK
    return state ^ (state >> 32) or 1
