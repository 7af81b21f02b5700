"""Every way in which a Java producer sends: what is acknowledged arrives once, whole and in its place."""

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 400


def test_every_sync_message_arrives_once_where_its_acknowledgement_said(stage: Stage) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, threads=4, size=200).finish().sent
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_same_places(sent, consumer.received)
    ledger.assert_queues_have_no_holes(consumer.received)
    ledger.assert_intact(consumer.received)
    assert {s.status for s in sent} == {"SEND_OK"}


def test_every_async_message_arrives_once_where_its_acknowledgement_said(stage: Stage) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, mode="async").finish().sent
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_same_places(sent, consumer.received)
    ledger.assert_queues_have_no_holes(consumer.received)


def test_every_oneway_message_arrives_once(stage: Stage) -> None:
    topic = stage.topic()
    consumer = stage.consume(topic, stage.name("group"))
    production = stage.produce(topic, COUNT, mode="oneway").finish()
    consumer.wait_received(COUNT)
    wanted = [f"{production.name}-{i:06d}" for i in range(COUNT)]
    ledger.assert_each_once(wanted, consumer.bodies)
    ledger.assert_queues_have_no_holes(consumer.received)


def test_a_batch_becomes_single_messages_side_by_side_in_one_queue(stage: Stage) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, mode="batch", batch=32, tags="a", keys=True).finish().sent
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_same_places(sent, consumer.received)
    ledger.assert_queues_have_no_holes(consumer.received)
    assert {(m.tags, m.keys) for m in consumer.received} == {("a", f"key-{b}") for b in consumer.bodies}


def test_messages_of_one_order_stay_in_one_queue_and_in_order(stage: Stage) -> None:
    topic, orders = stage.topic(), 10
    sent = stage.produce(topic, COUNT, mode="ordered", orders=orders).finish().sent
    consumer = stage.consume(topic, stage.name("group"), listener="orderly")
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)
    ledger.assert_seen_in_send_order(consumer.received)
    for order in range(orders):
        assert len({s.queue for s in sent if ledger.number(s.body) % orders == order}) == 1


def test_tags_keys_and_a_large_compressed_body_arrive_unchanged(stage: Stage) -> None:
    topic, size = stage.topic(), 200_000
    sent = stage.produce(topic, 8, size=size, tags=["red", "green"], keys=True).finish().sent
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(len(sent))
    ledger.assert_intact(consumer.received)
    assert {(m.body, m.size, m.tags, m.keys) for m in consumer.received} == {
        (s.body, size, ("red", "green")[ledger.number(s.body) % 2], f"key-{s.body}") for s in sent
    }


def test_a_producer_takes_the_queues_in_turn(stage: Stage) -> None:
    sent = stage.produce(stage.topic(queues=4), 40).finish().sent
    assert [sum(s.queue == queue for s in sent) for queue in range(4)] == [10] * 4


def test_an_unknown_topic_is_created_with_four_queues_by_the_first_send(stage: Stage) -> None:
    topic = stage.name("unknown")
    sent = stage.produce(topic, COUNT).finish().sent
    wait_until(
        lambda: stage.route_numbers(topic), PATIENCE_SECONDS, "the name server does not know the topic"
    )
    assert stage.route_numbers(topic) == {(4, 4)}
    consumer = stage.consume(topic, stage.name("group"))
    consumer.wait_received(COUNT)
    ledger.assert_each_once((s.body for s in sent), consumer.bodies)


def test_the_vip_channel_takes_messages_too(stage: Stage) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, vip=True).finish().sent
    messages, _ = stage.read("pull", topic, stage.name("group"))
    ledger.assert_each_once((s.body for s in sent), (m.body for m in messages))
