"""Rows of what is no sound message: whatever can be told of it, its bytes, and in `bodyError` what is wrong.

Such rows are few, so they are built with Python, beside the batches of sound messages.  A read whose columns have no
`bodyError` could not tell them from messages and does not get them; they are counted all the same.
"""

from typing import Any

import pyarrow as pa

from bolide.arrow.record_row import row_of
from bolide.model.errors import MalformedRecord
from bolide.model.pairs import parse_properties
from bolide.pipeline.errors import BadRecord
from bolide.record.layout import open_record

ROWS_MAX = 1024
SIZE_BYTES_MAX = 1024 * 1024

Row = dict[str, Any]


class Quarantine:
    """Damage that a task has met, until it is given away as a batch."""

    def __init__(self, schema: pa.Schema, broker_name: str, how: str) -> None:
        self._schema = schema
        self._broker_name = broker_name
        self._how = how
        self._rows: list[Row] = []
        self._size_bytes = 0
        self.count = 0
        """All that there was, rows or not."""

    def put(self, row: Row, why: str, where: str) -> None:
        """Take a row; the columns that it does not name are null."""
        self.count += 1
        if self._how == "fail":
            advice = "badBodies=deliver hands its bytes out, badBodies=skip leaves it out"
            raise BadRecord(f"{where}: {why}; {advice}")
        if self._how == "deliver" and "bodyError" in self._schema.names:
            self._rows.append({"brokerName": self._broker_name, "bodyError": why} | row)
            self._size_bytes += len(row.get("body") or b"")

    @property
    def full(self) -> bool:
        """Whether it is to be taken before more is put in."""
        return len(self._rows) >= ROWS_MAX or self._size_bytes >= SIZE_BYTES_MAX

    def take(self) -> pa.RecordBatch | None:
        if not self._rows:
            return None
        batch = pa.RecordBatch.from_pylist(self._rows, schema=self._schema)
        self._rows, self._size_bytes = [], 0
        return batch


def damaged_record(data: bytes, log_offset: int) -> Row | None:
    """The row of a record whose lengths agree though something else does not; None when there is none at all."""
    try:
        record = open_record(data, 0, len(data))
    except MalformedRecord:
        return None
    if record.end != len(data) or record.log_offset != log_offset:
        return None
    properties = parse_properties(data[record.properties_at : record.end].decode("utf-8", "replace"))
    return row_of(data, record, properties) | {"properties": list(properties.items())}
