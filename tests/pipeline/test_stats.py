"""`bolide.pipeline.stats` in a real Spark: known messages give known figures, from frames, brokers and stores."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark import Accumulator
from pyspark.sql import DataFrame, SparkSession

from bolide import Message, MessageQueue, Producer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import create_topic
from bolide.model.errors import NothingFound, RouteNotFound
from bolide.model.topic import TopicConfig
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.place import open_or_make
from bolide.pipeline.schema import native_schema
from bolide.pipeline.stats.figures import Report, Spread
from bolide.pipeline.stats.page import report_page
from bolide.pipeline.stats.report import Asked, StatsFailed, Wish, make_report
from bolide.pipeline.stats.sources import (
    COLUMNS,
    ArchiveSource,
    ClusterSource,
    Queues,
    Source,
    Span,
    StoreSource,
)
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS
from tests.pipeline.archive_rows import FIRST_DAY_MS, message, opened, rows
from tests.pipeline.conftest import ORDERS
from tests.unit.pipeline.stats.samples import Page

pytestmark = pytest.mark.needs("java")

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOON_MS = 1_769_860_800_000
HOUR_MS = 3_600_000
HOSTILE = "<script>alert(1)</script>"


@dataclass(frozen=True)
class Rows:
    """Messages as they are written here."""

    rows: Sequence[dict[str, Any]]
    topics: Sequence[str] = ()
    reads: "Accumulator[int] | None" = None
    """Counts what is read."""

    def __str__(self) -> str:
        return "rows of a test"

    async def queues(self) -> Queues:
        return {}

    def frame(self, spark: SparkSession, span: Span) -> DataFrame:
        rows = spark.sparkContext.parallelize([tuple(row[name] for name in COLUMNS) for row in self.rows])
        counted = rows if self.reads is None else rows.map(_counting(self.reads))
        return spark.createDataFrame(counted, native_schema(COLUMNS))


def _counting(reads: "Accumulator[int]") -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """A function of its own, which Spark sends as it is: its workers may not find this module."""

    def counted(row: tuple[Any, ...]) -> tuple[Any, ...]:
        reads.add(1)
        return row

    return counted


def row(
    second: float, *, latency_ms: int = 5, size: int = 10, queue: int = 0, **other: Any
) -> dict[str, Any]:
    stored = NOON + timedelta(seconds=second)
    return {
        "topic": "orders",
        "brokerName": "broker-a",
        "queueId": queue,
        "body": bytes(size),
        "bodyError": None,
        "tags": None,
        "keys": [],
        "bornTimestamp": stored - timedelta(milliseconds=latency_ms),
        "storeTimestamp": stored,
        "reconsumeTimes": 0,
        "sysFlag": 0,
        **other,
    }


def report_of(
    spark: SparkSession, source: Source, wish: Wish | None = None, queues: Queues | None = None
) -> Report:
    return make_report(spark, source, wish or Wish(), Asked(queues or {}), now_ms=NOON_MS)


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> Report:
    """A hundred messages in two minutes, most of them in one queue and with one key; then one of every odd kind, and
    another topic with large values."""
    rows = [
        row(
            second * 1.2,
            latency_ms=second,
            size=second + 1,
            queue=0 if second % 10 else 1,
            keys=["all", f"k{second}", "all"],
            tags="PAID" if second % 4 == 0 else "OPEN",
        )
        for second in range(100)
    ]
    rows += [
        row(0, latency_ms=-70, sysFlag=1, reconsumeTimes=2, bodyError="not packed"),
        row(0, storeTimestamp=None, bornTimestamp=None),
        row(0, topic=None, brokerName=None, queueId=None, bodyError="no record"),
    ]
    rows += [row(0, latency_ms=number**3, size=100_000, topic="large") for number in range(1, 1001)]
    queues = {"orders": [("broker-a", number) for number in range(4)]}
    return report_of(spark, Rows(rows, ["orders", "large"]), Wish(window_ms=60_000, top=2), queues)


def test_known_messages_give_known_figures(known: Report) -> None:
    topic = known.topics[0]
    assert (topic.topic, topic.messages, topic.bytes, known.damaged) == ("orders", 102, 5050 + 20, 1)
    assert (topic.packed, topic.bad_bodies, topic.retried, topic.untimed, topic.negative) == (1, 1, 1, 1, 1)
    assert (topic.latency_min, topic.keyed, topic.tagged) == (-70, 100, 100)
    assert (topic.first_ms, topic.last_ms) == (NOON_MS, NOON_MS + 118_800)
    assert topic.latency is not None
    assert topic.latency.p50 == 49.5
    assert topic.latency.p99 == pytest.approx(98, rel=0.01)
    assert topic.latency.max == 99
    assert [(queue.queue, queue.messages) for queue in topic.queues] == [(0, 92), (1, 10), (2, 0), (3, 0)]
    assert topic.skew == pytest.approx(92 * 4 / 102)
    assert topic.verdict == "skewed"
    assert (topic.keys_there, topic.tags_there) == (101, 2)
    assert [(key.name, key.messages) for key in topic.keys] == [("all", 100), ("k0", 1)]
    assert [(tag.name, tag.messages) for tag in topic.tags] == [("OPEN", 75), ("PAID", 25)]
    assert [(size.low, size.high, size.messages) for size in topic.sizes] == [
        *((1, 2, 1), (2, 4, 2), (4, 8, 4), (8, 16, 10), (16, 32, 16), (32, 64, 32), (64, 128, 37))
    ]


def test_windows_have_their_own_latencies_skew_and_hottest_key(known: Report) -> None:
    first, second = known.topics[0].windows
    assert (first.start_ms, first.messages, first.negative, first.hot_key_messages) == (NOON_MS, 51, 1, 50)
    assert (second.start_ms, second.messages, second.hot_key) == (NOON_MS + 60_000, 50, "all")
    assert second.latency is not None
    assert second.latency.p50 == pytest.approx(74.5, rel=0.01)
    assert second.latency.p99 == pytest.approx(98.5, rel=0.01)
    assert second.latency.max == 99
    assert second.skew == pytest.approx(45 * 4 / 50)


def test_percentiles_of_large_values_are_within_one_percent_and_never_beyond_the_largest(
    known: Report,
) -> None:
    topic = known.topics[1]
    assert topic.latency is not None
    assert topic.latency.p50 == pytest.approx(500.5**3, rel=0.011)
    assert topic.latency.p99 == pytest.approx(990**3, rel=0.011)
    assert topic.latency.max == 1000**3
    assert topic.size == Spread(100_000, 100_000, 100_000)


def test_hostile_times_and_names_make_a_report_and_a_page_as_any_others_in_one_read(
    spark: SparkSession,
) -> None:
    first, last = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
    rows = [
        row(0, storeTimestamp=first, bornTimestamp=last, tags=HOSTILE, keys=[HOSTILE, "", "x" * 5000]),
        row(0, storeTimestamp=last, bornTimestamp=first, topic=HOSTILE, brokerName=HOSTILE),
        row(0, body=None, keys=None),
    ]
    reads = spark.sparkContext.accumulator(0)
    report = report_of(spark, Rows(rows, reads=reads), Wish(window_ms=1000))
    assert reads.value == len(rows)
    assert sum(topic.messages for topic in report.topics) == 3
    (note,) = report.notes
    assert "of 1 s there would be more than 1000" in note
    assert sum(len(topic.windows) for topic in report.topics) == 3
    assert all(len(key.name) <= 256 for topic in report.topics for key in topic.keys)
    assert Page(report_page(report)).of("script") == []


def test_topics_of_brokers_are_read_with_all_their_queues(
    spark: SparkSession, server: EmbeddedServer
) -> None:
    """One queue of four has nearly everything; another topic has nothing."""
    topics = ["stats-skewed", "stats-empty"]
    asyncio.run(_create(server, topics))
    with Producer(server.nameserver, group="stats", timeout_ms=PATIENCE_MS) as producer:
        for number in range(40):
            queue = MessageQueue(topics[0], "broker-a", 3 if number else 0)
            producer.send(
                Message(topics[0], b"%4d" % number, keys=["hot"] if number % 2 else []), queue=queue
            )
    source = ClusterSource(ClusterAccess(server.nameserver), topics)
    report = report_of(spark, source, queues=asyncio.run(source.queues()))
    skewed, empty = report.topics
    assert [queue.messages for queue in skewed.queues] == [1, 0, 0, 39]
    assert (skewed.messages, skewed.bytes, skewed.verdict) == (40, 160, "skewed")
    assert [(key.name, key.messages, key.share) for key in skewed.keys] == [("hot", 20, 0.5)]
    assert sum(window.messages for window in skewed.windows) == 40
    assert (empty.messages, empty.windows, empty.rate, len(empty.queues)) == (0, [], None, 4)
    assert empty.verdict == "no messages"
    last_ms = skewed.last_ms or 0
    later = report_of(spark, source, Wish(Span(last_ms + 60_000, last_ms + 120_000), top=0))
    assert [topic.messages for topic in later.topics] == [0, 0]
    assert (later.topics[0].keys, later.topics[0].keys_there) == ([], None)


def test_a_store_gives_the_report_that_its_broker_gives(spark: SparkSession, server: EmbeddedServer) -> None:
    """The one of the store has all topics, over a span of their own: both are given the same window."""
    sources = ClusterSource(ClusterAccess(server.nameserver), ["orders"]), StoreSource(str(server.data_dir))
    of_broker, of_store = [
        report_of(spark, source, Wish(window_ms=HOUR_MS), asyncio.run(source.queues())) for source in sources
    ]
    (orders,) = of_broker.topics
    assert (orders.messages, orders.packed, orders.keys[0].messages) == (ORDERS + 1, 1, ORDERS)
    assert orders in of_store.topics


def test_an_archive_gives_a_report_of_what_is_archived_in_the_span(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    messages = [message(at, queue=at % 2) for at in range(10)] + [message(0, topic="payments")]
    opened(place).append(rows(spark, messages))
    source = ArchiveSource(str(place.folder))
    report = report_of(spark, source, Wish(top=0), asyncio.run(source.queues()))
    assert {topic.topic: (topic.messages, len(topic.queues)) for topic in report.topics} == {
        "orders": (10, 2),
        "payments": (1, 1),
    }
    source = ArchiveSource(str(place.folder), ["orders"])
    span = Span(FIRST_DAY_MS + 2000, FIRST_DAY_MS + 5000)
    (orders,) = report_of(spark, source, Wish(span, top=0), asyncio.run(source.queues())).topics
    assert (orders.topic, orders.messages) == ("orders", 3)
    with pytest.raises(NothingFound, match="has no topic ordres; it has orders, payments"):
        asyncio.run(ArchiveSource(str(place.folder), ["ordres"]).queues())


def test_topics_that_are_not_there_are_told_before_spark_starts(server: EmbeddedServer) -> None:
    with pytest.raises(RouteNotFound, match="did you mean orders"):
        asyncio.run(ClusterSource(ClusterAccess(server.nameserver), ["ordres"]).queues())
    with pytest.raises(NothingFound, match="has no topic ordres"):
        asyncio.run(StoreSource(str(server.data_dir), ["orders", "ordres"]).queues())


def test_what_spark_cannot_read_is_one_error_in_plain_words(spark: SparkSession) -> None:
    with pytest.raises(StatsFailed, match=r"127\.0\.0\.1:1") as failed:
        report_of(spark, ClusterSource(ClusterAccess("127.0.0.1:1"), ["orders"]))
    assert "\n" not in str(failed.value)


def test_the_command_writes_json_a_page_tables_and_the_history_of_lag(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    program = [sys.executable, "-m", "bolide.cli.main"]
    at = ["-n", server.nameserver]
    for words in (
        ["group", "create", "stats-readers"],
        ["group", "reset", "stats-readers", "--topic", "orders", "--to", "earliest", "--yes"],
    ):
        subprocess.run([*program, *words, *at], check=True, capture_output=True)
    words = [
        "pipeline",
        "stats",
        "orders",
        "--group",
        "stats-readers",
        "--lag-history",
        "lag.jsonl",
        "--json",
    ]
    words += [
        "--html",
        "report.html",
        "--parquet",
        "tables",
        "--window",
        "1 hour",
        "--master",
        "local[2]",
        *at,
    ]
    (tmp_path / "lag.jsonl").write_text(
        json.dumps({"at_ms": 1, "group": "stats-readers", "topic": "orders", "behind": 7, "waits_ms": 9})
        + "\n"
    )
    done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (topic,) = told["topics"]
    assert (topic["messages"], told["window_ms"]) == (ORDERS + 1, 3_600_000)
    (lag,) = told["lag"]
    assert (lag["group"], lag["topic"], lag["behind"]) == ("stats-readers", "orders", ORDERS + 1)
    assert lag["waits_ms"] > 0
    assert [sample["behind"] for sample in told["lag_history"]] == [7, ORDERS + 1]
    assert len((tmp_path / "lag.jsonl").read_text().splitlines()) == 2
    assert f"{ORDERS + 1:,}" in Page((tmp_path / "report.html").read_text()).words
    assert pq.read_table(tmp_path / "tables" / "topics.parquet").column("messages").to_pylist() == [
        ORDERS + 1
    ]


async def _create(server: EmbeddedServer, topics: Sequence[str]) -> None:
    async with AdminConnection(server.nameserver) as servers:
        for topic in topics:
            await create_topic(servers, TopicConfig(topic, read_queues=4, write_queues=4))
