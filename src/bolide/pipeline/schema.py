"""The columns of a topic: their names, their Spark types, and the Arrow batches made of them.

RocketMQ-Spark's names are kept where it has the column.  Every column may be null for Spark, as with its other
sources; truly null are only `tags` of a message that has none, `bodyError` of one whose body is sound, and a time that
a timestamp cannot hold.
"""

from collections.abc import Mapping

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


def whole_schema() -> StructType:
    return StructType([StructField(name, kind) for name, kind in COLUMNS.items()])


def check_schema(schema: StructType) -> None:
    """A schema given by the user chooses columns; it cannot rename or convert them."""
    for field in schema:
        if field.name not in COLUMNS:
            known = ", ".join(COLUMNS)
            raise ConfigError(f"a topic has no column {field.name!r}; it has {known}")
        if field.dataType != COLUMNS[field.name]:
            wanted, given = COLUMNS[field.name].simpleString(), field.dataType.simpleString()
            raise ConfigError(f"the column {field.name} is {wanted}, not {given}: cast it after reading")
        if not field.nullable:
            raise ConfigError(f"the column {field.name} may be null: leave NOT NULL out of the schema")
    if len(set(schema.names)) != len(schema.names):
        raise ConfigError("the schema names a column twice")


def arrow_schema(schema: StructType) -> pa.Schema:
    """Exactly the schema that Spark expects of batches; it refuses any other."""
    return to_arrow_schema(schema, timezone="UTC")


def make_batch(schema: pa.Schema, rows: int, columns: Mapping[str, Buffers]) -> pa.RecordBatch:
    """Put finished buffers together.  Nothing is copied and nothing is looked at."""
    arrays = [_array(field.type, rows, list(columns[field.name])) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(kind: pa.DataType, rows: int, buffers: list[memoryview | None]) -> pa.Array:
    """The columnar format's layouts: own buffers first, then those of the children."""
    if pa.types.is_list(kind):
        items = _array(kind.value_type, _last_offset(buffers[1]), buffers[2:])
        return pa.Array.from_buffers(kind, rows, _own(buffers[:2]), children=[items])
    if pa.types.is_map(kind):
        count = _last_offset(buffers[1])
        names = _array(kind.key_type, count, buffers[3:6])
        values = _array(kind.item_type, count, buffers[6:9])
        pair = pa.struct([kind.key_field, kind.item_field])
        pairs = pa.Array.from_buffers(pair, count, _own(buffers[2:3]), children=[names, values])
        return pa.Array.from_buffers(kind, rows, _own(buffers[:2]), children=[pairs])
    return pa.Array.from_buffers(kind, rows, _own(buffers))


def _own(buffers: list[memoryview | None]) -> list[pa.Buffer | None]:
    return [None if buffer is None else pa.py_buffer(buffer) for buffer in buffers]


def _last_offset(offsets: memoryview | None) -> int:
    assert offsets is not None
    return int(offsets.cast("i")[-1])
