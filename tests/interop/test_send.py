"""Every way in which a Java producer sends: what is acknowledged arrives once, whole and in its place."""

import pytest

from tests.interop import claims, ledger
from tests.interop.stage import Stage

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 400


def test_every_sync_message_arrives_once_where_its_acknowledgement_said(stage: Stage) -> None:
    claims.arrive_once_where_acknowledged(stage, threads=4)


def test_every_async_message_arrives_once_where_its_acknowledgement_said(stage: Stage) -> None:
    claims.arrive_once_where_acknowledged(stage, mode="async")


def test_every_oneway_message_arrives_once(stage: Stage) -> None:
    claims.oneway_messages_arrive_once(stage)


def test_a_batch_becomes_single_messages_side_by_side_in_one_queue(stage: Stage) -> None:
    claims.a_batch_becomes_neighbours_in_one_queue(stage)


def test_messages_of_one_order_stay_in_one_queue_and_in_order(stage: Stage) -> None:
    """PR-05."""
    claims.orders_stay_in_one_queue(stage, listener="orderly")


def test_tags_keys_and_a_large_compressed_body_arrive_unchanged(stage: Stage) -> None:
    """PR-04."""
    claims.properties_and_large_bodies_arrive_unchanged(stage)


def test_a_producer_takes_the_queues_in_turn(stage: Stage) -> None:
    """PR-01."""
    sent = stage.produce(stage.topic(queues=4), 40).finish().sent
    assert [sum(s.queue == queue for s in sent) for queue in range(4)] == [10] * 4


def test_an_unknown_topic_is_created_with_four_queues_by_the_first_send(stage: Stage) -> None:
    claims.an_unknown_topic_is_created(stage)


def test_the_vip_channel_takes_messages_too(stage: Stage) -> None:
    topic = stage.topic()
    sent = stage.produce(topic, COUNT, vip=True).finish().sent
    messages, _ = stage.read("pull", topic, stage.name("group"))
    ledger.assert_each_once((s.body for s in sent), (m.body for m in messages))
