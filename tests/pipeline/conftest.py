"""One Spark and one server for all tests of the pipeline: starting them is most of the time."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer
from bolide.pipeline.session import local_session
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS

ORDERS = 3000


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("bolide tests", master="local[2]", settings={"spark.sql.shuffle.partitions": "2"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        fill(server.nameserver)
        yield server


def fill(nameserver: str) -> None:
    """`orders`: small messages with tags and keys, and one that is large enough to be sent packed."""
    with Producer(nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        producer.send(Message("orders", b"large " * 2000, tags="large"))
        for start in range(0, ORDERS, 100):
            producer.send_batch([order(number) for number in range(start, start + 100)])


def order(number: int) -> Message:
    tag = "paid" if number % 3 == 0 else "open"
    return Message(
        "orders", b"order %d" % number, tags=tag, keys=[f"k{number}", "all"], properties={"city": "Köln"}
    )
