"""What `make demo` shows: produce, consume, query with Spark, stream into Parquet and a topic, archive, audit, report.

Everything but the report is in a temporary directory and on free ports: a real name server and broker inside this
process, real clients that talk to them, and a local Spark.  Exit code 0 when every step saw what it should have seen.
"""

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bolide import BolideError, Message, Producer, PushConsumer, StoredMessage
from bolide.testing import EmbeddedServer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC = "orders"
ORDERS = 10_000
BATCH = 100
CITIES = ("Berlin", "Hangzhou", "Lagos", "Lima", "Oslo")
STATES = ("paid", "open", "cancelled")
DEADLINE_SECONDS = 60
SPARK_SQL = """
    SELECT get_json_object(text, '$.city') AS city,
           count(*)                        AS orders,
           count_if(tags = 'paid')         AS paid,
           round(sum(get_json_object(text, '$.amount')), 2) AS amount
    FROM (SELECT tags, cast(body AS STRING) AS text FROM orders)
    GROUP BY city ORDER BY city"""


class DemoError(Exception):
    """A step that did not go as it should."""


def main() -> int:
    began = time.perf_counter()
    print("bolide demo: a message queue and its data pipeline, from nothing")
    try:
        _check_java()
        with tempfile.TemporaryDirectory(prefix="bolide-demo-") as folder:
            server = EmbeddedServer(data_dir=Path(folder) / "data")
            try:
                _start(server)
                _produce(server.nameserver)
                _consume(server.nameserver)
                _spark(server.nameserver, Path(folder))
            finally:
                server.close()
    except (BolideError, DemoError) as error:
        print(f"\nerror: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    print(
        f"\nDone in {time.perf_counter() - began:.1f} s. Run your own with `make up`, then in another terminal:"
    )
    print("    .venv/bin/bolide send greetings hello")
    print("    .venv/bin/bolide tail greetings")
    return 0


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise DemoError(
            "Spark needs Java 17 or newer, and there is no `java` on the path."
            " On Debian: apt-get install openjdk-17-jre-headless. On a Mac: brew install openjdk@17"
        )


@contextmanager
def _step(title: str) -> Iterator[None]:
    """Say what is done, and afterwards how long it took."""
    print(f"\n{title}", flush=True)
    began = time.perf_counter()
    yield
    print(f"    {time.perf_counter() - began:.2f} s", flush=True)


def _say(text: str) -> None:
    print(f"    {text}", flush=True)


def _start(server: EmbeddedServer) -> None:
    with _step("1. Start a name server and a broker, in this process"):
        server.start()
        _say(f"name server {server.nameserver}, broker {server.broker}")


def _produce(nameserver: str) -> None:
    with (
        _step(f"2. Produce {ORDERS:,} messages with keys and tags"),
        Producer(nameserver, group="shop") as producer,
    ):
        first = producer.send(_order(0))
        for start in range(1, ORDERS, BATCH):
            producer.send_batch([_order(number) for number in range(start, min(start + BATCH, ORDERS))])
        _say(
            f"the first one is at offset {first.queue_offset} of {first.queue}, its id is {first.message_id}"
        )


def _order(number: int) -> Message:
    body = {"order": number, "city": CITIES[number % len(CITIES)], "amount": (number * 37 % 10_000) / 100}
    return Message(TOPIC, json.dumps(body).encode(), tags=STATES[number % len(STATES)], keys=[str(number)])


def _consume(nameserver: str) -> None:
    wanted = {str(number) for number in range(ORDERS) if STATES[number % len(STATES)] == "paid"}
    seen: set[str] = set()
    by_queue: Counter[int] = Counter()
    complete, lock = threading.Event(), threading.Lock()

    def listen(messages: list[StoredMessage]) -> None:
        with lock:
            for message in messages:
                seen.update(message.keys)
                by_queue[message.queue_id] += 1
            if len(seen) == len(wanted):
                complete.set()

    with _step("3. Consume the paid ones in a group"):
        consumer = PushConsumer(nameserver, group="billing", listener=listen, start_from="first")
        consumer.subscribe(TOPIC, tags="paid")
        with consumer:
            complete.wait(DEADLINE_SECONDS)
        if seen != wanted:
            raise DemoError(f"{len(seen & wanted)} of {len(wanted)} paid orders came in {DEADLINE_SECONDS} s")
        shares = ", ".join(f"queue {queue}: {count:,}" for queue, count in sorted(by_queue.items()))
        _say(f"{len(seen):,} messages came; {shares}")


def _spark(nameserver: str, folder: Path) -> None:
    from bolide.pipeline.session import local_session

    with _step("4. Start Spark"), _stderr_to(folder / "spark.log"):
        spark = local_session("bolide demo", settings={"spark.sql.shuffle.partitions": "2"})
        _say(f"Spark {spark.version} on {spark.sparkContext.master}")
    try:
        with _step("5. Query the topic with Spark SQL"):
            topic = (
                spark.read.format("rocketmq")
                .option("nameserver", nameserver)
                .option("subscribe", TOPIC)
                .load()
            )
            topic.createOrReplaceTempView("orders")
            result = spark.sql(SPARK_SQL)
            _print_table(result)
        _pipelines(spark, nameserver, folder)
    finally:
        spark.stop()


def _pipelines(spark: "SparkSession", nameserver: str, folder: Path) -> None:
    """Each of these is one command of `bolide pipeline`."""
    import demo_pipelines

    with _step(
        "6. Stream through SQL into Parquet and into another topic, what is not as expected put aside"
    ):
        rows, messages, aside = demo_pipelines.stream(spark, nameserver, folder)
        _say(f"{rows:,} rows in Parquet, {messages:,} messages in the topic receipts, {aside:,} put aside")
        paid = sum(STATES[number % len(STATES)] == "paid" for number in range(ORDERS))
        if not rows == messages == paid - aside:
            raise DemoError(f"of {paid:,} paid orders {rows:,} came to Parquet and {messages:,} to the topic")
    topics = [TOPIC, "receipts"]
    with _step("7. Archive both topics, exactly once"):
        archived = demo_pipelines.archive(spark, nameserver, folder, topics)
        _say(f"{archived:,} messages, by day and topic, with a manifest")
        if archived != ORDERS + messages:
            raise DemoError(f"{ORDERS + messages:,} messages are stored and {archived:,} archived")
    with _step("8. Audit: stored = archived = consumed?"):
        if not demo_pipelines.audit(spark, nameserver, folder, TOPIC):
            raise DemoError("the audit has found differences")
        _say("yes: every queue, every offset, every checksum")
    with _step("9. Report: traffic, sizes, latencies, hot keys, skewed queues"):
        page = Path("demo-report.html")
        demo_pipelines.report(spark, nameserver, page, topics)
        _say(f"{page} has {page.stat().st_size:,} bytes: open it in a browser")


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Java writes a page of greetings when it starts; it keeps this file for them, and a failure shows it."""
    saved = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    except Exception as error:
        os.dup2(saved, 2)
        raise DemoError(f"Spark did not start: {error}\n{log.read_text(errors='replace')}") from error
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def _print_table(result: "DataFrame") -> None:
    rows = [result.columns, *([str(value) for value in row] for row in result.collect())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(result.columns))]
    for row in rows:
        _say("  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
