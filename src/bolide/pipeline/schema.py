"""The columns of a topic: their names, their Spark types, and the Arrow batches made of them.

RocketMQ-Spark's names are kept where it has the column.  Every column may be null for Spark, as with its other
sources; truly null are only `tags` of a message that has none, `bodyError` of one whose body is sound, and a time that
a timestamp cannot hold.
"""

import difflib
from collections.abc import Collection, Mapping
from inspect import signature

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from bolide.model.errors import ConfigError
from bolide.pipeline.columns_twin import Buffers
from bolide.pipeline.option_table import SHOWN_MAX, quoted
from bolide.pipeline.options import NATIVE, ReadOptions

COLUMNS: Mapping[str, DataType] = {
    "topic": StringType(),
    "brokerName": StringType(),
    "queueId": IntegerType(),
    "queueOffset": LongType(),
    "body": BinaryType(),
    "bodyError": StringType(),
    "tags": StringType(),
    "keys": ArrayType(StringType()),
    "properties": MapType(StringType(), StringType()),
    "msgId": StringType(),
    "offsetMsgId": StringType(),
    "bornTimestamp": TimestampType(),
    "storeTimestamp": TimestampType(),
    "bornHost": StringType(),
    "storeHost": StringType(),
    "reconsumeTimes": IntegerType(),
    "flag": IntegerType(),
    "sysFlag": IntegerType(),
    "logOffset": LongType(),
}

KAFKA_COLUMNS: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
}
"""Those of Spark's Kafka source, for jobs that move over: `schema=kafka`."""

KAFKA_HEADERS: Mapping[str, DataType] = {
    "headers": ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
}


_MADE_FROM = {
    "value": "body",
    "partition": "queueId",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp",
    "headers": "properties",
}
"""Kafka's columns that are ours under another name; a list of pairs is a map, to the byte."""

LOG_APPEND_TIME = 1
"""Kafka's number for times that are the broker's, in `timestampType`."""


def columns_of(options: ReadOptions | None) -> Mapping[str, DataType]:
    if options is None or options.layout == NATIVE:
        return COLUMNS
    return {**KAFKA_COLUMNS, **KAFKA_HEADERS} if options.include_headers else KAFKA_COLUMNS


def whole_schema(options: ReadOptions | None = None) -> StructType:
    return _chosen(columns_of(options), () if options is None else options.columns)


def native_schema(names: Collection[str] = ()) -> StructType:
    """Of store files: these columns, or all."""
    return _chosen(COLUMNS, names)


def _chosen(columns: Mapping[str, DataType], names: Collection[str]) -> StructType:
    """The option `columns`; case does not matter, as nowhere in Spark."""
    known = {name.lower(): name for name in columns}
    chosen: list[str] = []
    for name in names or columns:
        found = known.get(name.lower())
        if found is None:
            close = difflib.get_close_matches(name.lower()[:SHOWN_MAX], known, n=1)
            hint = f"did you mean {known[close[0]]}?" if close else f"there are {', '.join(columns)}"
            raise ConfigError(f"columns: a topic has no column {quoted(name)}; {hint}")
        if found in chosen:
            raise ConfigError(f"columns names {found} twice")
        chosen.append(found)
    return StructType([StructField(name, columns[name]) for name in chosen])


def check_schema(schema: StructType, options: ReadOptions | None = None) -> None:
    """A schema given by the user chooses columns; it cannot rename or convert them."""
    columns = columns_of(options)
    for field in schema:
        if field.name not in columns:
            known = ", ".join(columns)
            raise ConfigError(f"a topic has no column {field.name!r}; it has {known}")
        if field.dataType != columns[field.name]:
            wanted, given = columns[field.name].simpleString(), field.dataType.simpleString()
            raise ConfigError(f"the column {field.name} is {wanted}, not {given}: cast it after reading")
        if not field.nullable:
            raise ConfigError(f"the column {field.name} may be null: leave NOT NULL out of the schema")
    if len(set(schema.names)) != len(schema.names):
        raise ConfigError("the schema names a column twice")


def arrow_schema(schema: StructType) -> pa.Schema:
    """Exactly the schema that Spark expects of batches; it refuses any other."""
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # older Sparks know no other zone


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


def make_row(schema: pa.Schema, known: Mapping[str, object]) -> pa.RecordBatch:
    """One row of which only these columns are known, by our names; the others are null."""
    row = {name: known.get(_MADE_FROM.get(name, name)) for name in schema.names}
    return pa.RecordBatch.from_pylist([row], schema=schema)


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
