"""The two sides of the comparison: a fresh server and a fresh load JVM, the same for both but for the server."""

import asyncio
import itertools
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bolide.admin.connection import AdminConnection
from bolide.admin.topics import create_topic
from bolide.model.topic import TopicConfig
from tests.peers import java, kafka
from tests.peers.apache import BENCH_FLAGS, Apache
from tests.peers.bolide import Bolide
from tests.peers.server import ServerKind, Together
from tests.peers.witness import Witness

OURS, THEIRS, KAFKA = "bolide", "apache", "kafka"
KINDS: dict[str, ServerKind] = {OURS: Bolide(), THEIRS: Apache(java.LATEST, BENCH_FLAGS)}
SIDES = (*KINDS, KAFKA)
"""Kafka is the peer of the rows of Spark and of most of the Python clients, the original that of all others."""

QUEUES = 4
LOAD_JVM_FLAGS = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")
ANSWER_SECONDS = 600
ASYNC_FLUSH: Mapping[str, str] = {"flushDiskType": "ASYNC_FLUSH"}
"""Settings of a server for which no others are given."""

_numbers = itertools.count(1)


class Untrustworthy(RuntimeError):
    """A run whose figures must not be shown: messages were lost, doubled or stored in another shape."""


@dataclass
class Side:
    """A running server with the load program beside it."""

    name: str
    server: Together
    load: Witness

    def ask(self, verb: str, **options: object) -> dict[str, Any]:
        """Run a verb of the load program against this server."""
        return self.load.ask(verb, ANSWER_SECONDS, nameserver=self.server.nameserver, **options)

    def begin(self, verb: str, **options: object) -> "Future[dict[str, Any]]":
        """The same without waiting for the answer."""
        return self.load.begin(verb, nameserver=self.server.nameserver, **options)

    def topic(self, queues: int = QUEUES) -> str:
        """A new, empty topic that clients can see."""
        topic = f"bench-{next(_numbers)}"
        line = f"updateTopic -b {self.server.broker} -t {topic} -r {queues} -w {queues}"
        printed = self.load.ask("admin", line=f"{line} -n {self.server.nameserver}")
        if "success" not in printed["output"]:
            raise Untrustworthy(f"no topic on {self.name}: {printed}")
        return topic

    def stored(self, topic: str) -> int:
        """How many messages the brokers say the topic holds."""
        return sum(row["max"] - row["min"] for row in self.ask("offsets", topic=topic)["queues"])


@contextmanager
def running_server(
    name: str, home: Path, *, wait: bool = True, settings: Mapping[str, str] = ASYNC_FLUSH
) -> Iterator[Together]:
    """A server with an empty store, gone with its files afterwards."""
    server = Together(KINDS[name], home, settings)
    try:
        yield server.start() if wait else server.launch()
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def running_side(name: str, home: Path, *, settings: Mapping[str, str] = ASYNC_FLUSH) -> Iterator[Side]:
    """A server and its load program."""
    with running_server(name, home / "server", settings=settings) as server:
        load = Witness(java.LATEST, home / "load", LOAD_JVM_FLAGS)
        try:
            yield Side(name, server, load)
            load.stop()
        finally:
            load.kill()
            shutil.rmtree(home / "load", ignore_errors=True)


@contextmanager
def running_kafka(home: Path) -> Iterator[kafka.Kafka]:
    """The same of the other peer."""
    server = kafka.Kafka(home)
    try:
        yield server.start()
        server.stop()
    finally:
        server.kill()
        shutil.rmtree(home, ignore_errors=True)


def make_topic(server: Together, topic: str) -> None:
    """A new topic of four queues, without a load program."""

    async def make() -> None:
        async with AdminConnection(server.nameserver) as servers:
            await create_topic(servers, TopicConfig(topic, QUEUES, QUEUES))

    asyncio.run(make())
