"""The second half of `make demo`: a declared pipeline, an archive with its audit, and a report, on one Spark.

Each step is what a command of `bolide pipeline` does; here they share a session, because starting one takes longer than
the work.
"""

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.audit import ask_stored, compared, prove
from bolide.pipeline.archive.place import open_or_make
from bolide.pipeline.archive.read import committed
from bolide.pipeline.archive.run import run_archive
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.run import run
from bolide.pipeline.stats.page import write_page
from bolide.pipeline.stats.report import Asked, Wish, make_report
from bolide.pipeline.stats.sources import ClusterSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP = "receipts"
PIPELINE = """\
name: demo
nameserver: {nameserver}
checkpoint: checkpoint

sources:
  orders: {{topic: orders, options: {{startingOffsets: earliest, consumerGroup: receipts}}}}

steps:
  paid:
    sql: |
      SELECT keys, get_json_object(cast(body AS string), '$.city') AS city,
             cast(get_json_object(cast(body AS string), '$.amount') AS double) AS amount
      FROM orders WHERE tags = 'paid'
    expect:
      worth_it: {{condition: amount >= 1, action: quarantine}}
  receipts:
    sql: SELECT to_json(struct(city, amount)) AS body, 'receipt' AS tags, keys FROM paid

sinks:
  table: {{from: paid, format: parquet, path: paid, partition_by: [city]}}
  topic: {{from: receipts, topic: receipts}}

quarantine: {{path: put-aside}}
"""


def stream(spark: "SparkSession", nameserver: str, folder: Path) -> tuple[int, int, int]:
    """Rows in Parquet, messages in the topic, rows put aside: `bolide pipeline run FILE --once`."""
    file = folder / "orders.yaml"
    file.write_text(PIPELINE.format(nameserver=nameserver))
    definition = load(file).definition
    assert definition is not None
    run(definition, spark, Checkpoint.of(definition), now_ms=_now_ms, once=True)
    receipts = spark.read.format("rocketmq").options(nameserver=nameserver, subscribe="receipts").load()
    aside = spark.read.parquet(str(folder / "put-aside" / "paid"))
    return spark.read.parquet(str(folder / "paid")).count(), receipts.count(), aside.count()


def archive(spark: "SparkSession", nameserver: str, folder: Path, topics: list[str]) -> int:
    """How many messages: `bolide pipeline archive TOPIC… --to DIR --once`."""
    place = open_or_make(folder / "archive")
    wanted = Wanted(topics, ClusterAccess(nameserver), trigger="1 second", once=True)
    done = run_archive(spark, place, Checkpoint(str(folder / "archiving")), wanted, now_ms=_now_ms)
    return sum(added.rows for added in done.added.values())


def audit(spark: "SparkSession", nameserver: str, folder: Path, topic: str) -> bool:
    """Stored = archived = consumed?  `bolide pipeline audit TOPIC --archive DIR --group GROUP --deep`."""
    place = open_or_make(folder / "archive")
    cluster = ClusterAccess(nameserver)
    stored = asyncio.run(ask_stored(cluster, [topic], GROUP))
    state = committed(place)
    queues = compared(stored, state, [topic], has_group=True)
    return prove(spark, place, state, queues, topics=[topic], deep=stored, cluster=cluster).is_equal


def report(spark: "SparkSession", nameserver: str, file: Path, topics: list[str]) -> None:
    """`bolide pipeline stats TOPIC… --html FILE`."""
    source = ClusterSource(ClusterAccess(nameserver), topics)
    asked = Asked(asyncio.run(source.queues()))
    write_page(make_report(spark, source, Wish(), asked, _now_ms()), file)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
