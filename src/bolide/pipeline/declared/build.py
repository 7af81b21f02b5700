"""From a definition to Spark's frames: every source and step a view, every sink a query that can be started.

A sink is a query of its own with a checkpoint of its own, and so is each step's quarantine: Spark then answers for each
that no row is lost or doubled.  What is expected of rows is counted on their way (`DataFrame.observe`).
"""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import BinaryType, StringType

from bolide.model.errors import ConfigError
from bolide.model.message import BODY_BYTES_MAX
from bolide.net.clock import SystemClock
from bolide.pipeline.declared.definition import (
    AVAILABLE_NOW,
    DELTA,
    TOPIC_FORMAT,
    Action,
    CodePlace,
    Dedup,
    Definition,
    Function,
    Join,
    Sink,
    Source,
    Sql,
    Stateful,
    Step,
    Watermark,
)
from bolide.pipeline.declared.delta_sink import DeltaSink
from bolide.pipeline.declared.files import MODULE_PREFIX, load_module
from bolide.pipeline.declared.lateness import said_behind, wanted_of
from bolide.pipeline.declared.progress import EXPECT, ROWS
from bolide.pipeline.declared.state_steps import joined, without_duplicates
from bolide.pipeline.moving import asks_another_query, moving_parts
from bolide.pipeline.option_table import Use
from bolide.pipeline.spark_errors import first_words
from bolide.pipeline.write_options import parse_write

FAILED = "_failed"
"""The column of a quarantine that lists the expectations which a row did not meet."""

ORIGIN = {
    "fromTopic": "topic",
    "fromBroker": "brokerName",
    "fromQueue": "queueId",
    "fromOffset": "queueOffset",
    "fromMessage": "msgId",
}
"""Properties of a message in a quarantine topic, and the columns that they come from."""

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DELTA_SESSION = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True)
class Planned:
    """A query that is not started yet."""

    name: str
    frame: DataFrame
    sink: Sink


@dataclass(frozen=True)
class Built:
    frames: Mapping[str, DataFrame]
    """By source and step, behind what is expected of them."""
    queries: Sequence[Planned]


def needed_settings(definition: Definition) -> dict[str, str]:
    """Settings that Spark needs for what is declared; those of the definition win."""
    needed: dict[str, str] = {}
    if any(isinstance(step.work, Stateful | Dedup | Join) for step in definition.steps.values()):
        needed["spark.sql.streaming.stateStore.providerClass"] = STATE_STORE
    if any(source.format == DELTA for source in definition.sources.values()):
        needed |= DELTA_SESSION
    return needed | dict(definition.settings)


def build(spark: SparkSession, definition: Definition) -> Built:
    """All frames of a definition that was checked; `ConfigError` names the file, the line and what Spark says."""
    raw: dict[str, DataFrame] = {}
    frames: dict[str, DataFrame] = {}
    for part in definition.in_order():
        with _told(definition, part.line, _words(part)):
            made = _read(spark, part) if isinstance(part, Source) else _work(spark, definition, part, frames)
            raw[part.name] = _late(made, part.watermark)
        frames[part.name] = _expected(definition, part, raw[part.name])
        frames[part.name].createOrReplaceTempView(part.name)
    queries = [
        Planned(sink.name, frames[_name(definition, sink.input)], sink) for sink in definition.sinks.values()
    ]
    queries += [_quarantine(definition, part, raw[part.name]) for part in definition.quarantining()]
    for query in queries:
        if query.sink.format == TOPIC_FORMAT:
            with _told(definition, query.sink.line, f"the sink {query.name}"):
                parse_write(query.sink.options, query.frame.schema, Use.STREAM_WRITE)
    return Built(frames, queries)


def start(definition: Definition, query: Planned, *, checkpoint: str, trigger: str) -> Any:
    """Starts a query of Spark's; `trigger` is a span or `available-now`."""
    with _told(definition, query.sink.line, f"the sink {query.name}"):
        return _start(query, name=f"{definition.name}.{query.name}", checkpoint=checkpoint, trigger=trigger)


def _start(query: Planned, *, name: str, checkpoint: str, trigger: str) -> Any:
    sink = query.sink
    writer = query.frame.writeStream.queryName(name).outputMode(sink.output_mode)
    writer = writer.option("checkpointLocation", checkpoint)
    if sink.format == DELTA:
        table = DeltaSink(Path(sink.options["path"]), SystemClock().now_ms, sink.partition_by)
        writer = writer.foreachBatch(table.batch)
    else:
        writer = writer.format(sink.format).options(**sink.options)
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
    if trigger == AVAILABLE_NOW:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=trigger).start()


# ---- sources and steps -------------------------------------------------------------------------------------------


def _read(spark: SparkSession, source: Source) -> DataFrame:
    reader: Any = spark.readStream if source.is_stream else spark.read
    reader = reader.format(source.format).options(**source.options)
    if source.schema is not None:
        reader = reader.schema(source.schema)
    frame: DataFrame = reader.load()
    return frame


def _work(
    spark: SparkSession, definition: Definition, step: Step, frames: Mapping[str, DataFrame]
) -> DataFrame:
    inputs = [frames[_name(definition, name)] for name in step.inputs]
    match step.work:
        case Sql(text=text):
            return spark.sql(text.strip().rstrip(";"))
        case Function(code=code):
            made = _called(code, *inputs)
            if not isinstance(made, DataFrame):
                raise ConfigError(f"{code} returns {type(made).__name__}, and a step is a DataFrame")
            return made
        case Dedup() as work:
            (frame,) = _in_time(definition, step, work, inputs)
            return without_duplicates(frame, work)
        case Join() as work:
            return joined(spark, step, work, _in_time(definition, step, work, inputs))
        case Stateful() as work:
            return (
                inputs[0]
                .groupBy(*work.key)
                .transformWithState(
                    statefulProcessor=_called(work.code),
                    outputStructType=work.schema,
                    outputMode=work.output_mode,
                    timeMode=work.time_mode,
                )
            )


def _in_time(
    definition: Definition, step: Step, work: Dedup | Join, inputs: Sequence[DataFrame]
) -> list[DataFrame]:
    """The inputs with watermarks: those of the step where nothing behind it has said how late rows come."""
    return [
        frame if any(said_behind(definition, name)) else _late(frame, wanted)
        for name, frame, wanted in zip(step.inputs, inputs, wanted_of(work), strict=True)
    ]


def _called(code: CodePlace, *inputs: DataFrame) -> Any:
    """What the user's code gives; an error of its own is told as such."""
    try:
        return _loaded(code)(*inputs)
    except PySparkException:
        raise
    except Exception as error:
        raise ConfigError(f"{code} ends with {type(error).__name__}: {error}") from error


def _loaded(code: CodePlace) -> Any:
    """A function or class, which Spark sends to its workers by value: they do not have the file."""
    found = code.object
    if code.file is not None:
        found = getattr(load_module(code.file.absolute()), code.name)
    module = sys.modules.get(getattr(found, "__module__", ""))
    if module is not None and module.__name__.startswith(MODULE_PREFIX):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return found


def _late(frame: DataFrame, watermark: Watermark | None) -> DataFrame:
    return frame if watermark is None else frame.withWatermark(watermark.column, watermark.delay)


def _name(definition: Definition, written: str) -> str:
    """A name as it was declared: in SQL its case does not matter."""
    part = definition.part(written)
    assert part is not None, written
    return part.name


# ---- expectations ------------------------------------------------------------------------------------------------


def _expected(definition: Definition, part: Source | Step, frame: DataFrame) -> DataFrame:
    """Counts what is not as expected, and lets through what its action lets through."""
    if not part.expectations:
        return frame
    met = _conditions(definition, part, frame)
    counts = [F.count_if(~condition).alias(name) for name, condition in met.items()]
    frame = frame.observe(f"{EXPECT}{part.name}", F.count(F.lit(1)).alias(ROWS), *counts)
    for one in part.expectations:
        if one.action is Action.FAIL:
            text = f"the expectation {one.name} of {part.name} is not met: {one.condition}"
            frame = frame.filter(F.when(met[one.name], F.lit(True)).otherwise(F.raise_error(F.lit(text))))
        elif one.action is not Action.WARN:
            frame = frame.filter(met[one.name])
    return frame


def _conditions(definition: Definition, part: Source | Step, frame: DataFrame) -> dict[str, Column]:
    """By name, whether a row is good; null is not."""
    conditions: dict[str, Column] = {}
    for one in part.expectations:
        with _told(definition, one.line, f"the expectation {one.name} of {_words(part)}"):
            conditions[one.name] = F.coalesce(F.expr(one.condition).cast("boolean"), F.lit(False))
            filtered = frame.filter(conditions[one.name])  # so that an unknown column is told with this line
            if one.action is Action.QUARANTINE:
                _check_still(filtered, one.condition)
    return conditions


def _check_still(filtered: DataFrame, condition: str) -> None:
    """`ConfigError` for a condition that may tell sink and quarantine something else of one row."""
    apart = "The quarantine is a query of its own, so a row may end in neither place"
    if asks_another_query(filtered):
        raise ConfigError(
            f"it asks another query (SELECT …), whose rows may be others each time that Spark looks. {apart}: compare"
            " with what the row has, such as a column that a step before brings by a join, or let action be drop or"
            " fail"
        )
    if moving := moving_parts(filtered, condition):
        raise ConfigError(
            f"it asks for {', '.join(moving)}, which is something else each time that Spark looks. {apart}: compare"
            " with a time that the row has (storeTimestamp, or a column that is made of its own times), or let"
            " action be drop or fail"
        )


def _quarantine(definition: Definition, part: Source | Step, raw: DataFrame) -> Planned:
    """What an expectation keeps from going on, with the names of all that the row does not meet."""
    place = definition.quarantine
    assert place is not None, "a definition that was checked"
    met = _conditions(definition, part, raw)
    names = F.array_compact(F.array(*[F.when(~ok, F.lit(name)) for name, ok in met.items()]))
    held = [met[one.name] for one in part.expectations if one.action is Action.QUARANTINE]
    all_met = held[0]
    for one in held[1:]:
        all_met = all_met & one
    frame = raw.withColumn(FAILED, names).filter(~all_met)
    options = dict(place.options)
    if place.format == TOPIC_FORMAT:
        frame = _as_messages(definition, part, frame)
    elif "path" in options:
        options["path"] = f"{options['path'].rstrip('/')}/{part.name}"
    name = f"quarantine.{part.name}"
    return Planned(name, frame, Sink(name, part.name, place.format, options, place.line))


def _as_messages(definition: Definition, part: Source | Step, frame: DataFrame) -> DataFrame:
    """A row that has a body which a message can have keeps it, byte for byte; another one becomes JSON.

    A body that is not kept is not in that JSON either, but its length is; of a row that is too large as JSON there is
    nothing but its length.
    """
    types = {field.name: field.dataType for field in frame.schema}
    has_body = isinstance(types.get("body"), BinaryType | StringType)
    names = [name for name in frame.columns if name != FAILED]
    if has_body:
        length = F.octet_length("body")
        others = [F.col(name) for name in names if name != "body"]
        told = _json_that_fits([*others, length.alias("bodyLength")])
        body = F.when(length.between(1, BODY_BYTES_MAX), F.col("body").cast("binary")).otherwise(told)
    else:
        body = _json_that_fits([F.col(name) for name in names])
    return frame.select(
        body.alias("body"),
        F.lit(part.name).alias("tags"),
        _where_from(definition, types).alias("properties"),
    )


def _where_from(definition: Definition, types: Collection[str]) -> Column:
    """Properties of a row put aside: what it does not meet, and the message that it was, as far as it says."""
    said = {"failed": F.array_join(FAILED, ","), "pipeline": F.lit(definition.name)}
    said |= {name: F.col(column).cast("string") for name, column in ORIGIN.items() if column in types}
    pairs = [one for name, value in said.items() for one in (F.lit(name), value)]
    return F.map_filter(F.create_map(*pairs), lambda _, value: value.isNotNull())


def _json_that_fits(columns: Sequence[Column]) -> Column:
    told = F.to_json(F.struct(*columns))
    size = F.octet_length(told)
    alone = F.to_json(F.struct(size.alias("rowLength")))
    return F.when(size <= BODY_BYTES_MAX, told).otherwise(alone).cast("binary")


# ---- errors ------------------------------------------------------------------------------------------------------


@contextmanager
def _told(definition: Definition, line: int, what: str) -> Iterator[None]:
    """What Spark says about a part becomes one sentence with the place in the file."""
    place = f"{definition.place(line)}{what}"
    try:
        yield
    except PySparkException as error:
        raise ConfigError(f"{place}: {first_words(error)}") from error
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error


def _words(part: Source | Step) -> str:
    return f"the {'source' if isinstance(part, Source) else 'step'} {part.name}"
