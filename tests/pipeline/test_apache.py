"""The same source on the original's broker, which gives 32 messages per pull."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.peers import frames
from tests.peers.apache import Apache
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import ORDERS, fill

pytestmark = pytest.mark.needs("java", "mvn")


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Apache(), tmp_path_factory.mktemp("apache")).start()
    yield server
    server.stop()


def test_a_topic_on_the_original_is_read_whole(spark: SparkSession, apache: Together) -> None:
    fill(apache.nameserver)
    wait_until(lambda: is_readable(apache), PATIENCE_SECONDS, "the original does not show all messages")
    orders = spark.read.format("rocketmq").options(nameserver=apache.nameserver, subscribe="orders")
    rows = orders.load().collect()
    assert len(rows) == ORDERS + 1
    assert {row.body for row in rows} == {b"large " * 2000, *(b"order %d" % at for at in range(ORDERS))}
    paid = orders.option("tags", "paid").load().select("tags", "body").collect()
    assert len(paid) == ORDERS // 3
    assert {row.tags for row in paid} == {"paid"}


def is_readable(apache: Together) -> bool:
    """The original tells readers and its name server a moment after it has acknowledged."""
    with frames.Connection(apache.nameserver) as connection:
        has_route = connection.ask(frames.GET_ROUTE, {"topic": "orders"}).code == frames.SUCCESS
    return has_route and frames.readable(apache.broker, "orders", queues=4) == ORDERS + 1
