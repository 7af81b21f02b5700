"""Options of a write, and the columns that it takes."""

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

from bolide.arrow.names import BYTES, INTEGER, LONG, MOMENT, PAIRS, SHORT, TEXT, TEXTS, Field, wrong_with_rows
from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_WRITE_RATE_MAX
from bolide.model.names import check_group, check_topic
from bolide.pipeline.access import ClusterAccess, read_cluster
from bolide.pipeline.option_table import OptionTexts, Use, named

GROUP_DEFAULT = "spark-writer"
TIMEOUT_DEFAULT_MS = 60_000
TIMEOUT_MAX_MS = 24 * 3_600_000

_KINDS: Mapping[type[DataType], str] = {
    StringType: TEXT,
    BinaryType: BYTES,
    IntegerType: INTEGER,
    LongType: LONG,
    ShortType: SHORT,
    TimestampType: MOMENT,
}


@dataclass(frozen=True)
class WriteOptions:
    """Options of a write, checked."""

    cluster: ClusterAccess
    topic: str | None = None
    group: str = GROUP_DEFAULT
    timeout_ms: int = TIMEOUT_DEFAULT_MS
    idempotent: bool = True
    rate: float | None = None
    """How many messages a second a task sends at most."""
    skip_bad_rows: bool = False
    """Whether rows that are no messages are left out; else the first one ends the write."""


def parse_write(given: Mapping[str, str], schema: StructType, use: Use) -> WriteOptions:
    """`ConfigError` says everything that is wrong with options and columns."""
    texts = OptionTexts(given, use)
    hear = texts.hear
    found = WriteOptions(
        cluster=read_cluster(texts),
        topic=hear(None, _topic, texts),
        group=hear("", named, "producerGroup", check_group, texts.get("producerGroup") or GROUP_DEFAULT),
        timeout_ms=hear(0, _timeout_ms, texts),
        idempotent=hear(True, _idempotent, texts),
        rate=hear(None, texts.number, "maxMessagesPerSecond", 1, SPARK_WRITE_RATE_MAX, None),
        skip_bad_rows=hear("", texts.choice, "badRows", ("fail", "skip")) == "skip",
    )
    texts.complaints.extend(_wrong_with(schema, has_topic="topic" in texts))
    texts.say()
    return found


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
    fields = [Field(field.name, _kind(field.dataType), field.dataType.simpleString()) for field in schema]
    no_topic = 'nobody says where to write to: .option("topic", "orders"), or a column topic'
    return wrong_with_rows(fields, None if has_topic else no_topic)


def _kind(kind: DataType) -> str | None:
    if isinstance(kind, ArrayType):
        return TEXTS if isinstance(kind.elementType, StringType) else None
    if isinstance(kind, MapType):
        texts = isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
        return PAIRS if texts else None
    return next((name for known, name in _KINDS.items() if isinstance(kind, known)), None)
