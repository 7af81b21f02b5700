"""The two sides: a fresh server, and a Spark that knows how to talk to it."""

import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bolide.pipeline.session import QUIET
from tests.bench.sides import OURS, make_topic, running_kafka, running_server
from tests.bench.spark.session import SparkProcess
from tests.peers import kafka
from tests.peers.server import Together

SETTINGS = {**QUIET, "spark.master": "local[2]", "spark.driver.memory": "2g"}


class SparkSide(ABC):
    """What differs between the two: the name of the format and its options."""

    source: str

    def __init__(self, spark: SparkProcess, home: Path) -> None:
        self.spark, self.home = spark, home

    @abstractmethod
    def make_topic(self, topic: str) -> None: ...

    @abstractmethod
    def reading(self, topic: str) -> dict[str, str]: ...

    @abstractmethod
    def writing(self, topic: str) -> dict[str, str]: ...


class Ours(SparkSide):
    """bolide, with the Spark that this interpreter has."""

    source = "rocketmq"

    def __init__(self, spark: SparkProcess, home: Path, server: Together) -> None:
        super().__init__(spark, home)
        self._server = server

    @property
    def store(self) -> Path:
        return next(self._server.home.rglob("commitlog")).parent

    def make_topic(self, topic: str) -> None:
        make_topic(self._server, topic)

    def reading(self, topic: str) -> dict[str, str]:
        return {"nameserver": self._server.nameserver, "subscribe": topic}

    def writing(self, topic: str) -> dict[str, str]:
        return {"nameserver": self._server.nameserver, "topic": topic}


class Kafkas(SparkSide):
    """Kafka, with the Spark of its connector."""

    source = "kafka"

    def __init__(self, spark: SparkProcess, home: Path, server: kafka.Kafka) -> None:
        super().__init__(spark, home)
        self._address = {"kafka.bootstrap.servers": server.address}

    def make_topic(self, topic: str) -> None:
        """The first write does."""

    def reading(self, topic: str) -> dict[str, str]:
        return {**self._address, "subscribe": topic}

    def writing(self, topic: str) -> dict[str, str]:
        return {**self._address, "topic": topic}


@contextmanager
def running_ours(home: Path) -> Iterator[Ours]:
    with (
        running_server(OURS, home / "server") as server,
        _spark(home / "spark", Path(sys.executable), {}, {}) as spark,
    ):
        yield Ours(spark, home / "spark", server)


@contextmanager
def running_kafkas(home: Path) -> Iterator[Kafkas]:
    python = kafka.spark_python()
    packages = next((python.parents[1] / "lib").glob("python3*/site-packages"))
    jars = {"spark.jars": ",".join(map(str, kafka.connector_jars()))}
    env = {"PYTHONPATH": "", "SPARK_HOME": str(packages / "pyspark")}  # nothing of ours
    with running_kafka(home / "server") as server, _spark(home / "spark", python, jars, env) as spark:
        yield Kafkas(spark, home / "spark", server)


@contextmanager
def _spark(home: Path, python: Path, settings: dict[str, str], env: dict[str, str]) -> Iterator[SparkProcess]:
    home.mkdir(parents=True, exist_ok=True)
    local = {"spark.local.dir": str(home / "local")}
    spark = SparkProcess(python, {**SETTINGS, **local, **settings}, env, home)
    try:
        yield spark
    finally:
        spark.close()
        shutil.rmtree(home, ignore_errors=True)
