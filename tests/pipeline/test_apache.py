"""The same source on the original's broker, which gives 32 messages per pull."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.peers.apache import Apache
from tests.peers.server import Together
from tests.pipeline.conftest import ORDERS, fill

pytestmark = pytest.mark.needs("java", "mvn")


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Apache(), tmp_path_factory.mktemp("apache")).start()
    yield server
    server.stop()


def test_a_topic_on_the_original_is_read_whole(spark: SparkSession, apache: Together) -> None:
    fill(apache.nameserver)
    orders = spark.read.format("rocketmq").options(nameserver=apache.nameserver, subscribe="orders")
    rows = orders.load().collect()
    assert len(rows) == ORDERS + 1
    assert {row.body for row in rows} == {b"large " * 2000, *(b"order %d" % at for at in range(ORDERS))}
    paid = orders.option("tags", "paid").load().select("tags", "body").collect()
    assert len(paid) == ORDERS // 3
    assert {row.tags for row in paid} == {"paid"}
