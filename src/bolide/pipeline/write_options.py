"""Options of a write, and the columns that it takes."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from bolide.model.addresses import parse_addresses
from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_WRITE_RATE_MAX
from bolide.model.names import check_group, check_topic
from bolide.pipeline.option_table import CLOSE, OptionTexts, Use, named, quoted

GROUP_DEFAULT = "spark-writer"
TIMEOUT_DEFAULT_MS = 60_000
TIMEOUT_MAX_MS = 24 * 3_600_000

_TEXT = (StringType, BinaryType)
_WHOLE = (IntegerType, LongType, ShortType)

COLUMNS: Mapping[str, tuple[type[DataType], ...]] = {
    "topic": (StringType,),
    "body": _TEXT,
    "value": _TEXT,
    "tags": (StringType,),
    "keys": (StringType, ArrayType),
    "properties": (MapType,),
    "delay_level": _WHOLE,
    "deliver_at": (TimestampType, LongType),
    "sharding_key": (StringType,),
    "queue_id": _WHOLE,
}
"""What a frame may have, and as which types.  `value` is `body` as Spark's Kafka sink calls it."""


@dataclass(frozen=True)
class WriteOptions:
    """Options of a write, checked."""

    nameserver: str
    topic: str | None = None
    group: str = GROUP_DEFAULT
    timeout_ms: int = TIMEOUT_DEFAULT_MS
    idempotent: bool = True
    rate: float | None = None
    """How many messages a second a task sends at most."""


def parse_write(given: Mapping[str, str], schema: StructType, use: Use) -> WriteOptions:
    """`ConfigError` says everything that is wrong with options and columns."""
    texts = OptionTexts(given, use)
    hear = texts.hear
    found = WriteOptions(
        nameserver=hear("", _nameserver, texts),
        topic=hear(None, _topic, texts),
        group=hear("", named, "producerGroup", check_group, texts.get("producerGroup") or GROUP_DEFAULT),
        timeout_ms=hear(0, _timeout_ms, texts),
        idempotent=hear(True, _idempotent, texts),
        rate=hear(None, texts.number, "maxMessagesPerSecond", 1, SPARK_WRITE_RATE_MAX, None),
    )
    texts.complaints.extend(_wrong_with(schema, has_topic="topic" in texts))
    texts.say()
    return found


def _nameserver(texts: OptionTexts) -> str:
    return ";".join(named("nameserver", parse_addresses, texts.required("nameserver", "127.0.0.1:9876")))


def _topic(texts: OptionTexts) -> str | None:
    text = texts.get("topic")
    return None if text is None else named("topic", check_topic, text)


def _timeout_ms(texts: OptionTexts) -> int:
    found = texts.duration_ms("writeTimeout", TIMEOUT_DEFAULT_MS)
    if not 1 <= found <= TIMEOUT_MAX_MS:
        raise ConfigError("writeTimeout is a time of up to 24h, such as 30s")
    return found


def _idempotent(texts: OptionTexts) -> bool:
    return texts.flag("idempotent", default=True)


# ---- columns ---------------------------------------------------------------------------------------------------


def _wrong_with(schema: StructType, *, has_topic: bool) -> list[str]:
    wrong = []
    for field in schema:
        kinds = COLUMNS.get(field.name)
        if kinds is None:
            close = difflib.get_close_matches(field.name.lower(), COLUMNS, n=1, cutoff=CLOSE)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(COLUMNS)}"
            wrong.append(f"a message has no column {quoted(field.name)}: {hint} Leave it out, or rename it")
        elif not _fits(field.dataType, kinds):
            wanted = " or ".join(_in_words(field.name, kind) for kind in kinds)
            wrong.append(f"the column {field.name} is {wanted}, not {field.dataType.simpleString()}: cast it")
    names = schema.names
    if len(set(names)) != len(names):
        wrong.append("a column is there twice")
    if "body" in names and "value" in names:
        wrong.append("body and value are the same thing: leave one of them out")
    if "body" not in names and "value" not in names:
        wrong.append("the column body is missing (value is another name for it)")
    if "topic" not in names and not has_topic:
        wrong.append('nobody says where to write to: .option("topic", "orders"), or a column topic')
    return wrong


def _fits(kind: DataType, kinds: tuple[type[DataType], ...]) -> bool:
    if not isinstance(kind, kinds):
        return False
    if isinstance(kind, ArrayType):
        return isinstance(kind.elementType, StringType)
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    return True


def _in_words(column: str, kind: type[DataType]) -> str:
    return {ArrayType: "array<string>", MapType: "map<string,string>"}.get(kind) or kind.typeName()
