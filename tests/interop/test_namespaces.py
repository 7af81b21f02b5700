"""Namespaces of Java clients: to the broker they are the beginning of a name."""

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 40


def test_a_namespace_is_part_of_the_names_of_topics_and_groups(stage: Stage) -> None:
    """The clients take it off again, so who uses one does not see it."""
    space, topic, group = stage.name("space"), stage.name("topic"), stage.name("group")
    stage.update_topic(f"{space}%{topic}", read=4, write=4)
    sent = stage.produce(topic, COUNT, namespace=space).finish().bodies
    consumer = stage.consume(topic, group, namespace=space)
    consumer.wait_received(COUNT)
    consumer.stop()
    ledger.assert_each_once(sent, consumer.bodies)
    assert {message.topic for message in consumer.received} == {topic}

    def committed() -> int:
        return sum(row["committed"] for row in stage.offsets(f"{space}%{topic}", f"{space}%{group}"))

    wait_until(lambda: committed() == COUNT, PATIENCE_SECONDS, "the offsets are kept under another name")
