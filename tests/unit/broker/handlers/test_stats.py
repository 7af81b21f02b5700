"""Statistics, the progress of all groups, times of messages, entries of queues, lists of topics and groups."""

from typing import Any

import pytest

from bolide.broker.statistics import BrokerStatistics
from bolide.model import java_json
from bolide.model.errors import InvalidRequest, RequestError, TableFull, TopicNotFound
from bolide.model.limits import CONFIG_LIST_MAX, QUEUE_ENTRIES_MAX
from bolide.model.topic import GroupConfig
from tests.unit.broker.handlers.desk import Desk


def figures(desk: Desk, name: str, key: str) -> dict[str, Any]:
    read: dict[str, Any] = java_json.loads(desk.ask(315, statsName=name, statsKey=key).body)
    return read


def pull(desk: Desk, topic: str, at: int = 0) -> None:
    asked: dict[str, Any] = {"consumerGroup": "billing", "topic": topic, "queueId": 0, "queueOffset": at}
    asked |= {"maxMsgNums": 32}
    asked |= {
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 0,
        "subscription": "*",
        "subVersion": 0,
    }
    assert desk.ask(11, **asked).code == 0


@pytest.fixture
def orders(desk: Desk) -> Desk:
    desk.topic("orders", 2)
    desk.groups.put(GroupConfig("billing"))
    return desk


def arrive(desk: Desk, topic: str, count: int) -> None:
    desk.write(topic, 0, count)
    for tail in desk.store.take_touched():
        desk.state.statistics.arrived(tail)


def test_what_goes_into_a_topic_shows_in_its_statistics(orders: Desk) -> None:
    with pytest.raises(RequestError, match="TOPIC_PUT_NUMS"):
        figures(orders, "TOPIC_PUT_NUMS", "orders")
    arrive(orders, "orders", 5)
    orders.clock.ms += 10_000
    arrive(orders, "orders", 7)
    seen = figures(orders, "TOPIC_PUT_NUMS", "orders")
    assert [seen[span]["sum"] for span in ("statsMinute", "statsHour", "statsDay")] == [12, 12, 12]
    assert figures(orders, "BROKER_PUT_NUMS", orders.state.identity.cluster)["statsMinute"]["sum"] == 12


def test_what_a_group_gets_shows_in_its_statistics_and_in_its_rate(orders: Desk) -> None:
    """AD-04."""
    arrive(orders, "orders", 6)
    pull(orders, "orders")
    orders.clock.ms += 2_000
    seen = figures(orders, "GROUP_GET_NUMS", "orders@billing")["statsMinute"]
    assert (seen["sum"], seen["tps"], seen["avgpt"]) == (6, 3.0, 6.0)
    assert figures(orders, "GROUP_GET_SIZE", "orders@billing")["statsMinute"]["sum"] > 6 * 4
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=6)
    assert figures(orders, "BROKER_GET_NUMS", orders.state.identity.cluster)["statsMinute"]["sum"] == 6
    assert java_json.loads(orders.ask(208, consumerGroup="billing").body)["consumeTps"] == 3.0


def test_a_topic_made_again_counts_from_nothing(orders: Desk) -> None:
    arrive(orders, "orders", 5)
    figures(orders, "TOPIC_PUT_NUMS", "orders")
    orders.ask(215, topic="orders")
    orders.topic("orders", 2)
    arrive(orders, "orders", 2)
    assert figures(orders, "TOPIC_PUT_NUMS", "orders")["statsDay"]["sum"] == 2


def test_messages_from_before_the_start_do_not_count(orders: Desk) -> None:
    orders.write("orders", 0, 5)
    later = BrokerStatistics(orders.store, orders.traffic, orders.clock, "c")
    orders.write("orders", 0, 2)
    for tail in orders.store.take_touched():
        later.arrived(tail)
    seen = later.figures("TOPIC_PUT_NUMS", "orders")
    assert seen is not None
    assert seen[0].total == 2


def test_the_progress_of_all_groups_has_totals(orders: Desk) -> None:
    arrive(orders, "orders", 6)
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=2)
    told = java_json.loads(orders.ask(317, isOrder=False).body)
    assert told["totalDiff"] == 4
    (progress,) = (one["billing"] for one in told["consumeStatsList"] if "billing" in one)
    (stats,) = progress
    assert sorted(one["consumerOffset"] for one in stats["offsetTable"].values()) == [0, 2]
    assert java_json.loads(orders.ask(317, isOrder=True).body)["totalDiff"] == 0, (
        "the topic is not an ordered one"
    )


def test_the_time_span_of_a_queue_tells_where_a_group_is(orders: Desk) -> None:
    began = orders.clock.ms
    for _ in range(3):
        orders.write("orders", 0)
        orders.clock.ms += 1_000
    orders.ask(15, consumerGroup="billing", topic="orders", queueId=0, commitOffset=1)
    spans = java_json.loads(orders.ask(303, topic="orders", group="billing").body)["consumeTimeSpanSet"]
    first, second = sorted(spans, key=lambda span: span["messageQueue"]["queueId"])
    assert (first["minTimeStamp"], first["maxTimeStamp"]) == (began, began + 2_000)
    assert (first["consumeTimeStamp"], first["delayTime"]) == (began, 2_000)
    assert (second["minTimeStamp"], second["maxTimeStamp"], second["delayTime"]) == (-1, -1, 0)
    with pytest.raises(TopicNotFound):
        orders.ask(303, topic="nowhere", group="billing")


def test_entries_of_a_queue_are_shown_from_an_index_on(orders: Desk) -> None:
    places = orders.write("orders", 0, 5)
    told = java_json.loads(orders.ask(321, topic="orders", queueId=0, index=3, count=10).body)
    assert [one["physicOffset"] for one in told["queueData"]] == places[3:]
    assert (told["minQueueIndex"], told["maxQueueIndex"]) == (0, 5)
    told = java_json.loads(
        orders.ask(321, topic="orders", queueId=0, index=-7, count=2, consumerGroup="nobody").body
    )
    assert [one["physicOffset"] for one in told["queueData"]] == places[:2]
    assert "not online" in told["filterData"]
    with pytest.raises(RequestError, match="nothing was ever stored"):
        orders.ask(321, topic="orders", queueId=1, index=0, count=1)


def test_no_more_entries_are_shown_than_the_limit(orders: Desk) -> None:
    orders.write("orders", 0, QUEUE_ENTRIES_MAX + 1)
    told = java_json.loads(orders.ask(321, topic="orders", queueId=0, index=0, count=2**31 - 1).body)
    assert len(told["queueData"]) == QUEUE_ENTRIES_MAX


def test_several_topics_are_made_at_once_or_none(desk: Desk) -> None:
    def ask(*topics: dict[str, Any]) -> int:
        return desk.ask(18, java_json.dumps({"topicConfigList": list(topics)})).code

    good = {"topicName": "one", "readQueueNums": 2, "writeQueueNums": 3, "perm": 4}
    assert ask(good, {"topicName": "two"}) == 0
    made = desk.topics.require("one")
    assert (made.read_queues, made.write_queues, made.perm) == (2, 3, 4)
    for bad in (
        {"topicName": "bad", "readQueueNums": 0},
        {"topicName": "bad name"},
        {"topicName": "SELF_TEST_TOPIC"},
        {"topicName": "bad", "perm": 99},
        {"topicName": "bad", "attributes": {"+no.such": "1"}},
        {"readQueueNums": 1},
    ):
        with pytest.raises(InvalidRequest):
            ask({"topicName": "three"}, bad)
    assert "three" not in desk.topics


def test_several_groups_are_made_at_once_or_none(desk: Desk) -> None:
    def ask(*groups: dict[str, Any]) -> int:
        return desk.ask(225, java_json.dumps({"groupConfigList": list(groups)})).code

    assert ask({"groupName": "one", "retryMaxTimes": 3}, {"groupName": "two"}) == 0
    made = desk.groups.get("one")
    assert made is not None
    assert made.retry_max_times == 3
    for bad in ({"groupName": "bad name"}, {"groupName": "bad", "retryQueueNums": -1}, {}):
        with pytest.raises(InvalidRequest):
            ask({"groupName": "three"}, bad)
    assert "three" not in desk.groups


def test_when_the_table_is_full_midway_it_is_said_how_many_were_made(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bolide.store.tables.topics.TOPICS_MAX", len(desk.topics) + 1)
    topics = [{"topicName": "one"}, {"topicName": "two"}]
    with pytest.raises(TableFull, match="the first 1 of 2 are made"):
        desk.ask(18, java_json.dumps({"topicConfigList": topics}))
    assert ("one" in desk.topics, "two" in desk.topics) == (True, False)
    monkeypatch.setattr("bolide.store.tables.groups.GROUPS_MAX", len(desk.groups) + 1)
    groups = [{"groupName": "one"}, {"groupName": "two"}]
    with pytest.raises(TableFull, match="of 2 are made"):
        desk.ask(225, java_json.dumps({"groupConfigList": groups}))


@pytest.mark.parametrize(("code", "name"), [(18, "topicConfigList"), (225, "groupConfigList")])
def test_lists_are_bounded_and_not_empty(desk: Desk, code: int, name: str) -> None:
    for body in (
        b"",
        b"[]",
        b"{}",
        java_json.dumps({name: []}),
        java_json.dumps({name: [{}] * (CONFIG_LIST_MAX + 1)}),
    ):
        with pytest.raises(InvalidRequest):
            desk.ask(code, body)
    with pytest.raises(InvalidRequest, match="bytes"):
        desk.ask(code, b" " * (1024 * 1024 + 1))


def test_after_a_day_without_messages_only_what_comes_then_is_counted(orders: Desk) -> None:
    """Of the topic, of the group that goes on pulling, and of the broker."""
    arrive(orders, "orders", 5)
    pull(orders, "orders")
    given = orders.state.statistics.given("orders", "billing")
    for _ in range(2):
        orders.run(orders.state.statistics.sample())
        orders.clock.ms += 26 * 3_600_000
    orders.run(orders.state.statistics.sample())
    arrive(orders, "orders", 1)
    given.add(1, 100)
    orders.traffic.transferred += 1
    orders.clock.ms += 1_000
    cluster = orders.config.cluster_name
    for name, key in (
        ("TOPIC_PUT_NUMS", "orders"),
        ("GROUP_GET_NUMS", "orders@billing"),
        ("BROKER_PUT_NUMS", cluster),
        ("BROKER_GET_NUMS", cluster),
    ):
        told = figures(orders, name, key)
        sums = [told[span]["sum"] for span in ("statsMinute", "statsHour", "statsDay")]
        assert sums == [1, 1, 1], name
