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


def run(spark: SparkSession, query: str, places: dict[str, Any]) -> None:
    """To the end of what is there, from the checkpoint.

    Spark gives the Python beside a stream ten seconds to start: on a machine that is too busy it is begun again.
    """
    frame = stream(spark, query, places)
    writing = frame.writeStream.option("checkpointLocation", f"{places['folder']}/{query}-checkpoint")
    if query == "topic":
        writing = writing.format("rocketmq").option("nameserver", places["nameserver"])
        writing = writing.option("topic", places["sink"])
    else:
        writing = writing.format("parquet").option("path", f"{places['folder']}/rows")
    for left in reversed(range(STARTS_MAX)):
        try:
            writing.trigger(availableNow=True).start().awaitTermination()
            return
        except Exception as error:
            if "worker failed to connect back" not in str(error) or not left:
                raise


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
    failed: list[BaseException] = []

    def run_one(query: str) -> None:
        try:
            run(spark, query, places)
        except BaseException as error:
            failed.append(error)

    queries = [threading.Thread(target=run_one, args=(query,)) for query in ("parquet", "topic")]
    for query in queries:
        query.start()
    for query in queries:
        query.join()
    if failed:
        raise failed[0]
    (folder / "results.json").write_text(json.dumps(results(spark, places)))
    spark.stop()


if __name__ == "__main__":
    main()
