"""One Spark and one server for all tests of the pipeline: starting them is most of the time."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bolide import Message, Producer
from bolide.cli.main import main
from bolide.pipeline.session import local_session
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until

ORDERS = 3000
STARTS_MAX = 10

Bolide = Callable[..., Any]


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


@pytest.fixture
def bolide(
    spark: SparkSession,
    server: EmbeddedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Bolide:
    """`bolide pipeline …` in this process, at home in `tmp_path`, with the Spark of all tests, which it does not end.

    Gives what it writes, as JSON where that was asked for.
    """
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)
    monkeypatch.setenv("BOLIDE_NAMESERVER", server.nameserver)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def bolide(*words: str, code: int = 0) -> Any:
        capfd.readouterr()
        ended = main(["pipeline", *words])
        shown = capfd.readouterr()
        assert ended == code, shown.err
        return json.loads(shown.out) if "--json" in words and shown.out else shown.out + shown.err

    return bolide


def started(begin: Callable[[], StreamingQuery]) -> StreamingQuery:
    """A query that has begun, or ended.

    Spark gives the Python beside a stream ten seconds to start, which no setting changes: on a machine that is too busy
    for that the query is begun again.
    """
    for _ in range(STARTS_MAX):
        query = begin()
        wait_until(partial(has_begun, query), PATIENCE_SECONDS, "the query does not begin")
        if query.isActive or "worker failed to connect back" not in str(query.exception()):
            return query
    raise AssertionError(f"Spark could not start a Python {STARTS_MAX} times")


def has_begun(query: StreamingQuery) -> bool:
    return bool(query.lastProgress) or not query.isActive


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
