"""`bolide pipeline archive` and `audit` on real topics: restarts, kills, a broker that goes in mid-batch."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer, PullConsumer
from bolide.cli.main import main as command
from bolide.model.limit import MIB
from bolide.model.offsets import MessageQueue
from bolide.net.clock import SystemClock
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.place import DELTA, PARQUET, Place, open_or_make, open_place
from bolide.pipeline.archive.run import Done, run_archive
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.archive.write import OtherMessages
from bolide.pipeline.declared.checkpoint import AlreadyRunning, Checkpoint
from bolide.pipeline.declared.progress import QueryProgress
from bolide.pipeline.declared.run import Stop, Watch
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS
from tests.pipeline import archive_run
from tests.pipeline.archive_rows import DAY_MS, kept, plain

pytestmark = pytest.mark.needs("java")

ROOT = Path(__file__).parents[2]
BROKER = "broker-a"


def send(server: EmbeddedServer, topic: str, numbers: range) -> None:
    """Spread over all queues, some hundred bytes each."""
    with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        for number in numbers:
            producer.send(Message(topic, b"%04d %s" % (number, b"x" * 100), keys=[f"k{number}"], tags="t"))


def numbers(found: list[str]) -> list[int]:
    return [int(text.split()[0]) for text in found]


def archive_once(
    spark: SparkSession,
    server: EmbeddedServer,
    place: Place,
    *topics: str,
    checkpoint: str = "checkpoint",
    days_later: int = 0,
    target_bytes: int | None = None,
    before: Callable[[str], None] = lambda step: None,
) -> Done:
    wanted = Wanted(
        topics, ClusterAccess(server.nameserver), "1 second", once=True, target_bytes=target_bytes
    )
    kept_at = Checkpoint(str(place.folder / checkpoint))

    def now_ms() -> int:
        return SystemClock().now_ms() + days_later * DAY_MS

    return run_archive(spark, place, kept_at, wanted, now_ms=now_ms, before=before)


@pytest.mark.parametrize("kind", [PARQUET, DELTA])
def test_runs_go_on_from_one_another_with_and_without_their_checkpoint(
    kind: str, spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """The last one a day later, so that it compacts what there is."""
    topic, other = f"arch-{kind}", f"arch-{kind}-too"
    place = open_or_make(tmp_path / "a", kind)
    send(server, topic, range(20))
    assert archive_once(spark, server, place, topic).added[topic].rows == 20
    send(server, topic, range(20, 30))
    assert archive_once(spark, server, place, topic).added[topic].rows == 10
    send(server, topic, range(30, 35))
    send(server, other, range(100, 103))
    done = archive_once(
        spark, server, place, topic, other, checkpoint="another", days_later=1, target_bytes=MIB
    )
    assert {name: one.rows for name, one in done.added.items()} == {topic: 5, other: 3}
    assert done.compacted is not None
    assert done.compacted.partitions >= 1
    assert done.compacted.files_after < done.compacted.files_before
    assert numbers(kept(spark, place)) == [*range(35), *range(100, 103)]


def test_the_manifest_counts_and_not_a_checkpoint_that_is_ahead_or_behind(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """Of another archive of the same topic, or from a backup."""
    send(server, "arch-counted", range(20))
    first, second = open_or_make(tmp_path / "a"), open_or_make(tmp_path / "b")
    shared = str(tmp_path / "shared")
    assert (
        archive_once(spark, server, first, "arch-counted", checkpoint=shared).added["arch-counted"].rows == 20
    )
    assert (
        archive_once(spark, server, second, "arch-counted", checkpoint=shared).added["arch-counted"].rows
        == 20
    )
    send(server, "arch-counted", range(20, 30))
    assert archive_once(spark, server, first, "arch-counted").added["arch-counted"].rows == 10
    assert archive_once(spark, server, first, "arch-counted", checkpoint=shared).added == {}
    assert numbers(kept(spark, first)) == list(range(30))


def test_a_topic_that_was_made_again_is_known_without_a_checkpoint(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    send(server, "arch-again", range(10))
    archive_once(spark, server, place, "arch-again")
    assert command(["topic", "delete", "arch-again", "--yes", "-n", server.nameserver]) == 0
    send(server, "arch-again", range(100, 140))
    with pytest.raises(OtherMessages, match="deleted and made again"):
        archive_once(spark, server, place, "arch-again", checkpoint="new")
    assert numbers(kept(spark, place)) == list(range(10))


def test_a_run_goes_on_until_it_is_told_to_stop(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    send(server, "going-on", range(10))
    place = open_or_make(tmp_path / "a")
    stop = Stop()

    def look(queries: Sequence[QueryProgress]) -> None:
        if sum(query.rows for query in queries) >= 10:
            stop.ask()

    done = run_archive(
        spark,
        place,
        Checkpoint(str(place.folder / "checkpoint")),
        Wanted(["going-on"], ClusterAccess(server.nameserver), "100 milliseconds"),
        now_ms=SystemClock().now_ms,
        stop=stop,
        watch=Watch(progress=look),
    )
    assert done.added["going-on"].rows == 10
    assert numbers(plain(place)) == list(range(10))


def test_a_broker_that_restarts_in_mid_batch_costs_no_row_and_doubles_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    with EmbeddedServer() as server:
        send(server, "restarted", range(50))
        place = open_or_make(tmp_path / "a")

        def restart(step: str) -> None:
            if step == "stage":  # planned, and not read yet
                server.stop()
                server.start()

        archive_once(spark, server, place, "restarted", before=restart)
        assert numbers(kept(spark, place)) == list(range(50))


def test_a_second_run_on_the_same_place_is_refused(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    with place.held(), pytest.raises(AlreadyRunning, match="somebody else writes to this archive"):
        archive_once(spark, server, place, "orders", checkpoint="another")


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        },
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )


def test_a_killed_run_is_finished_by_the_command_and_the_audit_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Killed with its JVM when the second batch is committed and no file of it is moved, nor its offsets kept."""
    folder = str(tmp_path / "a")
    with EmbeddedServer() as server:
        send(server, "killed", range(60))
        died = run(str(archive_run.__file__), server.nameserver, "killed", folder, "committed", "2")
        assert died.returncode != 0, died.stderr
        place = open_place(folder)
        assert len(list(place.manifest.glob("*.json"))) == 2, died.stderr
        bolide = ["-m", "bolide.cli.main", "pipeline"]
        done = run(*bolide, "archive", "killed", "--to", folder, "-n", server.nameserver, "--once", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["archive"] == folder
        assert numbers(kept(spark, place)) == numbers(plain(place)) == list(range(60))

        audit = [*bolide, "audit", "killed", "--archive", folder, "-n", server.nameserver]
        assert command(["group", "create", "readers", "-n", server.nameserver]) == 0
        consume(server, "killed", "readers", leave=1)
        proof = run(*audit, "--group", "readers", "--deep", "--json")
        assert proof.returncode == 1, proof.stderr
        queues = json.loads(proof.stdout)["queues"]
        assert [one["kind"] for queue in queues for one in queue["findings"]] == ["not-consumed"]


def consume(server: EmbeddedServer, topic: str, group: str, leave: int = 0) -> None:
    """The group has consumed everything, but for some messages of the first queue."""
    with PullConsumer(server.nameserver, group=group) as consumer:
        for queue in consumer.queues(topic):
            end = consumer.max_offset(queue)
            consumer.commit(queue, end - (leave if queue == MessageQueue(topic, BROKER, 0) else 0))
