"""Stores of the original, read from their files: while it runs, after a kill, and after a clean stop."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import ORDERS, fill
from tests.pipeline.store_rows import by_place, store_read
from tests.pipeline.test_apache import is_readable

pytestmark = pytest.mark.needs("java", "mvn")

SETTINGS = {"mappedFileSizeCommitLog": str(256 * 1024), "mappedFileSizeConsumeQueue": "20000"}


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"apache-{version}")
def apache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Apache(request.param), tmp_path_factory.mktemp("apache"), SETTINGS).start()
    yield server
    server.stop()


def test_a_store_of_the_original_gives_the_rows_that_its_broker_gives(
    spark: SparkSession, apache: Together
) -> None:
    """One store through its life, because starting the original takes longest."""
    fill(apache.nameserver)
    wait_until(lambda: is_readable(apache), PATIENCE_SECONDS, "the original does not show all messages")
    asked = spark.read.format("rocketmq").options(nameserver=apache.nameserver, subscribe="orders").load()
    expected = by_place(asked)
    assert len(expected) == ORDERS + 1
    options = {"topic": "orders", "brokerName": expected[0].brokerName, "minPartitions": "3"}
    store = apache.home / "broker" / "store"
    assert by_place(store_read(spark, store, **options)) == expected
    apache.kill()
    assert by_place(store_read(spark, store, **options)) == expected
    apache.start()
    apache.stop()
    assert by_place(store_read(spark, store, **options)) == expected
    everything = store_read(spark, store, columns="topic").distinct().collect()
    assert {row.topic for row in everything} == {"orders", "started"}  # the other one is of the test's server
