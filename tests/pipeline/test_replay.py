"""`bolide pipeline replay` with a real Spark and a real server: what is sent, what stays as it was, and how often."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide import Message, MessageQueue, Producer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import list_topics
from bolide.model.errors import ConfigError
from bolide.model.message import PROPERTIES_BYTES_MAX
from bolide.net.clock import SystemClock
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.declared.run import Stop
from bolide.pipeline.errors import QueueRecreated
from bolide.pipeline.replay import plan
from bolide.pipeline.replay.folder import ReplayFolder
from bolide.pipeline.replay.plan import Asked, Selection
from bolide.pipeline.replay.run import Broken, Target, run
from bolide.pipeline.replay.source import plan_topics, selected
from bolide.pipeline.schema import native_schema
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import ORDERS, Bolide
from tests.pipeline.sink_query import stored as count_stored
from tests.pipeline.test_write import bodies, stored
from tests.unit.pipeline.test_redrive import plant

pytestmark = pytest.mark.needs("java")

EVERYTHING = Counter([b"large " * 2000, *(b"order %d" % number for number in range(ORDERS))])


def send(server: EmbeddedServer, topic: str, count: int, first: int = 0) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        producer.send_batch([Message(topic, b"%d" % at, f"t{at % 2}") for at in range(first, first + count)])


def numbers(server: EmbeddedServer, topic: str) -> Counter[int]:
    return Counter(int(message.body) for message in stored(server.nameserver, topic))


def test_a_preview_counts_and_shows_and_sends_nothing(
    bolide: Bolide, server: EmbeddedServer, tmp_path: Path
) -> None:
    words = [
        "replay",
        "--from-topic",
        "orders",
        "--to",
        "rp-preview",
        "--tag",
        "paid",
        "--rate",
        "100",
        "--preview",
    ]
    found = bolide(*words, "--json")
    assert (found["messages"], found["topics"], found["tags"]) == (1000, {"orders": 1000}, {"paid": 1000})
    assert found["bytes"] == sum(len(b"order %d" % number) for number in range(0, ORDERS, 3))
    assert found["takes_ms"] == 10_000
    assert sum(found["days"].values()) == 1000
    assert found["first_ms"] <= found["last_ms"]
    assert len(found["examples"]) == 5
    shown = bolide(*words)
    assert "takes    10 s at 100 a second" in shown
    assert "1000 messages would go to rp-preview. Nothing was sent" in shown
    assert not (tmp_path / ".bolide").exists()
    assert "rp-preview" not in topics(server)


def topics(server: EmbeddedServer) -> list[str]:
    async def ask() -> list[str]:
        async with AdminConnection(server.nameserver) as servers:
            return list(await list_topics(servers))

    return asyncio.run(ask())


def test_copies_keep_what_they_say_and_tell_where_they_come_from(
    bolide: Bolide, server: EmbeddedServer
) -> None:
    told = bolide("replay", "--from-topic", "orders", "--to", "rp-kept", "--id", "kept", "--yes", "--json")
    assert (told["finished"], told["sent"], told["stored_before"]) == (True, ORDERS + 1, 0)
    copies = stored(server.nameserver, "rp-kept")
    assert bodies(copies) == EVERYTHING
    originals = {message.message_id: message for message in stored(server.nameserver, "orders")}
    for copy in copies:
        original = originals[copy.properties["REPLAY_OF"]]
        assert (copy.body, copy.tags, copy.keys) == (original.body, original.tags, original.keys)
        assert copy.properties.get("city") == original.properties.get("city")
        place = f"orders {original.broker_name} {original.queue_id} {original.queue_offset}"
        assert (copy.properties["REPLAY_FROM"], copy.properties["REPLAY_ID"]) == (place, "kept")
    again = bolide("replay", "--from-topic", "orders", "--to", "rp-kept", "--id", "kept", "--yes", "--json")
    assert (again["sent"], again["finished"]) == (ORDERS + 1, True)
    assert len(stored(server.nameserver, "rp-kept")) == ORDERS + 1
    words = ("replay", "--from-topic", "orders", "--to", "rp-kept", "--id", "kept")
    assert "was finished before, and sends nothing more" in bolide(*words)
    assert "has sent everything" in bolide(*words, "--preview", code=4)


def test_tags_keys_and_sql_choose(bolide: Bolide, server: EmbeddedServer) -> None:
    where = "cast(substring(cast(body AS string), 7) AS int) < 300"
    bolide(
        "replay", "--from-topic", "orders", "--tag", "paid", "--where", where, "--to", "rp-chosen", "--yes"
    )
    bolide("replay", "--from-topic", "orders", "--key", "k1", "--key", "k2999", "--to", "rp-chosen", "--yes")
    expected = Counter(b"order %d" % number for number in (*range(0, 300, 3), 1, 2999))
    assert bodies(stored(server.nameserver, "rp-chosen")) == expected
    assert "--where is SQL over the columns topic" in bolide(
        "replay", "--from-topic", "orders", "--where", "nonsense = 1", "--to", "rp-none", "--preview", code=2
    )


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("storeTimestamp < now()", "now"),
        ("storeTimestamp < current_timestamp - INTERVAL 1 HOUR", "current_timestamp"),
        ("tags = 'a' OR unix_timestamp() > unix_timestamp(bornTimestamp)", "current_timestamp"),
        ("date(storeTimestamp) = current_date", "current_date"),
        ("date(storeTimestamp) = curdate()", "current_date"),
        ("storeTimestamp > localtimestamp()", "localtimestamp"),
        ("rand() < 0.5", "rand"),
        ("uuid() < '8'", "uuid"),
        ("storeTimestamp < 'now'", "'now'"),
        ("date(storeTimestamp) = cast('today' AS date)", "'today'"),
        ("date(storeTimestamp) = DATE 'today'", "'today'"),
        ("storeTimestamp < timestamp'now'", "'now'"),
        ('storeTimestamp < timestamp"now"', '"now"'),
        ('date(storeTimestamp) = date "today"', '"today"'),
        ("storeTimestamp < TIMESTAMP_LTZ r'now'", "'now'"),
        ("storeTimestamp < timestamp'today UTC'", "'today UTC'"),
        ("storeTimestamp < cast('today UTC' AS timestamp)", "'today UTC'"),
        ("storeTimestamp < cast('today+01:00' AS timestamp)", "'today"),
        ("storeTimestamp < timestamp'today+01:00'", "'today"),
        ("storeTimestamp < to_timestamp('now')", "'now'"),
        ("date(storeTimestamp) = to_date('today')", "'today'"),
        ("storeTimestamp < try_to_timestamp('now')", "'now'"),
        ("storeTimestamp < to_timestamp_ltz('now')", "'now'"),
        ("to_timestamp('now') BETWEEN storeTimestamp AND bornTimestamp", "'now'"),
        ("coalesce(storeTimestamp, to_timestamp('now')) > bornTimestamp", "'now'"),
        ("storeTimestamp < cast(concat('no', 'w') AS timestamp)", "'now'"),
        ("storeTimestamp < timestamp /* x */ 'now'", "'now'"),
        ("storeTimestamp < timestamp /* '2026 */ 'now'", "'now'"),
        ("storeTimestamp < timestamp -- '2026\n'now'", "'now'"),
        ("storeTimestamp < timestamp -- '2026\\\n'2026\n'now'", "'now'"),
        (r"storeTimestamp < timestamp 'n\u006fw'", r"'n\u006fw'"),
        ("exists(keys, key -> storeTimestamp < timestamp'now')", "'now'"),
        ("identifier('now')() > storeTimestamp", "now"),
        ("storeTimestamp > '10:30'", "'10:30'"),
        ("storeTimestamp > timestamp'10:30'", "'10:30'"),
        ("storeTimestamp BETWEEN 'T9:00' AND 'T10:00'", "'T9:00', 'T10:00'"),
    ],
)
def test_a_condition_that_is_another_one_in_each_slice_is_refused(
    spark: SparkSession, where: str, told: str
) -> None:
    with pytest.raises(ConfigError, match="--from and --until") as caught:
        selected(spark.createDataFrame([], native_schema()), Selection(where=where))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "where",
    [
        "queueOffset > (SELECT avg(x) FROM VALUES (1) AS t(x) WHERE now() > '2000-01-01')",
        "queueOffset IN (SELECT x FROM VALUES (1) AS t(x))",
        "tags = 'a' OR EXISTS (SELECT * FROM VALUES (1) AS t(x) WHERE x = queueOffset)",
    ],
    ids=["scalar", "in", "exists"],
)
def test_a_condition_that_asks_another_query_is_refused(spark: SparkSession, where: str) -> None:
    """Its rows may be others in each slice, and a clock in it is not seen."""
    with pytest.raises(ConfigError, match=r"--where asks another query \(SELECT …\)"):
        selected(spark.createDataFrame([], native_schema()), Selection(where=where))


def test_a_condition_that_stays_what_it_is_may_name_times_and_words(spark: SparkSession) -> None:
    where = (
        "storeTimestamp < TIMESTAMP '2026-11-18 10:00:00' AND storeTimestamp > DATE 'epoch'"
        " AND storeTimestamp > 'epoch' AND storeTimestamp > to_timestamp('epoch UTC')"
        " AND storeTimestamp > timestamp /* a 'word' */ -- and one\n ' 2026-11-18' AND properties['😀'] = 'x'"
        " AND date_format(storeTimestamp, 'HH:mm') > '10:30' AND to_timestamp('10:30', 'HH:mm') < storeTimestamp"
        " AND cast(properties['at'] AS timestamp) < storeTimestamp"
        " AND storeTimestamp > timestamp_ntz '-0001-01-01' AND current_timezone() <> 'now'"
        " AND properties['when'] IN ('now', 'today')"
        " AND hash(body) % 10 = 0 AND coalesce(properties['now'], 'tomorrow') <> 'rand()'"
    )
    selected(spark.createDataFrame([], native_schema()), Selection(where=where))


def test_a_condition_on_the_time_of_day_is_refused_before_anything_is_kept(
    bolide: Bolide, tmp_path: Path
) -> None:
    words = ("replay", "--from-topic", "orders", "--where", "storeTimestamp < now()", "--to", "rp-moving")
    assert "use --from and --until" in bolide(*words, "--preview", code=2)
    assert "use --from and --until" in bolide(*words, "--yes", "--id", "moving", code=2)
    assert not (tmp_path / ".bolide/replays/moving/replay.json").exists()


def test_messages_that_no_write_takes_are_named_and_the_others_are_sent(
    bolide: Bolide, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients of others store them; the last one is too large only with what a copy says of itself."""
    monkeypatch.setattr(plan, "REPLAY_SLICE_MESSAGES_MAX", 4)
    send(server, "rp-odd", 6)
    large = PROPERTIES_BYTES_MAX - 130
    for properties in ("TAGS\x01A B\x02", "KEYS\x01a\tb\x02", f"city\x01{'x' * large}\x02"):
        asyncio.run(plant(server, properties, topic="rp-odd"))
    words = ("replay", "--from-topic", "rp-odd", "--to", "rp-even")
    shown = bolide(*words, "--preview", "--json")
    assert (shown["messages"], shown["left_out"], shown["bytes"]) == (6, 3, 6)
    told = bolide(*words, "--id", "odd-ones", "--yes", "--json", code=1)
    assert (told["finished"], told["sent"], told["refused"]) == (True, 6, 3)
    assert numbers(server, "rp-even") == Counter(range(6))
    odd = {
        f"{message.message_id} (rp-odd broker-a {message.queue_id} {message.queue_offset})"
        for message in stored(server.nameserver, "rp-odd")
        if message.body == b"odd"
    }
    assert {name.split(": ")[0] for name in told["refused_named"]} == odd
    again = bolide(*words, "--id", "odd-ones", "--yes", code=1)
    assert "its tags is one word" in again
    assert "3 messages cannot be sent; all others are" in again
    assert numbers(server, "rp-even") == Counter(range(6))


def test_a_time_range_is_what_was_stored_in_it(bolide: Bolide, server: EmbeddedServer) -> None:
    send(server, "rp-times", 5)
    last_ms = max(message.store_timestamp_ms for message in stored(server.nameserver, "rp-times"))
    wait_until(lambda: SystemClock().now_ms() > last_ms + 1, PATIENCE_SECONDS, "a later millisecond")
    send(server, "rp-times", 5, first=5)
    bolide("replay", "--from-topic", "rp-times", "--until", str(last_ms + 1), "--to", "rp-early", "--yes")
    bolide("replay", "--from-topic", "rp-times", "--from", str(last_ms + 1), "--to", "rp-late", "--yes")
    assert numbers(server, "rp-early") == Counter(range(5))
    assert numbers(server, "rp-late") == Counter(range(5, 10))
    words = (
        "replay",
        "--from-topic",
        "rp-times",
        "--from",
        str(last_ms + 10),
        "--until",
        str(last_ms),
        "--to",
        "x",
    )
    assert "is not behind" in bolide(*words, code=2)
    assert "nothing to replay" in bolide(
        "replay", "--from-topic", "rp-times", "--until", "2001-01-01", "--to", "x", "--yes", code=4
    )


def test_into_the_topic_that_is_read_only_when_it_is_said_and_then_it_does_not_chase_itself(
    bolide: Bolide, server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "REPLAY_SLICE_MESSAGES_MAX", 40)
    send(server, "rp-circle", 100)
    words = ("replay", "--from-topic", "rp-circle", "--to", "rp-circle", "--yes")
    assert "--same-topic allows it" in bolide(*words, code=1)
    assert len(stored(server.nameserver, "rp-circle")) == 100
    bolide(*words, "--same-topic")
    assert numbers(server, "rp-circle") == Counter(range(100)) + Counter(range(100))


def test_a_replay_that_is_stopped_goes_on_where_it_was_and_its_ends_stay_where_they_were(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "REPLAY_SLICE_MESSAGES_MAX", 100)
    send(server, "rp-ends", 300)
    asked = Asked("rp-ends-copy", ("rp-ends",), selection=Selection())
    found = replace(plan_topics(ClusterAccess(server.nameserver), asked, "ends", "replay-ends", 0), tasks=2)
    folder, target, stop = (
        ReplayFolder.of("ends", str(tmp_path)),
        Target(ClusterAccess(server.nameserver)),
        Stop(),
    )
    done = run(
        found, folder, spark, target, stop=stop, progress=lambda one: stop.ask() if one.slices else None
    )
    assert (done.slices, found.slices) == (1, 3)
    send(server, "rp-ends", 50, first=300)
    kept = folder.replay()
    assert kept == found
    done = run(kept, folder, spark, target)
    assert (done.slices, done.sent) == (3, 300)
    assert numbers(server, "rp-ends-copy") == Counter(range(300))


def test_a_second_stop_does_not_wait_for_the_slice_and_doubles_nothing(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """At five a second the slice would take longer than the test waits."""
    send(server, "rp-hasty", 5 * PATIENCE_SECONDS)
    found = plan_topics(
        ClusterAccess(server.nameserver), Asked("rp-hasty-copy", ("rp-hasty",)), "hasty", "replay-hasty", 0
    )
    folder, stop = ReplayFolder.of("hasty", str(tmp_path)), Stop()

    def stop_when_begun() -> None:
        wait_until(lambda: "rp-hasty-copy" in topics(server), PATIENCE_SECONDS, "some are sent")
        stop.ask()
        stop.ask()

    stopping = threading.Thread(target=stop_when_begun)
    stopping.start()
    with pytest.raises(Broken):
        run(found, folder, spark, Target(ClusterAccess(server.nameserver), rate=5), stop=stop)
    stopping.join()
    assert folder.done().slices == 0
    done = run(found, folder, spark, Target(ClusterAccess(server.nameserver)))
    assert done.sent + done.stored_before == 5 * PATIENCE_SECONDS
    assert numbers(server, "rp-hasty-copy") == Counter(range(5 * PATIENCE_SECONDS))


def test_a_slice_that_was_sent_and_not_noted_is_not_sent_again(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """A crash between the last acknowledgement and the note; after it the messages come in another order."""
    asked = Asked("rp-noted", ("orders",))
    found = replace(plan_topics(ClusterAccess(server.nameserver), asked, "noted", "replay-noted", 0), tasks=2)
    folder, target = ReplayFolder.of("noted", str(tmp_path)), Target(ClusterAccess(server.nameserver))
    assert run(found, folder, spark, target).sent == ORDERS + 1
    (tmp_path / "noted" / "done.json").unlink()
    done = run(found, folder, spark, target)
    assert (done.sent, done.stored_before) == (0, ORDERS + 1)
    assert bodies(stored(server.nameserver, "rp-noted")) == EVERYTHING


def test_a_killed_replay_that_is_started_again_has_every_message_once(
    bolide: Bolide, server: EmbeddedServer
) -> None:
    words = ["replay", "--from-topic", "orders", "--to", "rp-killed", "--id", "killed", "--yes"]
    program = [sys.executable, "-m", "bolide.cli.main", "pipeline", *words, "--rate", "400"]
    running = subprocess.Popen(
        [*program, "--master", "local[2]"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def has_begun() -> bool:
        if running.poll() is not None:
            raise AssertionError(running.stderr.read())  # type: ignore[union-attr]
        return "rp-killed" in topics(server) and count_stored(server.nameserver, "rp-killed") > 100

    try:
        wait_until(has_begun, PATIENCE_SECONDS, "some are sent")
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert 100 < count_stored(server.nameserver, "rp-killed") <= ORDERS
    assert "was begun with another --tag" in bolide(*words, "--tag", "paid", code=1)
    told = bolide(*words, "--json")
    assert told["finished"]
    assert told["stored_before"] > 100
    assert bodies(stored(server.nameserver, "rp-killed")) == EVERYTHING


def test_what_was_in_one_queue_stays_in_order(bolide: Bolide, server: EmbeddedServer) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        for number in range(200):
            queue = MessageQueue("rp-order", "broker-a", number % 3)
            sharding = {"__SHARDINGKEY": f"s{number % 5}"} if number % 3 == 2 else {}
            producer.send(Message("rp-order", b"%d" % number, properties=sharding), queue=queue)
    bolide("replay", "--from-topic", "rp-order", "--to", "rp-ordered", "--keep-order", "--yes")
    lines: dict[str, list[StoredMessage]] = {}
    for copy in stored(server.nameserver, "rp-ordered"):
        lines.setdefault(copy.properties["__SHARDINGKEY"], []).append(copy)
    assert len(lines) == 2 + 5
    for copies in lines.values():
        assert len({copy.queue_id for copy in copies}) == 1
        assert [int(copy.body) for copy in copies] == sorted(int(copy.body) for copy in copies)


def test_messages_that_expire_meanwhile_end_it_and_can_be_left_out(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """A range that lies beyond the queue stands for messages that are gone."""
    send(server, "rp-gone", 20)
    found = plan_topics(
        ClusterAccess(server.nameserver), Asked("rp-gone-copy", ("rp-gone",)), "gone", "replay-gone", 0
    )
    ranges = tuple(replace(one, end=one.end + 5) for one in found.ranges)
    found, folder = replace(found, ranges=ranges), ReplayFolder.of("gone", str(tmp_path))
    with pytest.raises(QueueRecreated, match="deleted and made again"):
        run(found, folder, spark, Target(ClusterAccess(server.nameserver)))
    assert run(found, folder, spark, Target(ClusterAccess(server.nameserver), skip_expired=True)).sent == 20
    assert numbers(server, "rp-gone-copy") == Counter(range(20))


def test_an_archive_comes_back_into_its_topic(
    bolide: Bolide, server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "REPLAY_SLICE_MESSAGES_MAX", 100)
    send(server, "rp-archived", 250)
    bolide("archive", "rp-archived", "--to", "archive", "--once")
    words = ("replay", "--from-archive", "archive", "--from-topic", "rp-archived", "--to", "rp-archived")
    assert bolide(*words, "--preview", "--json")["topics"] == {"rp-archived": 250}
    told = bolide(*words, "--tag", "t1", "--id", "back", "--checkpoint", "kept", "--yes", "--json")
    assert (told["sent"], told["folder"]) == (125, str(tmp_path / "kept" / "back"))
    assert (tmp_path / "kept" / "back" / "done.json").exists()
    assert numbers(server, "rp-archived") == Counter(range(250)) + Counter(range(1, 250, 2))


def test_parquet_with_the_columns_of_a_topic_is_an_archive_too(
    bolide: Bolide, spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    reader = spark.read.format("rocketmq").options(nameserver=server.nameserver, subscribe="orders")
    orders = reader.load().where("array_contains(keys, 'k7')")
    orders.withColumn("more", F.lit(1)).write.parquet(str(tmp_path / "table"))
    assert bolide("replay", "--from-archive", "table", "--to", "rp-parquet", "--yes", "--json")["sent"] == 1
    assert bodies(stored(server.nameserver, "rp-parquet")) == Counter([b"order 7"])
    orders.select("body").write.parquet(str(tmp_path / "bodies"))
    told = bolide("replay", "--from-archive", "bodies", "--to", "rp-none", "--yes", code=2)
    assert re.search("brokerName, .* are missing", told)


def test_an_archive_that_is_not_there_is_said_before_spark_starts(bolide: Bolide) -> None:
    told = bolide("replay", "--from-archive", "none", "--to", "rp-none", "--yes", code=4)
    assert "none is not there" in told
    assert "starting Spark" not in told


@pytest.mark.parametrize("place", ["none*", "none"])
def test_an_archive_that_spark_does_not_find_is_missing_as_others_are(
    bolide: Bolide, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))  # so that it looks itself
    told = bolide("replay", "--from-archive", place, "--to", "rp-none", "--yes", code=4)
    assert f"{place} is not there" in told


def test_a_topic_that_is_not_there_and_nothing_to_read_are_said_at_once(bolide: Bolide) -> None:
    assert "rp-nowhere" in bolide("replay", "--from-topic", "rp-nowhere", "--to", "x", "--yes", code=4)
    assert "--from-topic TOPIC, or --from-archive DIR" in bolide("replay", "--to", "x", code=2)
    assert "say --yes" in bolide("replay", "--from-topic", "orders", "--to", "x", code=2)
    assert "did you mean" not in bolide("replay", "--from-topic", "orders", "--to", "x", code=2)
    told = bolide("replay", "--from-topic", "orders", "--to", "ordres", code=2)
    assert "no broker has the topic ordres, and a message would make it: did you mean orders?" in told
    assert "tags: " in bolide("replay", "--from-topic", "orders", "--tag", "a b", "--to", "x", code=2)
