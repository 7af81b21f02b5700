"""A stream as Spark calls it, on a real server and without a Spark: offsets go through JSON, a task reads its part."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows, ReadMinRows
from pyspark.sql.types import StructType

from bolide import Message, Producer, PullConsumer, PushConsumer
from bolide.model.errors import ConfigError, NoNameServer
from bolide.pipeline.schema import whole_schema
from bolide.pipeline.stream import RocketMQStreamReader
from bolide.record.stored import StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


class Query:
    """Spark's part: keeps the offset, asks for batches, runs their tasks."""

    def __init__(self, server: EmbeddedServer, **options: str) -> None:
        given = {"nameserver": server.nameserver, "startingOffsets": "earliest"} | options
        self.reader = RocketMQStreamReader(given, whole_schema())
        self.at: str | None = None

    def batch(self) -> list[int]:
        """The next one; what is not new comes as the very same text."""
        start = self.start()
        end = json.dumps(self.reader.latestOffset(json.loads(start), self.reader.getDefaultReadLimit()))
        rows: list[dict[str, Any]] = []
        if end != start:
            for partition in self.reader.partitions(json.loads(self.start()), json.loads(end)):
                rows += [row for batch in self.reader.read(partition) for row in batch.to_pylist()]
            self.reader.commit(json.loads(end))
        self.at = end
        return sorted(int(row["body"]) for row in rows)

    def start(self) -> str:
        """Of a first batch Spark keeps none: it asks when it plans it, and again when it runs it."""
        return json.dumps(self.reader.initialOffset()) if self.at is None else self.at

    def stop(self) -> None:
        self.reader.stop()


def send(server: EmbeddedServer, topic: str, numbers: range) -> None:
    with Producer(server.nameserver, group="shop") as producer:
        for number in numbers:
            producer.send(Message(topic, b"%d" % number, keys=[f"k{number}"]))


def test_batches_have_every_message_once_and_the_group_shows_it(server: EmbeddedServer) -> None:
    send(server, "flow", range(100))
    query = Query(server, subscribe="flow", maxOffsetsPerTrigger="40", consumerGroup="etl")
    batches = [query.batch() for _ in range(4)]
    assert [len(batch) for batch in batches] == [40, 40, 20, 0]
    assert sorted(number for batch in batches for number in batch) == list(range(100))
    with PullConsumer(server.nameserver, group="etl") as consumer:
        for queue in consumer.queues("flow"):
            assert int(consumer.committed_offset(queue) or 0) == int(consumer.max_offset(queue))
    query.stop()


def test_a_restarted_query_goes_on_where_it_was(server: EmbeddedServer) -> None:
    send(server, "more", range(10))
    first = Query(server, subscribe="more")
    assert first.batch() == list(range(10))
    first.stop()
    send(server, "more", range(10, 15))
    second = Query(server, subscribe="more")
    second.at = first.at
    second.reader.prepareForTriggerAvailableNow()
    send(server, "more", range(15, 20))
    assert (second.batch(), second.batch()) == (list(range(10, 15)), [])
    assert second.reader.reportLatestOffset() is not None
    second.stop()


def test_spark_hears_of_one_limit(server: EmbeddedServer) -> None:
    limits: list[tuple[dict[str, str], Any]] = [
        ({}, ReadAllAvailable()),
        ({"maxOffsetsPerTrigger": "7", "maxBytesPerTrigger": "8"}, ReadMaxRows(7)),
        ({"maxBytesPerTrigger": "8"}, ReadMaxBytes(8)),
        ({"minOffsetsPerTrigger": "9"}, ReadMinRows(9)),
    ]
    for options, limit in limits:
        assert Query(server, subscribe="flow", **options).reader.getDefaultReadLimit() == limit


def test_what_is_wrong_is_said_when_it_is_first_asked_and_not_when_it_is_made(server: EmbeddedServer) -> None:
    """An error of the constructor would be lost in Spark's runner."""
    query = Query(server, subscribe="flow", endingOffsets="latest")
    for ask in (
        query.reader.getDefaultReadLimit,
        query.reader.initialOffset,
        query.reader.prepareForTriggerAvailableNow,
    ):
        with pytest.raises(ConfigError, match="endingOffsets is for batch reads"):
            ask()
    query.stop()


def test_a_schema_and_the_option_columns_contradict_each_other(server: EmbeddedServer) -> None:
    given = {"nameserver": server.nameserver, "subscribe": "flow", "columns": "tags"}
    reader = RocketMQStreamReader(given, StructType([whole_schema()["body"]]))
    with pytest.raises(ConfigError, match="a schema and the option columns contradict each other"):
        reader.initialOffset()


def test_a_server_that_cannot_be_reached_is_named(server: EmbeddedServer) -> None:
    query = Query(server, subscribe="flow", nameserver="127.0.0.1:1")
    with pytest.raises(NoNameServer, match=r"127\.0\.0\.1:1"):
        query.reader.initialOffset()
    query.stop()


def test_what_a_group_sent_back_and_what_it_gave_up_are_topics_too(server: EmbeddedServer) -> None:
    send(server, "trouble", range(3))

    def fail(messages: list[StoredMessage]) -> None:
        raise ValueError(messages)

    with PushConsumer(
        server.nameserver, group="gives-up", listener=fail, start_from="first", attempts_max=0
    ) as consumer:
        consumer.subscribe("trouble")
        query = Query(server, subscribePattern="%DLQ%gives-.*")
        found: list[int] = []

        def has_all() -> bool:
            found.extend(query.batch())
            return sorted(found) == [0, 1, 2]

        wait_until(has_all, PATIENCE_SECONDS, "the dead letters do not come")
    query.stop()
    by_name = Query(server, dlqOf="gives-up")
    assert by_name.batch() == [0, 1, 2]
    by_name.stop()
