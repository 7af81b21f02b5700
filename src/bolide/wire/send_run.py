"""SendRun: consecutive send requests of one socket read, as a table instead of objects.

Ends of transactions that lie between them are in a table of their own.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from bolide.model import end_rows
from bolide.model.send_rows import (
    BODY_AT,
    BODY_LENGTH,
    BORN_TIMESTAMP,
    COLUMNS,
    FLAG,
    FRAME_AT,
    FRAME_LENGTH,
    KIND,
    KIND_BATCH,
    KIND_ONE_WAY,
    PROPERTIES_AT,
    PROPERTIES_LENGTH,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECALL_HANDLE_AT,
    RECALL_HANDLE_LENGTH,
    RECONSUME_TIMES,
    RECORDS_AT,
    RECORDS_COUNT,
    RECORDS_MAX,
    ROWS_MAX,
    SYS_FLAG,
    TOPIC,
    UNIQUE_KEY_AT,
    UNIQUE_KEY_LENGTH,
)


class SentRow(NamedTuple):
    """A row as an object: what of its request is stored.  Its names are those of a `SendRequest`."""

    topic_number: int
    queue_id: int
    sys_flag: int
    born_timestamp_ms: int
    flag: int
    properties: str
    reconsume_times: int
    batch: bool


class EndRow(NamedTuple):
    """The end of a transaction, which nobody waits for.  Its names are those of an `EndTransaction`."""

    commit_log_offset: int
    tran_state_table_offset: int
    commit_or_rollback: int
    producer_group: str
    transaction_id: str
    msg_id: str


class SendRun:
    """`count` rows of `model.send_rows` and `end_count` of `model.end_rows`; valid only until the next read, because
    the memory is used again."""

    __slots__ = (
        *("buffer", "count", "end_count", "ends", "log_offsets"),
        *("properties", "properties_used", "rows", "topics"),
    )

    def __init__(self, properties_bytes: int) -> None:
        self.rows = array("q", bytes(8 * COLUMNS * ROWS_MAX))
        self.log_offsets = array("q", bytes(8 * RECORDS_MAX))
        self.properties = bytearray(properties_bytes)
        self.properties_used = 0
        self.topics: list[bytes] = []
        self.count = 0
        self.ends = array("q", bytes(8 * end_rows.COLUMNS * end_rows.ENDS_MAX))
        self.end_count = 0
        self.buffer: bytearray = bytearray()

    def clear(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.properties_used = 0
        self.topics = []
        self.count = self.end_count = 0

    def column(self, row: int, column: int) -> int:
        return self.rows[row * COLUMNS + column]

    def body(self, row: int) -> bytes:
        at = self.column(row, BODY_AT)
        return bytes(memoryview(self.buffer)[at : at + self.column(row, BODY_LENGTH)])

    def sent(self, row: int) -> SentRow:
        """`UnicodeDecodeError` when its properties are no text."""
        at = row * COLUMNS
        values = self.rows[at : at + FRAME_AT]
        text_at = values[PROPERTIES_AT]
        return SentRow(
            values[TOPIC],
            values[QUEUE_ID],
            values[SYS_FLAG],
            values[BORN_TIMESTAMP],
            values[FLAG],
            self.properties[text_at : text_at + values[PROPERTIES_LENGTH]].decode(),
            values[RECONSUME_TIMES],
            values[KIND] & KIND_BATCH != 0,
        )

    def stored(
        self, row: int, number: int, log_offset: int, queue_offset: int, unique_key: str, recall_handle: str
    ) -> None:
        """The row has become one record, the `number`th of those that are answered together."""
        at = row * COLUMNS
        rows = self.rows
        self.log_offsets[number] = log_offset
        rows[at + QUEUE_OFFSET] = queue_offset
        rows[at + RECORDS_AT] = number
        rows[at + RECORDS_COUNT] = 1
        rows[at + UNIQUE_KEY_AT], rows[at + UNIQUE_KEY_LENGTH] = self._put(unique_key)
        rows[at + RECALL_HANDLE_AT], rows[at + RECALL_HANDLE_LENGTH] = self._put(recall_handle)

    def _put(self, text: str) -> tuple[int, int]:
        """Keep a text for the answer; where it is, and its length."""
        if not text:
            return 0, 0
        at = self.properties_used
        self.properties_used += len(text)
        self.properties[at : self.properties_used] = text.encode("ascii")
        return at, len(text)

    def end(self, number: int) -> EndRow:
        values = self.ends[number * end_rows.COLUMNS : (number + 1) * end_rows.COLUMNS]
        return EndRow(
            values[end_rows.HALF_AT],
            values[end_rows.HALF_NUMBER],
            values[end_rows.VERDICT],
            self._text(values[end_rows.GROUP_AT], values[end_rows.GROUP_LENGTH]),
            self._text(values[end_rows.TRANSACTION_ID_AT], values[end_rows.TRANSACTION_ID_LENGTH]),
            self._text(values[end_rows.MESSAGE_ID_AT], values[end_rows.MESSAGE_ID_LENGTH]),
        )

    def half_numbers(self, first: int, last: int) -> Sequence[int]:
        """Of the half messages that these ends are of."""
        columns = end_rows.COLUMNS
        return self.ends[first * columns + end_rows.HALF_NUMBER : last * columns : columns]

    def _text(self, at: int, length: int) -> str:
        return self.properties[at : at + length].decode()

    def ends_before(self, row: int) -> int:
        """How many ends came before this row; all of them behind the last row."""
        if row >= self.count:
            return self.end_count
        place = self.column(row, FRAME_AT)
        places = self.ends[end_rows.FRAME_AT : self.end_count * end_rows.COLUMNS : end_rows.COLUMNS]
        return bisect_left(places, place)

    def end_frame(self, number: int) -> memoryview:
        """The whole frame of an end that needs the general path."""
        at, length = self.ends[number * end_rows.COLUMNS : number * end_rows.COLUMNS + 2]
        return memoryview(self.buffer)[at : at + length]

    def frame(self, row: int) -> memoryview:
        """The request's whole frame, for a send that needs the general path; it may be large, and is not copied."""
        at = self.column(row, FRAME_AT)
        return memoryview(self.buffer)[at : at + self.column(row, FRAME_LENGTH)]

    def is_one_way(self, row: int) -> bool:
        return bool(self.column(row, KIND) & KIND_ONE_WAY)
