"""What an older PySpark can do with topics, tried on a real one: `python -m tests.pipeline.older_spark`.

Run it with a Python that has that version (docs/spark.md says how); it is no test of the suite, because another PySpark
is a download of 400 MB.
"""

import sys
import tempfile
from pathlib import Path

import pyspark
from pyspark.errors import PySparkException

from bolide import Message, Producer
from bolide.model.errors import BolideError
from bolide.pipeline.session import local_session
from bolide.testing import EmbeddedServer

COUNT = 100


def main() -> None:
    version = tuple(map(int, pyspark.__version__.split(".")[:2]))
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(data_dir=f"{folder}/store") as server:
        with Producer(server.nameserver, group="shop") as producer:
            producer.send_batch([Message("old", b"order %d" % number, tags="T") for number in range(COUNT)])
        spark = local_session(master="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
        options = {"nameserver": server.nameserver, "subscribe": "old"}
        frame = spark.read.format("rocketmq").options(**options).load()
        _say("read", frame.where("tags = 'T'").count() == COUNT)
        target = {"nameserver": server.nameserver, "topic": "new"}
        frame.select("body", "tags").write.format("rocketmq").mode("append").options(**target).save()
        options["subscribe"] = "new"
        _say("write", spark.read.format("rocketmq").options(**options).load().count() == COUNT)
        stored = spark.read.format("rocketmq-store").option("topic", "old").load(f"{folder}/store")
        _say("store files", stored.count() == COUNT)
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        pushing = spark.read.format("rocketmq").options(**options, pushFilters="true").load()
        _say("filters", pushing.where("queueOffset < 0").count() == 0)
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
        _say("stream of topics", _stream_reads(spark, options, Path(folder)) == (version >= (4, 2)))
        _say("stream to topics", _stream_writes(spark, target, Path(folder)) == (version >= (4, 1)))
        spark.stop()


def _stream_reads(spark: "pyspark.sql.SparkSession", options: dict[str, str], folder: Path) -> bool:
    stream = spark.readStream.format("rocketmq").options(**options, startingOffsets="earliest").load()
    return _runs(stream, "parquet", {"path": str(folder / "out")}, folder / "read")


def _stream_writes(spark: "pyspark.sql.SparkSession", target: dict[str, str], folder: Path) -> bool:
    (folder / "texts").mkdir()
    (folder / "texts" / "one.txt").write_text("a\nb\n")
    stream = spark.readStream.format("text").load(str(folder / "texts"))
    return _runs(stream.selectExpr("value AS body"), "rocketmq", target, folder / "write")


def _runs(stream: "pyspark.sql.DataFrame", kind: str, options: dict[str, str], checkpoint: Path) -> bool:
    writer = stream.writeStream.format(kind).options(**options)
    try:
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
    except (PySparkException, BolideError) as error:
        sys.stdout.write(f"  refused: {' '.join(str(error).split())[:400]}\n")
        return False
    return True


def _say(what: str, is_right: bool) -> None:
    sys.stdout.write(f"{what}: {'as expected' if is_right else 'WRONG'} on {pyspark.__version__}\n")
    assert is_right, what


if __name__ == "__main__":
    main()
