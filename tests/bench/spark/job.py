"""A Spark session that is told by lines on standard input what to do, and answers how long it took.

    job.py SETTINGS          # {"spark.master": "local[2]", …}

Runs on either side: it knows Spark, and neither bolide nor Kafka.  A request is one line of JSON with a `verb`, an
answer is another.  Whatever else the process says goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession

IDLE_SECONDS = 120
POLL_SECONDS = 0.05
TASKS = 4

Options = dict[str, str]


def count(spark: SparkSession, source: str, options: Options) -> dict[str, float]:
    return {"rows": spark.read.format(source).options(**options).load().count()}


def count_files(spark: SparkSession, folder: str) -> dict[str, float]:
    return {"rows": spark.read.parquet(folder).count()}


def read(spark: SparkSession, source: str, options: Options, sink: str, folder: str) -> dict[str, float]:
    """From the question for the table to the last row in the sink."""
    began = time.perf_counter()
    writing = spark.read.format(source).options(**options).load().write.mode("overwrite").format(sink)
    writing.save(folder) if folder else writing.save()
    return {"seconds": time.perf_counter() - began}


def stream(spark: SparkSession, source: str, options: Options, folder: str) -> dict[str, float]:
    """All that is there, with a new checkpoint."""
    began = time.perf_counter()
    query = (
        _stream(spark, source, options | {"startingOffsets": "earliest"})
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{folder}-checkpoint")
        .trigger(availableNow=True)
        .start(folder)
    )
    query.awaitTermination()
    return {"seconds": time.perf_counter() - began}


def write(
    spark: SparkSession, sink: str, options: Options, messages: int, body_bytes: int
) -> dict[str, float]:
    body = f"cast(rpad(cast(id AS string), {body_bytes}, 'x') AS binary) AS value"
    frame = spark.range(0, messages, 1, TASKS).selectExpr(body)
    began = time.perf_counter()
    frame.write.format(sink).mode("append").options(**options).save()
    return {"seconds": time.perf_counter() - began}


def idle(spark: SparkSession, source: str, options: Options, folder: str, triggers: int) -> dict[str, float]:
    """How long a trigger takes that finds nothing, of the median one."""
    spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", "0ms")  # every trigger is told
    query = (
        _stream(spark, source, options | {"startingOffsets": "latest"})
        .writeStream.format("noop")
        .option("checkpointLocation", f"{folder}-checkpoint")
        .trigger(processingTime="0 seconds")
        .start()
    )
    deadline = time.monotonic() + IDLE_SECONDS
    while True:
        progress = [one.durationMs for one in query.recentProgress if one.numInputRows == 0]
        if len(progress) > triggers:
            break
        if not query.isActive or time.monotonic() > deadline:
            raise RuntimeError(f"{len(progress)} triggers of {triggers}: {query.exception()}")
        time.sleep(POLL_SECONDS)
    query.stop()
    return {"ms": median(one["triggerExecution"] for one in progress[1:])}


def _stream(spark: SparkSession, source: str, options: Options) -> DataFrame:
    return spark.readStream.format(source).options(**options).load()


VERBS: dict[str, Callable[..., dict[str, float]]] = {
    "count": count,
    "count_files": count_files,
    "read": read,
    "stream": stream,
    "write": write,
    "idle": idle,
}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # Spark and its JVM say what they like
    builder = SparkSession.builder.appName("bench")
    for key, value in json.loads(sys.argv[1]).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    answers.write(json.dumps({"spark": spark.version}) + "\n")
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answers.write(json.dumps(VERBS[request.pop("verb")](spark, **request)) + "\n")
    spark.stop()


if __name__ == "__main__":
    main()
