"""Dead letters as a frame: the columns of a topic, and what each died of, as far as that can be known.

A consumer that sends a message back does not say why.  What is known is in the message: the topic that it was of, its
tag, how often it failed, and where it failed last (`rules/attempts.py`; a broker of Apache writes no history).  Whoever
knows more, from a property of the application or from the body, says with SQL what the cause is.
"""

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.errors import ConfigError
from bolide.model.message import Property
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.spark_errors import first_words

ORIGIN, TAG, HOST, ATTEMPTS, WHY, CAUSE = "origin", "tag", "lastHost", "attempts", "why", "cause"
CAUSE_COLUMNS = (ORIGIN, TAG, HOST, ATTEMPTS, WHY)

_BETWEEN = "\x1f"
_LAST_HOST = r"^\S+ (\S+):\d+ \S+$"
"""Of the last entry of a history, without the port, which is another one after every start."""


def dead_letters(
    spark: SparkSession, cluster: ClusterAccess, group: str, *, since_ms: int = 0, by: str | None = None
) -> DataFrame:
    """All that are there now and died at or after a moment."""
    options = {**cluster.options(), "dlqOf": group}
    if since_ms > 0:
        options |= {"startingTimestamp": str(since_ms), "startingOffsetsByTimestampStrategy": "latest"}
    return with_causes(spark.read.format("rocketmq").options(**options).load(), by)


def with_causes(frame: DataFrame, by: str | None = None) -> DataFrame:
    """`by` is SQL over the columns of a topic: its value is the cause then, beside topic and tag."""
    entries = F.split(F.col("properties")[Property.ATTEMPTS], "; ")
    if by is None:
        host = F.regexp_extract(F.element_at(entries, -1), _LAST_HOST, 1)
        attempts, why = F.col("reconsumeTimes"), F.lit(None).cast("string")
    else:
        host, attempts = F.lit(""), F.lit(None).cast("int")
        try:
            why = F.expr(by).cast("string")
            frame.select(why)  # so that a wrong column is told as the expression's
        except PySparkException as error:
            raise ConfigError(
                f"--by is SQL over the columns {', '.join(frame.columns)}: {first_words(error)}"
            ) from error
    frame = frame.withColumns(
        {
            ORIGIN: F.coalesce(F.col("properties")[Property.RETRY_TOPIC], F.lit("")),
            TAG: F.coalesce("tags", F.lit("")),
            HOST: F.coalesce(host, F.lit("")),
            ATTEMPTS: attempts,
            WHY: why,
        }
    )
    parts = [F.coalesce(F.col(name).cast("string"), F.lit("")) for name in CAUSE_COLUMNS]
    return frame.withColumn(CAUSE, F.substring(F.sha2(F.concat_ws(_BETWEEN, *parts), 256), 1, 8))


def chosen(
    frame: DataFrame, *, tags: Sequence[str] = (), causes: Sequence[str] = (), until_ms: int | None = None
) -> DataFrame:
    """Those with one of these tags, of one of these causes, that died at or before a moment."""
    if tags:
        frame = frame.where(F.col(TAG).isin(list(tags)))
    if causes:
        frame = frame.where(F.col(CAUSE).isin(list(causes)))
    if until_ms is not None:
        frame = frame.where(F.col("storeTimestamp") <= F.timestamp_millis(F.lit(until_ms)))
    return frame
