"""The driver of a job on a cluster, as a user would write it: it knows Spark, and nothing of bolide.  Not a test.

    spark-submit … cluster_query.py PLACES

PLACES is JSON: `nameserver`, the topics `source` and `sink`, a `folder` for files and checkpoints, and `rows`, how many
messages of a queue a batch has.  Two queries read `source` in batches, one into Parquet and one into `sink`.  In each
batch a task stops in the middle, says so, and goes on when it is told: by files in `folder/gates`.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.streaming.query import StreamingQuery

QUEUES = 4
ALL_STOP_IN = 1
"""In this batch every task stops, so that those which have no room yet begin when it goes on; in others one does."""

WAIT_SECONDS = 600
POLL_SECONDS = 0.05
STARTS_MAX = 10


def gate(folder: str, query: str, rows: int) -> Callable[[str, int, int], str]:
    """Hands bodies on; at a row four fifths into the batch its task waits."""

    def hand_on(body: str, queue: int, offset: int) -> str:
        batch, at = divmod(offset, rows)
        if at == rows * 4 // 5 and (queue == 0 or batch == ALL_STOP_IN):
            name = os.path.join(folder, f"{query}-{batch}")
            with open(f"{name}.new", "w") as file:
                file.write(str(os.getpid()))
            os.replace(f"{name}.new", f"{name}.reached")
            deadline = time.monotonic() + WAIT_SECONDS
            while not os.path.exists(f"{name}.open"):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nobody opens {name}")
                threading.Event().wait(POLL_SECONDS)
        return body

    return hand_on


def stream(spark: SparkSession, query: str, places: dict[str, Any]) -> DataFrame:
    rows = places["rows"]
    messages = (
        spark.readStream.format("rocketmq")
        .schema("queueId int, queueOffset long, body binary")
        .option("nameserver", places["nameserver"])
        .option("subscribe", places["source"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", QUEUES * rows)
        .load()
    )
    wait = udf(gate(f"{places['folder']}/gates", query, rows), useArrow=False).asNondeterministic()
    return messages.select(wait(messages.body.cast("string"), "queueId", "queueOffset").alias("body"))


def start(spark: SparkSession, query: str, places: dict[str, Any]) -> StreamingQuery:
    """From the checkpoint to the end of what is there."""
    writing = (
        stream(spark, query, places)
        .writeStream.option("checkpointLocation", f"{places['folder']}/{query}-checkpoint")
        .trigger(availableNow=True)
    )
    if query == "parquet":
        return writing.format("parquet").start(f"{places['folder']}/rows")
    options = {"nameserver": places["nameserver"], "topic": places["sink"]}
    return writing.format("rocketmq").options(**options).start()


def run(spark: SparkSession, places: dict[str, Any]) -> None:
    """Both side by side; one that fails ends the driver, whatever the other waits for.

    Spark gives the Python beside a stream ten seconds to start: on a machine that is too busy it is begun again.
    """
    running = {query: start(spark, query, places) for query in ("parquet", "topic")}
    starts = 0
    while running:
        for query, started in list(running.items()):
            error = None if started.isActive else started.exception()
            if error is not None and ("connect back" not in str(error) or starts == STARTS_MAX):
                raise error
            if error is not None:
                starts += 1
                running[query] = start(spark, query, places)
            elif not started.isActive:
                del running[query]
        threading.Event().wait(POLL_SECONDS)


def results(spark: SparkSession, places: dict[str, Any]) -> dict[str, Any]:
    where = udf(lambda _: __import__("bolide").__file__, useArrow=False)
    source = spark.read.format("rocketmq").option("nameserver", places["nameserver"])
    rows = spark.read.parquet(f"{places['folder']}/rows").selectExpr("split(body, ' ')[0] AS number")
    return {
        "count": source.option("subscribe", places["source"]).load().count(),
        "rows": [int(row.number) for row in rows.collect()],
        "bolide": sorted({row[0] for row in spark.range(8).select(where("id")).collect()}),
    }


def main() -> None:
    places = json.loads(sys.argv[1])
    folder = Path(places["folder"])
    (folder / "driver.pid").write_text(str(os.getpid()))
    spark = SparkSession.builder.appName("cluster").getOrCreate()
    run(spark, places)
    (folder / "results.json").write_text(json.dumps(results(spark, places)))
    spark.stop()


if __name__ == "__main__":
    main()
