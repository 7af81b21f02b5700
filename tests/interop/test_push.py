"""Push consumers: who gets which message, in clustering and in broadcasting, with tags, groups and many topics."""

import statistics
import time

import pytest

from bolide import Message, Producer
from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.clients import wait_received
from tests.peers.waiting import PATIENCE_MS
from tests.peers.witness import WitnessError

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 400


def test_members_of_a_group_share_the_messages_and_each_is_handled_once(stage: Stage) -> None:
    topic, group = stage.topic(queues=6), stage.name("group")
    members = [stage.consume(topic, group) for _ in range(3)]
    for member in members:
        member.wait_queues(topic, 2)
    sent = stage.produce(topic, COUNT).finish().bodies
    wait_received(members, COUNT)
    ledger.assert_each_once(sent, [body for member in members for body in member.bodies])
    assert all(len(member.bodies) == pytest.approx(COUNT / 3, abs=2) for member in members)


def test_in_broadcasting_every_member_gets_every_message_and_the_broker_keeps_no_offset(stage: Stage) -> None:
    topic, group = stage.topic(), stage.name("group")
    members = [stage.consume(topic, group, model="broadcasting") for _ in range(2)]
    for member in members:
        member.wait_queues(topic, 4)
    sent = stage.produce(topic, COUNT).finish().bodies
    for member in members:
        member.wait_received(COUNT)
        ledger.assert_each_once(sent, member.bodies)
        member.stop()
    assert {row["committed"] for row in stage.offsets(topic, group)} == {0}  # as for a group never seen


def test_a_tag_expression_lets_only_its_tags_through(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consume(topic, stage.name("group"), tags="red || blue")
    sent = stage.produce(topic, COUNT, tags=["red", "green", "blue", "black"]).finish().bodies
    wanted = [body for body in sent if ledger.number(body) % 4 in (0, 2)]
    consumer.wait_received(len(wanted))
    ledger.assert_each_once(wanted, consumer.bodies)
    assert {message.tags for message in consumer.received} == {"red", "blue"}


def test_two_groups_on_one_topic_both_receive_every_message(stage: Stage) -> None:
    topic = stage.topic()
    consumers = [stage.consume(topic, stage.name("group")) for _ in range(2)]
    sent = stage.produce(topic, COUNT).finish().bodies
    for consumer in consumers:
        consumer.wait_received(COUNT)
        ledger.assert_each_once(sent, consumer.bodies)


def test_one_consumer_of_many_topics_receives_all_of_them(stage: Stage) -> None:
    topics = [stage.topic(queues=2) for _ in range(4)]
    consumer = stage.consume(topics, stage.name("group"))
    productions = [stage.produce(topic, 100) for topic in topics]
    sent = [body for production in productions for body in production.finish().bodies]
    consumer.wait_received(len(sent))
    ledger.assert_each_once(sent, consumer.bodies)
    assert {message.topic for message in consumer.received} == set(topics)


def test_a_waiting_consumer_gets_a_new_message_at_once(stage: Stage) -> None:
    """Far below the 15 s for which a push consumer's request is held, and below the 5 s between two scans.

    Each message is sent when the last one has come, so each meets a pull that waits; a busy machine may hold up some.
    """
    topic = stage.topic(queues=1)
    consumer = stage.consume(topic, stage.name("group"))
    delays: list[float] = []
    with Producer(stage.nameserver, group=stage.name("producer"), timeout_ms=PATIENCE_MS) as producer:
        for number in range(10):
            producer.send(Message(topic, b"%d|" % number))
            sent_at = time.monotonic()
            consumer.wait_received(number + 1)
            delays.append(time.monotonic() - sent_at)
    assert statistics.median(delays) < 1, delays


def test_a_group_goes_on_where_it_stopped(stage: Stage) -> None:
    topic, group = stage.topic(), stage.name("group")
    first = stage.consume(topic, group)
    before = stage.produce(topic, COUNT).finish().bodies
    first.wait_received(COUNT)
    first.stop()
    after = stage.produce(topic, 50).finish().bodies
    second = stage.consume(topic, group)
    second.wait_received(50)
    ledger.assert_each_once(before, first.bodies)
    ledger.assert_each_once(after, second.bodies)


def test_an_sql_expression_lets_only_its_messages_through(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consume(
        topic, stage.name("group"), sql="TAGS IN ('red', 'blue') AND witness IS NOT NULL"
    )
    sent = stage.produce(topic, COUNT, tags=["red", "green", "blue", "black"]).finish().bodies
    wanted = [body for body in sent if ledger.number(body) % 4 in (0, 2)]
    consumer.wait_received(len(wanted))
    ledger.assert_each_once(wanted, consumer.bodies)


def test_a_consumer_whose_sql_expression_is_wrong_learns_the_place_at_its_start(stage: Stage) -> None:
    with pytest.raises(WitnessError, match=r"character 8.*only numbers"):
        stage.consume(stage.topic(), stage.name("group"), sql="TAGS > 'red'")
