"""The columns of a topic for Spark: their names and their types, which are those of `arrow/batches.py`.

RocketMQ-Spark's names are kept where it has the column.  Every column may be null for Spark, as with its other
sources; truly null are only `tags` of a message that has none, `bodyError` of one whose body is sound, and a time that
a timestamp cannot hold.
"""

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

from bolide.arrow.names import chosen_names
from bolide.model.errors import ConfigError
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
    """The option `columns`."""
    chosen = chosen_names(names or columns, columns, ConfigError)
    return StructType([StructField(name, columns[name]) for name in chosen])


def check_schema(schema: StructType, options: ReadOptions | None = None) -> None:
    """A schema given by the user chooses columns; it cannot rename or convert them."""
    _check(schema, columns_of(options), () if options is None else options.columns)


def check_native_schema(schema: StructType, names: Collection[str] = ()) -> None:
    """Of store files, where the option `columns` has these names."""
    _check(schema, COLUMNS, names)


def _check(schema: StructType, columns: Mapping[str, DataType], names: Collection[str]) -> None:
    if names and schema.names != _chosen(columns, names).names:
        raise ConfigError("a schema and the option columns contradict each other: give one of them")
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
