"""SendRun: consecutive send requests of one socket read, as a table instead of objects."""

from array import array

from bolide.model.send_rows import (
    BODY_AT,
    BODY_LENGTH,
    COLUMNS,
    FRAME_AT,
    FRAME_LENGTH,
    KIND,
    KIND_ONE_WAY,
    RECORDS_MAX,
    ROWS_MAX,
)


class SendRun:
    """`count` rows of `model.send_rows`; valid only until the next read, because the memory is used again."""

    __slots__ = ("buffer", "count", "log_offsets", "properties", "properties_used", "rows", "topics")

    def __init__(self, properties_bytes: int) -> None:
        self.rows = array("q", bytes(8 * COLUMNS * ROWS_MAX))
        self.log_offsets = array("q", bytes(8 * RECORDS_MAX))
        self.properties = bytearray(properties_bytes)
        self.properties_used = 0
        self.topics: list[bytes] = []
        self.count = 0
        self.buffer: bytearray = bytearray()

    def clear(self, buffer: bytearray) -> None:
        self.buffer = buffer
        self.properties_used = 0
        self.topics = []
        self.count = 0

    def column(self, row: int, column: int) -> int:
        return self.rows[row * COLUMNS + column]

    def body(self, row: int) -> bytes:
        at = self.column(row, BODY_AT)
        return bytes(memoryview(self.buffer)[at : at + self.column(row, BODY_LENGTH)])

    def frame(self, row: int) -> memoryview:
        """The request's whole frame, for a send that needs the general path; it may be large, and is not copied."""
        at = self.column(row, FRAME_AT)
        return memoryview(self.buffer)[at : at + self.column(row, FRAME_LENGTH)]

    def is_one_way(self, row: int) -> bool:
        return bool(self.column(row, KIND) & KIND_ONE_WAY)
