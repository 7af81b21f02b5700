"""Arrow batches of messages: which columns there are, their types, and finished buffers put together.

Every column may be null; truly null are only `tags` of a message that has none, `bodyError` of one whose body is sound,
and a time that a timestamp cannot hold.
"""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from bolide.arrow.columns_twin import Buffers
from bolide.arrow.names import chosen_names
from bolide.model.errors import BolideError, InvalidRequest
from bolide.model.offsets import MessageQueue

RecordBatch = pa.RecordBatch

_MOMENT = pa.timestamp("us", tz="UTC")

COLUMNS: Mapping[str, pa.DataType] = {
    "topic": pa.string(),
    "brokerName": pa.string(),
    "queueId": pa.int32(),
    "queueOffset": pa.int64(),
    "body": pa.binary(),
    "bodyError": pa.string(),
    "tags": pa.string(),
    "keys": pa.list_(pa.field("element", pa.string())),
    "properties": pa.map_(pa.string(), pa.string()),
    "msgId": pa.string(),
    "offsetMsgId": pa.string(),
    "bornTimestamp": _MOMENT,
    "storeTimestamp": _MOMENT,
    "bornHost": pa.string(),
    "storeHost": pa.string(),
    "reconsumeTimes": pa.int32(),
    "flag": pa.int32(),
    "sysFlag": pa.int32(),
    "logOffset": pa.int64(),
}

_MADE_FROM = {
    "value": "body",
    "partition": "queueId",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp",
    "headers": "properties",
}
"""Columns of Spark's Kafka source that are ours under another name; a list of pairs is a map, to the byte."""

LOG_APPEND_TIME = 1
"""Kafka's number for times that are the broker's, in `timestampType`."""


def schema_of(names: Iterable[str] | None) -> pa.Schema:
    """These columns, or all."""
    chosen = list(COLUMNS) if names is None else chosen_names(names, COLUMNS, InvalidRequest)
    return pa.schema([(name, COLUMNS[name]) for name in chosen])


def built_columns(schema: pa.Schema) -> list[str]:
    """What a `ColumnBuilder` has to build for this schema."""
    return [_MADE_FROM.get(name, name) for name in schema.names if name != "timestampType"]


def make_batch(schema: pa.Schema, rows: int, columns: Mapping[str, Buffers]) -> pa.RecordBatch:
    """Put finished buffers together.  Nothing is copied and nothing is looked at."""
    arrays = [
        pa.repeat(pa.scalar(LOG_APPEND_TIME, field.type), rows)
        if field.name == "timestampType"
        else _array(field.type, rows, list(columns[_MADE_FROM.get(field.name, field.name)]))
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _row(schema: pa.Schema, known: Mapping[str, object]) -> pa.RecordBatch:
    """One row of which only these columns are known, by our names; the others are null."""
    row = {name: known.get(_MADE_FROM.get(name, name)) for name in schema.names}
    return pa.RecordBatch.from_pylist([row], schema=schema)


def unreadable_row(
    schema: pa.Schema, queue: MessageQueue, offset: int, data: bytes, error: BolideError
) -> pa.RecordBatch:
    """What stands for a message that cannot be read: where it is, its bytes, and why."""
    known = {
        "topic": queue.topic,
        "brokerName": queue.broker_name,
        "queueId": queue.queue_id,
        "queueOffset": offset,
        "body": data,
        "bodyError": unreadable(error),
    }
    return _row(schema, known)


def unreadable(error: BolideError) -> str:
    return f"the record cannot be read: {error}"


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    """One of several with the same columns; None of none."""
    if len(batches) < 2:
        return batches[0] if batches else None
    (one,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return one


def _array(kind: pa.DataType, rows: int, buffers: list[memoryview | None]) -> pa.Array:
    """The columnar format's layouts: own buffers first, then those of the children."""
    if pa.types.is_list(kind) and pa.types.is_struct(kind.value_type):
        pairs = _pairs(kind.value_type, _last_offset(buffers[1]), buffers[2:])
        return pa.Array.from_buffers(kind, rows, _own(buffers[:2]), children=[pairs])
    if pa.types.is_list(kind):
        items = _array(kind.value_type, _last_offset(buffers[1]), buffers[2:])
        return pa.Array.from_buffers(kind, rows, _own(buffers[:2]), children=[items])
    if pa.types.is_map(kind):
        pair = pa.struct([kind.key_field, kind.item_field])
        pairs = _pairs(pair, _last_offset(buffers[1]), buffers[2:])
        return pa.Array.from_buffers(kind, rows, _own(buffers[:2]), children=[pairs])
    return pa.Array.from_buffers(kind, rows, _own(buffers))


def _pairs(kind: pa.StructType, count: int, buffers: list[memoryview | None]) -> pa.Array:
    names = _array(kind.field(0).type, count, buffers[1:4])
    values = _array(kind.field(1).type, count, buffers[4:7])
    return pa.Array.from_buffers(kind, count, _own(buffers[:1]), children=[names, values])


def _own(buffers: list[memoryview | None]) -> list[pa.Buffer | None]:
    return [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]


def _last_offset(offsets: memoryview | None) -> int:
    assert offsets is not None
    return int(offsets.cast("i")[-1])
