"""A streaming query in a process of its own, for tests that kill it.  Not a test.

    sink_query.py NAMESERVER INPUT CHECKPOINT TOPIC [kill]

Writes the lines of the files in INPUT, a file per batch.  With `kill`, the Python worker of one task of the first
batch kills itself when some of the batch is stored, and the whole query is killed in the middle of the second batch.
"""

import os
import signal
import sys
from collections.abc import Callable

from pyspark import TaskContext
from pyspark.sql.functions import udf

from bolide import PullConsumer
from bolide.pipeline.session import local_session
from bolide.pipeline.stream_writer import BATCH_ID
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

DEADLY_ROW = 2000
"""Of about 2500 in each of two tasks."""


def stored(nameserver: str, topic: str) -> int:
    with PullConsumer(nameserver) as consumer:
        return sum(consumer.max_offset(queue) for queue in consumer.queues(topic))


def hurting(nameserver: str, topic: str, query: list[int]) -> Callable[[str], str]:
    """Hands texts on, and kills when most of a task's are through and more than before is stored."""
    seen: dict[
        int, tuple[int, int]
    ] = {}  # of each task: how many it has had, and how many were stored before

    def hand_on(text: str) -> str:
        task = TaskContext.get()
        assert task is not None
        batch = int(task.getLocalProperty(BATCH_ID) or 0)
        if task.partitionId() == 0 and (batch == 1 or (batch == 0 and task.attemptNumber() == 0)):
            count, before = seen.get(task.taskAttemptId()) or (0, stored(nameserver, topic))
            seen[task.taskAttemptId()] = count + 1, before
            if count == DEADLY_ROW:
                wait_until(lambda: stored(nameserver, topic) > before, PATIENCE_SECONDS, "nothing is stored")
                for process in query if batch == 1 else [os.getpid()]:
                    os.kill(process, signal.SIGKILL)
        return text

    return hand_on


def main(nameserver: str, folder: str, checkpoint: str, topic: str, *kill: str) -> None:
    spark = local_session(
        "sink",
        master="local[2,4]",
        settings={"spark.sql.shuffle.partitions": "2", "spark.sql.execution.arrow.maxRecordsPerBatch": "50"},
    )
    frame = spark.readStream.option("maxFilesPerTrigger", 1).text(folder).repartition(2)
    if kill:
        java = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
        hurt = udf(hurting(nameserver, topic, [java, os.getpid()]), useArrow=False).asNondeterministic()
        frame = frame.withColumn("value", hurt("value"))
    query = (
        frame.selectExpr("value as body", "split(value, ' ')[0] as keys")
        .writeStream.format("rocketmq")
        .option("nameserver", nameserver)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sys.stdout.write("DONE\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
