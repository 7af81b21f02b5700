"""Topics: created, changed, deleted, described."""

from typing import Any

import pytest

from bolide.broker.handlers import topic
from bolide.model import java_json
from bolide.model.errors import InvalidRequest, NothingFound, TableFull, TopicNotFound
from bolide.model.offsets import MessageQueue
from bolide.model.topic import GroupConfig, Subscription, TopicConfig
from bolide.store import deletions
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.bodies.topic import (
    QueueBounds,
    decode_groups,
    decode_topic_config,
    decode_topic_stats,
    decode_topic_table,
)
from tests.unit.broker.handlers.desk import Desk
from tests.unit.net.turns import Turns, counted_by_turn


def update(desk: Desk, topic: str = "orders", **changes: Any) -> int:
    fields: dict[str, Any] = {
        "topic": topic,
        "defaultTopic": "TBW102",
        "readQueueNums": 4,
        "writeQueueNums": 4,
        "perm": 6,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
        "order": False,
    }
    return desk.ask(17, **(fields | changes)).code


def test_a_topic_is_created_and_the_answer_waits_for_the_name_servers(desk: Desk) -> None:
    told: list[int] = []
    desk.topics.on_change(lambda: told.append(1))
    assert update(desk) == 0
    assert desk.topics.get("orders") == TopicConfig("orders", 4, 4)
    assert (told, desk.registrations) == ([1], 1)


def test_a_topic_is_changed_in_every_respect(desk: Desk) -> None:
    update(desk)
    update(desk, readQueueNums=9, writeQueueNums=7, perm=4, order=True, topicFilterType="MULTI_TAG")
    assert desk.topics.get("orders") == TopicConfig("orders", 9, 7, 4, "MULTI_TAG", order=True)


def test_attributes_are_changed_one_by_one(desk: Desk) -> None:
    update(desk, attributes="+message.type=FIFO")
    update(desk, attributes="+cleanup.policy=DELETE")
    config = desk.topics.get("orders")
    assert config is not None
    assert config.attributes == {"message.type": "FIFO", "cleanup.policy": "DELETE"}


@pytest.mark.parametrize(
    "changes",
    [
        {"perm": 8},
        {"perm": -1},
        {"topicFilterType": "REGEX"},
        {"readQueueNums": 0},
        {"writeQueueNums": 1_000_000},
        {"readQueueNums": "many"},
        {"attributes": "+message.type=MIXED"},
        {"attributes": "+cleanup.policy=COMPACTION"},
        {"attributes": "+unknown=1"},
        {"attributes": "-message.type"},
        {"topic": "../../etc"},
        {"topic": "a.b"},
        {"topic": ""},
    ],
)
def test_an_impossible_topic_is_refused_and_nothing_changes(desk: Desk, changes: dict[str, Any]) -> None:
    update(desk)
    before = java_json.loads(desk.ask(21).body)
    with pytest.raises(InvalidRequest):
        update(desk, **changes)
    assert java_json.loads(desk.ask(21).body) == before


@pytest.mark.parametrize(
    "topic", ["TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_anything", "DefaultCluster", "broker-a"]
)
def test_the_brokers_own_topics_cannot_be_changed_or_deleted(desk: Desk, topic: str) -> None:
    with pytest.raises(InvalidRequest):
        update(desk, topic)
    with pytest.raises(InvalidRequest):
        desk.ask(215, topic=topic)


def test_a_deleted_topic_leaves_nothing_behind(desk: Desk) -> None:
    desk.topic("orders", 2)
    desk.groups.put(GroupConfig("billing"))
    desk.write("orders", 0, 10)
    desk.offsets.commit("billing", "orders", 0, 5, end=10_000)
    assert desk.ask(215, topic="orders").code == 0
    with pytest.raises(TopicNotFound):
        desk.ask(351, topic="orders")
    assert desk.ask(215, topic="orders").code == 0, "deleting it again is no error"
    desk.topic("orders", 2)
    assert desk.ask(30, topic="orders", queueId=0).fields == {"offset": "0"}
    with pytest.raises(NothingFound):
        desk.ask(14, consumerGroup="billing", topic="orders", queueId=0, setZeroIfNotFound=False)


def test_a_hostile_name_is_refused_before_anything_is_deleted(desk: Desk) -> None:
    with pytest.raises(InvalidRequest):
        desk.ask(215, topic="../consumequeue")


def test_one_topic_and_all_topics(desk: Desk) -> None:
    desk.topic("orders", 2)
    one = decode_topic_config(desk.ask(351, topic="orders").body)
    assert one == TopicConfig("orders", 2, 2)
    table = decode_topic_table(desk.ask(21).body)
    assert table["orders"] == one
    assert len(table) == 15


def test_the_state_of_a_topics_queues(desk: Desk) -> None:
    desk.topics.put(TopicConfig("orders", 1, 2))
    desk.write("orders", 0, 3)
    assert decode_topic_stats(desk.ask(202, topic="orders").body) == {
        MessageQueue("orders", "broker-a", 0): QueueBounds(0, 3, desk.clock.ms),
        MessageQueue("orders", "broker-a", 1): QueueBounds(0, 0, 0),
    }
    with pytest.raises(TopicNotFound):
        desk.ask(202, topic="nowhere")


def test_the_brokers_own_topics_are_listed(desk: Desk) -> None:
    desk.topic("orders")
    listed = java_json.loads(desk.ask(305).body)["topicList"]
    assert "orders" not in listed
    assert {"TBW102", "DefaultCluster", "broker-a", "SELF_TEST_TOPIC"} <= set(listed)


def test_the_brokers_own_topics_are_looked_for_a_slice_per_turn(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic, "TOPICS_PER_TURN", 4)

    async def main() -> Turns:
        with counted_by_turn(topic, "_is_built_in") as looks:
            await desk.asked(305)
        return looks

    looks = desk.run(main())
    assert looks.total == len(desk.topics)
    assert looks.most <= 4


def test_groups_of_a_topic_are_those_online_and_those_that_were(desk: Desk) -> None:
    desk.topic("orders")
    desk.offsets.commit("former", "orders", 0, 0, end=10_000)
    consumer = ConsumerData("present", subscriptions=(Subscription("orders"),))
    desk.ask(34, HeartbeatData("c", (), (consumer,)).encode())
    assert decode_groups(desk.ask(300, topic="orders").body) == ["present", "former"]


def test_a_host_whose_deletions_take_its_share_is_refused_and_others_go_on(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletions, "DELETIONS_MAX", 8)
    for name in ("a", "b", "c", "d", "e"):
        desk.topic(name)
        desk.write(name, 0)
    desk.topic("never-written-to")
    for port, name in enumerate(("a", "b", "c")):
        assert desk.ask(215, by=f"10.6.6.6:{port}", topic=name).code == 0
    with pytest.raises(TableFull, match=r"10\.6\.6\.6 has its share"):
        desk.ask(215, by="10.6.6.6:9", topic="d")
    assert "d" in desk.topics
    assert desk.ask(215, by="10.6.6.6:9", topic="never-written-to").code == 0
    assert desk.ask(215, by="10.0.0.1:1", topic="d").code == 0
