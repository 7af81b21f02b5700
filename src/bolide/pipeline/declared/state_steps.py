"""Steps that keep state of rows by operators of Spark's own: duplicates that are dropped, and joins of two streams.

Both forget a row when the watermark has passed it by as long as another one may matter: their state is bounded by what
comes in that time, and lies in the checkpoint as any other of Spark's.
"""

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import ArrayType, BinaryType, StringType

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.definition import Dedup, Join, JoinType, Step

BY, ALONE = "_bolide_by", "_bolide_alone"
"""Columns while duplicates are looked for: what rows are known by, and what tells rows apart that have none of it."""

PLACE = ("topic", "brokerName", "queueId", "queueOffset")
"""Columns that together name one message."""

WORD = re.compile(r"\w+")


def without_duplicates(frame: DataFrame, work: Dedup) -> DataFrame:
    """Of a frame with a watermark, with the columns that it had."""
    known_by = _known_by(frame, work.by)
    return (
        frame.withColumn(BY, known_by)
        .withColumn(ALONE, F.when(F.col(BY).isNull(), _alone(frame)))
        .dropDuplicatesWithinWatermark([BY, ALONE])
        .drop(BY, ALONE)
    )


def _known_by(frame: DataFrame, by: str) -> Column:
    """A column of that name wins over the short words for what a message has."""
    types = {field.name.lower(): field.dataType for field in frame.schema}
    if by == "body" and isinstance(types.get(by), BinaryType | StringType):
        return F.sha2(F.col("body").cast("binary"), 256)  # a body has up to 4 MiB, and state is kept of each
    if by.lower() not in types:
        if by == "key" and isinstance(types.get("keys"), ArrayType):
            return F.nullif(F.array_join("keys", " "), F.lit(""))
        if by == "id" and "msgid" in types:
            return F.col("msgId")
    return F.expr(by)


def _alone(frame: DataFrame) -> Column:
    """What no other row has.  A place in a topic is the same when a task is run again, and a new id is not."""
    if set(PLACE) <= set(frame.columns):
        return F.concat_ws("/", *(F.col(name).cast("string") for name in PLACE))
    return F.expr("uuid()")


def joined(spark: SparkSession, step: Step, work: Join, sides: Sequence[DataFrame]) -> DataFrame:
    """Of two frames with watermarks."""
    views = [f"_bolide_{step.name}_{side}" for side in ("left", "right")]
    for view, frame in zip(views, sides, strict=True):
        frame.createOrReplaceTempView(view)
    left, right = (f"`{name}`" for name in step.inputs)
    moment, other = f"{left}.`{work.times[0]}`", f"{right}.`{work.times[1]}`"
    kind = "LEFT OUTER" if work.type is JoinType.LEFT else "INNER"
    return spark.sql(
        f"SELECT {work.select or _both(left, right, other)}\n"
        f"FROM {views[0]} AS {left} {kind} JOIN {views[1]} AS {right}\n"
        f"ON (\n{_condition(step, work, sides)}\n) AND {other} BETWEEN"
        f" {moment} - INTERVAL '{work.within}' AND {moment} + INTERVAL '{work.within}'"
    )


def _both(left: str, right: str, time_of_right: str) -> str:
    """Columns named as the sides, so that `orders.body` is what it was; null where there was no match."""
    return (
        f"struct({left}.*) AS {left},"
        f" CASE WHEN {time_of_right} IS NOT NULL THEN struct({right}.*) END AS {right}"
    )


def _condition(step: Step, work: Join, sides: Sequence[DataFrame]) -> str:
    if not WORD.fullmatch(work.on):
        return work.on
    left, right = (f"`{name}`" for name in step.inputs)
    columns = [{name.lower() for name in frame.columns} for frame in sides]
    if all(work.on.lower() in names for names in columns):
        return f"{left}.{work.on} = {right}.{work.on}"
    if work.on == "key" and all("keys" in names for names in columns):
        return f"{left}.keys = {right}.keys AND size({left}.keys) > 0"
    raise ConfigError(
        f"on: {work.on} is no column of both {left} and {right};"
        f" a condition is {step.inputs[0]}.a = {step.inputs[1]}.b"
    )
