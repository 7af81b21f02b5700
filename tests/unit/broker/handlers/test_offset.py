"""Progress of groups, bounds of queues, offsets by time."""

from typing import Any

import pytest

from bolide.model import java_json
from bolide.model.errors import GroupNotFound, InvalidRequest, NothingFound, RequestError, TopicNotFound
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import GroupConfig, Subscription, TopicConfig
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.bodies.offset import QueueProgress, decode_consume_stats
from tests.unit.broker.handlers.desk import Desk


@pytest.fixture
def orders(desk: Desk) -> Desk:
    """A topic of two queues with ten messages in the first, and a group."""
    desk.topic("orders", 2)
    desk.write("orders", 0, 10)
    desk.groups.put(GroupConfig("billing"))
    return desk


def commit(desk: Desk, offset: int, queue_id: int = 0, group: str = "billing", topic: str = "orders") -> int:
    return desk.ask(15, consumerGroup=group, topic=topic, queueId=queue_id, commitOffset=offset).code


def query(desk: Desk, queue_id: int = 0, **more: Any) -> int:
    answer = desk.ask(14, consumerGroup="billing", topic="orders", queueId=queue_id, **more)
    return int(answer.fields["offset"])


def test_what_was_committed_is_what_is_answered(orders: Desk) -> None:
    assert commit(orders, 7) == 0
    assert query(orders) == 7
    assert commit(orders, 3) == 0
    assert query(orders) == 3, "resetting goes backwards"


def test_a_group_never_stands_past_the_end(orders: Desk) -> None:
    commit(orders, 1_000)
    assert query(orders) == 10
    commit(orders, 5, queue_id=1)
    assert query(orders, queue_id=1) == 0


def test_a_negative_offset_is_no_progress(orders: Desk) -> None:
    """A Node client commits -1 for an empty queue."""
    assert commit(orders, -1, queue_id=1) == 0
    with pytest.raises(NothingFound):
        query(orders, queue_id=1, setZeroIfNotFound=False)


def test_a_commit_needs_a_group_a_topic_and_a_queue(orders: Desk) -> None:
    with pytest.raises(GroupNotFound):
        commit(orders, 1, group="nobody")
    with pytest.raises(TopicNotFound):
        commit(orders, 1, topic="nowhere")
    for queue_id in (-1, 2, 2**31):
        with pytest.raises(InvalidRequest):
            commit(orders, 1, queue_id=queue_id)


def test_what_was_finished_in_a_shrunk_topic_can_still_be_committed(desk: Desk) -> None:
    desk.topic("orders", 4)
    desk.groups.put(GroupConfig("billing"))
    desk.write("orders", 3, 5)
    desk.topic("orders", 2)
    assert commit(desk, 5, queue_id=3) == 0
    with pytest.raises(InvalidRequest):
        commit(desk, 5, queue_id=2)


def test_a_new_group_on_a_young_queue_begins_at_its_first_message(orders: Desk) -> None:
    """CO-07."""
    assert query(orders) == 0
    with pytest.raises(NothingFound):
        query(orders, setZeroIfNotFound=False)


def test_a_new_group_in_a_queue_that_was_never_written_to_misses_nothing(orders: Desk) -> None:
    """Were it sent to ask for the end, a message could come in between, and it would begin behind it."""
    assert query(orders, queue_id=1) == 0
    with pytest.raises(NothingFound):
        query(orders, queue_id=1, setZeroIfNotFound=False)


@pytest.mark.parametrize("queue_id", [2, -1])
def test_a_group_has_no_offset_in_a_queue_that_is_not_there(orders: Desk, queue_id: int) -> None:
    with pytest.raises(NothingFound):
        query(orders, queue_id=queue_id)


def test_an_unknown_topic_has_no_offset(desk: Desk) -> None:
    with pytest.raises(NothingFound):
        query(desk)


# ---- queues


def test_the_bounds_of_a_queue(orders: Desk) -> None:
    assert orders.ask(30, topic="orders", queueId=0).fields == {"offset": "10"}
    assert orders.ask(31, topic="orders", queueId=0).fields == {"offset": "0"}
    assert orders.ask(32, topic="orders", queueId=0).fields == {"timestamp": str(orders.clock.ms)}


@pytest.mark.parametrize(("topic", "queue_id"), [("orders", 1), ("orders", 99), ("orders", -1), ("../up", 0)])
def test_a_queue_that_nobody_has_written_to_begins_and_ends_at_0(
    orders: Desk, topic: str, queue_id: int
) -> None:
    assert orders.ask(30, topic=topic, queueId=queue_id).fields == {"offset": "0"}
    assert orders.ask(31, topic=topic, queueId=queue_id).fields == {"offset": "0"}
    assert orders.ask(32, topic=topic, queueId=queue_id).fields == {"timestamp": "-1"}
    assert orders.ask(29, topic=topic, queueId=queue_id, timestamp=1).fields == {"offset": "0"}


def test_the_first_message_at_or_after_a_time(desk: Desk) -> None:
    """AD-02."""
    desk.topic("orders")
    for _ in range(3):  # stored at 100, 200 and 300, two each
        desk.clock.ms += 100
        desk.write("orders", 0, 2)
    start_ms = desk.clock.ms - 300

    def search(after_ms: int, **more: Any) -> int:
        answer = desk.ask(29, topic="orders", queueId=0, timestamp=start_ms + after_ms, **more)
        return int(answer.fields["offset"])

    assert [search(after) for after in (0, 100, 101, 200, 300, 301)] == [0, 0, 2, 2, 4, 6]
    assert [search(after, boundaryType="UPPER") for after in (100, 199, 200, 999)] == [1, 1, 3, 5]


def test_one_message_by_its_place_in_the_log(orders: Desk) -> None:
    orders.topic("other")
    (place,) = orders.write("other", 0)
    assert b"other" in orders.ask(33, offset=place).body
    for nowhere in (place + 1, -1, 2**40):
        with pytest.raises(RequestError, match="no message"):
            orders.ask(33, offset=nowhere)


# ---- tables for tools


def test_the_whole_table_of_offsets(orders: Desk) -> None:
    commit(orders, 7)
    body = orders.ask(43).body
    assert b'"offsetTable":{"orders@billing":{0:7}}' in body
    assert java_json.loads(body)["groupTopicMap"] == {"billing": ["orders"]}


def test_progress_shows_what_is_behind_and_when_the_group_stopped(orders: Desk) -> None:
    commit(orders, 7)
    orders.offsets.note_pull("billing", "orders", 0, GroupOffset(9))
    shown = decode_consume_stats(orders.ask(208, consumerGroup="billing").body)
    assert shown == {
        MessageQueue("orders", "broker-a", 0): QueueProgress(10, 7, 9, orders.clock.ms),
        MessageQueue("orders", "broker-a", 1): QueueProgress(0, 0, 0, 0),
    }


def test_progress_of_an_online_group_covers_what_it_subscribes_to(orders: Desk) -> None:
    orders.topic("old", 1)
    commit(orders, 7)
    commit(orders, 0, topic="old")
    consumer = ConsumerData("billing", subscriptions=(Subscription("orders"),))
    orders.ask(34, HeartbeatData("c", (), (consumer,)).encode(), by="c")

    def topics_shown(**fields: Any) -> set[str]:
        body = orders.ask(208, consumerGroup="billing", **fields).body
        return {queue.topic for queue in decode_consume_stats(body)}

    assert topics_shown() == {"orders"}
    assert topics_shown(topic="old") == set()
    assert topics_shown(topicList="old;orders;nowhere") == {"old", "orders"}
    orders.lose("c")
    assert topics_shown() == {"orders", "old"}


def test_the_topics_of_a_group(orders: Desk) -> None:
    commit(orders, 7)
    assert java_json.loads(orders.ask(343, group="billing").body) == {
        "topicList": ["orders"],
        "brokerAddr": orders.state.identity.address,
    }


def test_only_read_queues_count_as_behind(orders: Desk) -> None:
    orders.topics.put(TopicConfig("orders", 1, 2))
    body = orders.ask(208, consumerGroup="billing", topic="orders").body
    assert [queue.queue_id for queue in decode_consume_stats(body)] == [0]
