"""A job on a real cluster whose machines have no bolide: nothing is lost or doubled, whoever dies in mid-batch.

The cluster is Spark's own standalone one, the job is submitted as docs/spark.md says it.  "Mid-batch" is no matter of
time: a task says that it is there and waits to be told (`cluster_query.py`).
"""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bolide import Message, Producer
from bolide.admin.topics import create_topic
from bolide.model.topic import TopicConfig
from bolide.testing import EmbeddedServer
from tests.peers import spark_cluster
from tests.peers.process import ManagedProcess
from tests.peers.server import HOST
from tests.peers.spark_cluster import SparkCluster, executor_of
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.pipeline import cluster_query, shipped
from tests.pipeline.sink_query import stored
from tests.pipeline.test_stream import ask
from tests.pipeline.test_write_stream import numbers

pytestmark = pytest.mark.needs("java")

BATCHES = 3
ROWS = 2500
MESSAGES = BATCHES * cluster_query.QUEUES * ROWS
SOURCE, SINK = "cluster-source", "cluster-sink"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(tmp_path / "cluster", workers=2)
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    """As many messages in each queue, so that every batch has the same of each."""
    with EmbeddedServer() as server:
        for topic in (SOURCE, SINK):
            config = TopicConfig(topic, cluster_query.QUEUES, cluster_query.QUEUES)
            ask(server, partial(create_topic, config=config))
        with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
            queues = producer.queues(SOURCE)
            for start in range(0, MESSAGES, 100):
                block = [message(number) for number in range(start, start + 100)]
                producer.send_batch(block, queue=queues[start // 100 % len(queues)])
        yield server


def message(number: int) -> Message:
    return Message(SOURCE, b"%d %s" % (number, b"x" * 200))


class Job:
    """The two queries, and the places where their tasks wait."""

    def __init__(self, cluster: SparkCluster, server: EmbeddedServer, folder: Path) -> None:
        self._folder = folder
        self._gates = folder / "gates"
        self._gates.mkdir()
        shipped.ship(folder)
        python = shipped.python_without_bolide(folder / "python")
        self._env = {"PYSPARK_PYTHON": str(python), "PYTHONPATH": shipped.FOLDER}
        self._settings = {
            "spark.master": cluster.master,
            "spark.archives": f"{shipped.ARCHIVE}#{shipped.FOLDER}",
            "spark.executorEnv.PYTHONPATH": shipped.FOLDER,
            "spark.driver.host": HOST,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        }
        self._places = {
            "nameserver": server.nameserver,
            "source": SOURCE,
            "sink": SINK,
            "folder": str(folder),
            "rows": ROWS,
        }
        self._driver: ManagedProcess | None = None

    def start(self) -> None:
        self._driver = spark_cluster.submit(
            "driver",
            self._folder,
            Path(str(cluster_query.__file__)),
            self._settings,
            self._env,
            json.dumps(self._places),
        )

    def wait(self, is_so: Callable[[], bool]) -> None:
        assert self._driver is not None
        self._driver.wait_ready(is_so, 2 * PATIENCE_SECONDS)

    def stopped_at(self, query: str, batch: int) -> int:
        """The Python worker of a task that waits in the middle of this batch."""
        reached = self._gates / f"{query}-{batch}.reached"
        self.wait(reached.exists)
        return int(reached.read_text())

    def go_on(self, query: str, batch: int) -> None:
        (self._gates / f"{query}-{batch}.open").touch()

    def kill(self) -> None:
        """The driver, its JVM and its Python."""
        assert self._driver is not None
        os.kill(int((self._folder / "driver.pid").read_text()), signal.SIGKILL)
        self._driver.kill()

    def results(self) -> dict[str, Any]:
        assert self._driver is not None
        assert self._driver.wait_exit(2 * PATIENCE_SECONDS) == 0, self._driver.log_tail()
        found: dict[str, Any] = json.loads((self._folder / "results.json").read_text())
        return found

    def close(self) -> None:
        if self._driver is not None:
            self._driver.kill()


@pytest.fixture
def job(cluster: SparkCluster, server: EmbeddedServer, tmp_path: Path) -> Iterator[Job]:
    job = Job(cluster, server, tmp_path)
    yield job
    job.close()


def test_executors_a_broker_and_the_driver_die_in_mid_batch_and_every_row_comes_once(
    job: Job, server: EmbeddedServer, tmp_path: Path
) -> None:
    """One executor in the first batch, the broker in the second, the driver in the third; of both queries."""
    job.start()
    for query in ("parquet", "topic"):
        worker = job.stopped_at(query, 0)
        if query == "topic":
            wait_until(
                lambda: stored(server.nameserver, SINK) > 0, PATIENCE_SECONDS, "the batch has stored nothing"
            )
            assert stored(server.nameserver, SINK) < cluster_query.QUEUES * ROWS
        os.kill(executor_of(worker), signal.SIGKILL)
        job.go_on(query, 0)
        job.stopped_at(query, 1)
        server.stop()
        job.go_on(query, 1)
        server.start()
        job.stopped_at(query, 2)
    wait_until(
        lambda: stored(server.nameserver, SINK) > 2 * cluster_query.QUEUES * ROWS,
        PATIENCE_SECONDS,
        "the last batch has stored nothing",
    )
    job.kill()
    assert stored(server.nameserver, SINK) < MESSAGES
    for query in ("parquet", "topic"):
        job.go_on(query, 2)  # what is left of the dead job's tasks may try to go on
    job.start()
    found = job.results()
    assert Counter(found["rows"]) == Counter(range(MESSAGES))
    assert numbers(server.nameserver, SINK) == Counter(range(MESSAGES))
    assert found["count"] == MESSAGES
    assert all(path.startswith(str(tmp_path / "cluster" / "worker-")) for path in found["bolide"])
