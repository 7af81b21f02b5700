"""The table: which figure of which workload stands in which row, and the bar that it has to clear.

A later issue adds a workload to WORKLOADS (or a runner of its own in `run.py`) and its rows to ROWS.
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.bench import breadth, durable, features, pending, rolls, workloads
from tests.bench.attacks.kinds import ATTACKS
from tests.bench.bare import measure as bare
from tests.bench.callbacks.kinds import KINDS
from tests.bench.scale import Scale
from tests.bench.sides import ASYNC_FLUSH, KAFKA, THEIRS, Side
from tests.bench.workloads import Figures

Workload = Callable[[Side, Scale], Figures]

# In the order in which a round runs them, on each side.
WORKLOADS: dict[str, Workload] = {
    "sync64": workloads.sync_64_threads,
    "sync1": workloads.sync_1_thread,
    "async": workloads.async_1024_in_flight,
    "batch": workloads.batches_of_32,
    "batch_many": workloads.batches_of_32_from_many,
    "consume": workloads.push_consume,
    "latency": workloads.send_to_listener,
    "memory": workloads.memory_after_all_runs,
}
# On both sides, each on a fresh server with these settings.
FRESH_WORKLOADS: dict[str, tuple[Mapping[str, str], Workload]] = {
    "flush64": ({"flushDiskType": "SYNC_FLUSH"}, durable.flushed_64_threads),
    "recovery": (ASYNC_FLUSH, durable.start_after_kill),
    "query": (ASYNC_FLUSH, durable.query_by_key),
    "rolls": (rolls.SETTINGS, rolls.segment_rolls),
    "rolls_topics": (rolls.SETTINGS, rolls.segment_rolls_while_topics_come_and_go),
    "tags": (features.FILTERS, features.consume_by_tag),
    "span": (features.FILTERS, features.consume_by_tag_unhindered),
    "sql": (features.FILTERS, features.consume_by_sql),
    "span_sql": (features.FILTERS, features.consume_by_sql_unhindered),
    "order": (ASYNC_FLUSH, features.consume_in_order),
    "transactions": (ASYNC_FLUSH, features.send_in_transactions),
    "levels": (ASYNC_FLUSH, features.send_with_a_level),
    "times": (ASYNC_FLUSH, features.send_with_a_time),
    "late_levels": (ASYNC_FLUSH, features.lateness_of_levels),
    "late_times": (ASYNC_FLUSH, features.lateness_of_times),
    "bare_batch": (ASYNC_FLUSH, bare.send_batches),
    "bare_pull": (ASYNC_FLUSH, bare.pull_all),
    "bare_tags": (features.FILTERS, bare.pull_by_tag),
    "bare_sql": (features.FILTERS, bare.pull_by_sql),
}
# On our side only, each on a fresh server.
OWN_WORKLOADS: dict[str, Workload] = {
    "breadth": breadth.many_topics_and_connections,
    "pending": pending.many_that_wait,
}
START = "start"
CALLBACKS = "callbacks"
ATTACKED = "attacks"
SPARK = "spark"
CLIENTS = "clients"
KEYS = (*WORKLOADS, START, *FRESH_WORKLOADS, *OWN_WORKLOADS, CALLBACKS, ATTACKED, SPARK, CLIENTS)


@dataclass(frozen=True)
class Bar:
    """What must hold of our figure; `relative` bars look at ours divided by theirs instead."""

    text: str
    relative: bool
    holds: Callable[[float], bool]


@dataclass(frozen=True)
class Row:
    """One line of a table; `digits` says how its figures are rounded, `peer` whose stand beside ours."""

    workload: str
    figure: str
    title: str
    unit: str
    digits: int = 0
    bar: Bar | None = None
    peer: str = THEIRS


def ratio_at_least(limit: float) -> Bar:
    return Bar(f"at least {limit:g} x", True, lambda ratio: ratio >= limit)


def ratio_at_most(limit: float) -> Bar:
    return Bar(f"at most {limit:g} x", True, lambda ratio: ratio <= limit)


def below_theirs() -> Bar:
    return Bar("below Apache's", True, lambda ratio: ratio < 1)


def below(limit: float, unit: str) -> Bar:
    return Bar(f"under {limit:g} {unit}", False, lambda ours: ours < limit)


def at_most(limit: float, unit: str) -> Bar:
    return Bar(f"at most {limit:g} {unit}", False, lambda ours: ours <= limit)


def at_least(limit: float) -> Bar:
    return Bar(f"at least {limit:g}", False, lambda ours: ours >= limit)


def _rolls(workload: str, title: str) -> tuple[Row, ...]:
    """What a client that waits for each answer sees: it is the rare long one that it notices."""
    return (
        Row(workload, "per_second", f"{title}: sync send, 64 threads", "msg/s"),
        Row(workload, "p99_ms", f"{title}: p99", "ms", 2),
        Row(workload, "p999_ms", f"{title}: p99.9", "ms", 2, below_theirs()),
        Row(workload, "max_ms", f"{title}: longest", "ms", 1, below_theirs()),
    )


def _late(workload: str, title: str) -> tuple[Row, ...]:
    return (
        Row(workload, "p50_ms", f"{title}: lateness, p50", "ms", 1),
        Row(workload, "p99_ms", f"{title}: lateness, p99", "ms", 1, below(200, "ms")),
        Row(workload, "max_ms", f"{title}: lateness, longest", "ms", 1),
        Row(workload, "too_soon", f"{title}: came before their time", "messages", 0, at_most(0, "messages")),
    )


def _bare(workload: str, title: str, at_least_ratio: float) -> tuple[Row, ...]:
    """The same bar as that of the Java client's row, of which the client has most of the machine."""
    return (
        Row(workload, "per_second", f"bare sockets: {title}", "msg/s", bar=ratio_at_least(at_least_ratio)),
        Row(workload, "cpu_us", f"bare sockets: broker CPU per message, {title}", "µs", 2),
    )


def _attacked(key: str, title: str) -> tuple[Row, ...]:
    """What 64 honest senders notice, and what the server is made to keep."""
    return (
        Row(ATTACKED, f"{key}_p99_ms", f"under attack, {title}: sync send, 64 threads, p99", "ms", 2),
        Row(
            ATTACKED,
            f"{key}_times",
            f"under attack, {title}: times the p99 before it",
            "x",
            1,
            at_most(5, "x"),
        ),
        Row(ATTACKED, f"{key}_mb", f"under attack, {title}: more memory", "MB", bar=at_most(256, "MB")),
    )


def _of_spark(figure: str, title: str, at_least_ratio: float) -> Row:
    return Row(SPARK, figure, f"Spark: {title}", "rows/s", bar=ratio_at_least(at_least_ratio), peer=KAFKA)


def _of_clients(figure: str, title: str, at_least_ratio: float, peer: str = KAFKA) -> tuple[Row, ...]:
    return (
        Row(*(CLIENTS, figure, f"Python: {title}", "msg/s"), bar=ratio_at_least(at_least_ratio), peer=peer),
        Row(CLIENTS, f"{figure}_cpu_us", f"Python: {title}, client's CPU per message", "µs", 2, peer=peer),
    )


ROWS = (
    Row("sync64", "per_second", "sync send, 64 threads", "msg/s", bar=ratio_at_least(1.8)),
    Row("sync64", "p50_ms", "sync send, 64 threads, p50", "ms", 2),
    Row("sync64", "p99_ms", "sync send, 64 threads, p99", "ms", 2),
    Row("sync64", "p999_ms", "sync send, 64 threads, p99.9", "ms", 2),
    Row("sync64", "max_ms", "sync send, 64 threads, longest", "ms", 1),
    Row("sync64", "cpu_us", "broker CPU per message, sync send, 64 threads", "µs", 1),
    Row("sync1", "per_second", "sync send, 1 thread", "msg/s"),
    Row("sync1", "p50_ms", "sync send, 1 thread, p50", "ms", 3),
    Row("sync1", "p99_ms", "sync send, 1 thread, p99", "ms", 3),
    Row("sync1", "cpu_us", "broker CPU per message, sync send, 1 thread", "µs", 1),
    Row("async", "per_second", "async send, 1,024 in flight", "msg/s", bar=ratio_at_least(2.0)),
    Row("async", "p99_ms", "async send, 1,024 in flight, p99", "ms", 2),
    Row("async", "cpu_us", "broker CPU per message, async send", "µs", 1, ratio_at_most(0.2)),
    Row(
        "batch",
        "per_second",
        "batches of 32 from 4 threads, stored as separate records",
        "msg/s",
        bar=ratio_at_least(2.5),
    ),
    Row("batch", "cpu_us", "broker CPU per message, batches of 32", "µs", 2),
    Row("batch_many", "per_second", "batches of 32 from 32 threads", "msg/s", bar=ratio_at_least(2.5)),
    Row("batch_many", "p99_ms", "batches of 32 from 32 threads, p99", "ms", 2),
    Row("batch_many", "cpu_us", "broker CPU per message, batches of 32 from 32 threads", "µs", 2),
    Row("consume", "per_second", "push consume of stored messages", "msg/s", bar=ratio_at_least(1.3)),
    Row("consume", "cpu_us", "broker CPU per message, push consume", "µs", 2),
    Row("latency", "p50_ms", "send to listener at 100 msg/s, p50", "ms", 3, below_theirs()),
    Row("latency", "p99_ms", "send to listener at 100 msg/s, p99", "ms", 3, below_theirs()),
    Row("memory", "rss_anon_mb", "server's own memory (RssAnon) after all runs", "MB", bar=below(150, "MB")),
    Row(START, "seconds", "process start to first acknowledged send", "s", 2, below(1.5, "s")),
    Row("flush64", "per_second", "SYNC_FLUSH send, 64 threads", "msg/s", bar=ratio_at_least(1.5)),
    Row("flush64", "p50_ms", "SYNC_FLUSH send, 64 threads, p50", "ms", 2),
    Row("flush64", "p99_ms", "SYNC_FLUSH send, 64 threads, p99", "ms", 2),
    Row("flush64", "cpu_us", "broker CPU per message, SYNC_FLUSH send", "µs", 1),
    Row("recovery", "seconds", "kill -9 to first acknowledged send", "s", 2, below_theirs()),
    Row("query", "p50_ms", "query by key, p50", "ms", 2, below(5, "ms")),
    Row("query", "p99_ms", "query by key, p99", "ms", 2),
    *_rolls("rolls", "ten segment rolls"),
    *_rolls("rolls_topics", "ten segment rolls while topics come and go"),
    Row(
        *("tags", "per_second", "push consume, a tag keeps 1 in 10: messages looked at", "msg/s"),
        bar=ratio_at_least(1.5),
    ),
    Row("tags", "cpu_us", "broker CPU per message looked at, tag", "µs", 2),
    Row(
        *(
            "span",
            "per_second",
            "the same, client's span 65,535 instead of 2,000: messages looked at",
            "msg/s",
        ),
        bar=ratio_at_least(1.5),
    ),
    Row(
        *("sql", "per_second", "push consume, SQL keeps 1 in 10: messages looked at", "msg/s"),
        bar=ratio_at_least(1.5),
    ),
    Row(
        *("span_sql", "per_second", "the same with the wider span: messages looked at", "msg/s"),
        bar=ratio_at_least(1.5),
    ),
    Row("span", "cpu_us", "broker CPU per message looked at, the same with the wider span", "µs", 2),
    Row("sql", "cpu_us", "broker CPU per message looked at, SQL", "µs", 2),
    Row("span_sql", "cpu_us", "broker CPU per message looked at, SQL with the wider span", "µs", 2),
    Row("order", "per_second", "ordered push consume", "msg/s", bar=ratio_at_least(1.5)),
    Row("transactions", "per_second", "transactional send, 64 threads", "msg/s", bar=ratio_at_least(1.5)),
    Row("transactions", "p99_ms", "transactional send, 64 threads, p99", "ms", 2),
    Row("transactions", "cpu_us", "broker CPU per transaction", "µs", 1),
    Row("levels", "per_second", "delayed send (a level), 64 threads", "msg/s", bar=ratio_at_least(1.5)),
    Row("times", "per_second", "delayed send (a time), 64 threads", "msg/s", bar=ratio_at_least(1.5)),
    Row("levels", "cpu_us", "broker CPU per delayed message (a level)", "µs", 1),
    Row("times", "cpu_us", "broker CPU per delayed message (a time)", "µs", 1),
    *_late("late_levels", "1,000 due per second, by level"),
    *_late("late_times", "1,000 due per second, by time"),
    *_bare("bare_batch", "batches of 32, until readers see them", 2.5),
    Row("bare_batch", "acknowledged_per_second", "bare sockets: batches of 32, until acknowledged", "msg/s"),
    *_bare("bare_pull", "pull of stored messages", 1.3),
    *_bare("bare_tags", "pull, a tag keeps 1 in 10: looked at", 1.5),
    *_bare("bare_sql", "pull, SQL keeps 1 in 10: looked at", 1.5),
    Row(
        "breadth",
        "after_over_before",
        "many topics, idle connections: throughput after / before",
        "x",
        2,
        at_least(0.8),
    ),
    Row("breadth", "rss_anon_mb", "many topics, idle connections: RssAnon", "MB", bar=below(300, "MB")),
    Row(
        *(
            "breadth",
            "queue_disk_kb_per_queue",
            "many topics: disk per consume queue (4 records each)",
            "kB",
            1,
        ),
        bar=below(8.5, "kB: one or two blocks, not 6 MB"),
    ),
    Row("breadth", "disk_mb", "many topics: disk in all, with the preallocated log segments", "MB"),
    Row(
        *("pending", "after_over_before", "very many timed messages wait: timed send after / before", "x", 2),
        bar=at_least(0.8),
    ),
    Row("pending", "rss_anon_mb", "very many timed messages wait: RssAnon", "MB", bar=below(250, "MB")),
    Row(
        *("pending", "restart_seconds", "very many timed messages wait: start to first acknowledged send"),
        *("s", 2),
        bar=below(10, "s"),
    ),
    *(
        Row(CALLBACKS, key, f"longest callback: {title}", "ms", 1, below(20, "ms"))
        for key, title in KINDS.items()
    ),
    *itertools.chain.from_iterable(_attacked(key, attack.title) for key, attack in ATTACKS.items()),
    _of_spark("noop", "a topic to noop, all columns", 2.5),
    _of_spark("parquet", "a topic to Parquet, all columns", 1.5),
    _of_spark("kafka_noop", "a topic to noop, Kafka's columns on both sides", 2.5),
    _of_spark("kafka_columns", "a topic to Parquet, Kafka's columns on both sides", 2.0),
    _of_spark("stream", "a stream (AvailableNow) to Parquet", 1.5),
    _of_spark("store", "store files to noop, beside a topic of Kafka's", 2.0),
    _of_spark("write", "rows to a topic", 1.5),
    Row(
        *(SPARK, "growth", "Spark: cost of a row to noop, 20 times the messages / once", "x", 2),
        bar=at_most(1.15, "x"),
        peer=KAFKA,
    ),
    Row(SPARK, "idle_ms", "Spark: a trigger without new data", "ms", 1, below(100, "ms"), KAFKA),
    Row(SPARK, "worker_mb", "Spark: peak memory of a Python worker", "MB", 0, below(300, "MB"), KAFKA),
    *_of_clients("produce", "`send_soon` with a callback each, beside confluent-kafka", 1.0),
    *_of_clients("consume", "`poll`, each body read, beside confluent-kafka", 1.0),
    *_of_clients("arrow", "`poll_arrow`, six columns, beside confluent-kafka's messages", 1.5),
    *_of_clients("aio", "asyncio `send_soon` with a callback each, beside aiokafka", 4.0),
    *_of_clients("send", "sync send, 1 thread, beside rocketmq-python-client", 10.0, THEIRS),
    Row(CLIENTS, "memory_mb", "Python: a client's memory, very many messages", "MB", bar=below(120, "MB")),
    Row(
        *(CLIENTS, "memory_growth", "Python: a client's memory after all messages / after a tenth", "x", 2),
        bar=at_most(1.1, "x"),
    ),
)
