"""Rows of what is no sound message: whatever can be told of it, its bytes, and in `bodyError` what is wrong.

Such rows are few, so they are built with Python, beside the batches of sound messages.  A read whose columns have no
`bodyError` could not tell them from messages and does not get them; they are counted all the same.
"""

from typing import Any

import pyarrow as pa

from bolide.model.errors import MalformedRecord
from bolide.model.message import Property, parse_properties
from bolide.model.offsets import LogOffset
from bolide.pipeline.columns_twin import TIME_MS_MAX
from bolide.pipeline.errors import BadRecord
from bolide.record.layout import open_record
from bolide.record.message_id import format_host, format_offset_id

Row = dict[str, Any]


class Quarantine:
    """Damage that a task has met, until it is given away as a batch."""

    def __init__(self, schema: pa.Schema, broker_name: str, how: str) -> None:
        self._schema = schema
        self._broker_name = broker_name
        self._how = how
        self._rows: list[Row] = []
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

    def take(self) -> pa.RecordBatch | None:
        if not self._rows:
            return None
        batch = pa.RecordBatch.from_pylist(self._rows, schema=self._schema)
        self._rows = []
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
    offset_id = format_offset_id(record.store_host, LogOffset(record.log_offset))
    return {
        "topic": data[record.topic_at : record.topic_end].decode("utf-8", "replace"),
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "body": data[record.body_at : record.body_end],
        "tags": properties.get(Property.TAGS),
        "keys": [key for key in properties.get(Property.KEYS, "").split(" ") if key],
        "properties": list(properties.items()),
        "msgId": properties.get(Property.UNIQUE_KEY, offset_id),
        "offsetMsgId": offset_id,
        "bornTimestamp": _microseconds(record.born_timestamp_ms),
        "storeTimestamp": _microseconds(record.store_timestamp_ms),
        "bornHost": format_host(record.born_host),
        "storeHost": format_host(record.store_host),
        "reconsumeTimes": record.reconsume_times,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "logOffset": record.log_offset,
    }


def _microseconds(time_ms: int) -> int | None:
    return time_ms * 1000 if -TIME_MS_MAX <= time_ms <= TIME_MS_MAX else None
