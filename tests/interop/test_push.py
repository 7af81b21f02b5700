"""Push consumers: who gets which message, in clustering and in broadcasting, with tags, groups and many topics."""

import statistics
import time

import pytest

from bolide import Message, Producer
from tests.interop import claims, ledger
from tests.interop.stage import Stage
from tests.peers.bolide import Bolide
from tests.peers.server import ServerKind
from tests.peers.waiting import PATIENCE_MS
from tests.peers.witness import WitnessError

pytestmark = pytest.mark.needs("java", "mvn")


def test_members_of_a_group_share_the_messages_and_each_is_handled_once(stage: Stage) -> None:
    """CO-01."""
    shares = claims.members_share(stage)
    assert shares == [pytest.approx(claims.COUNT / 3, abs=2)] * 3


def test_in_broadcasting_every_member_gets_every_message_and_the_broker_keeps_no_offset(stage: Stage) -> None:
    """CO-02."""
    claims.in_broadcasting_everybody_gets_everything(stage)


def test_a_tag_expression_lets_only_its_tags_through(stage: Stage) -> None:
    """FI-01."""
    claims.only_wanted_messages_come(stage, tags="red || blue")


def test_an_sql_expression_lets_only_its_messages_through(stage: Stage) -> None:
    """FI-03."""
    claims.only_wanted_messages_come(stage, sql="TAGS IN ('red', 'blue') AND witness IS NOT NULL")


def test_two_groups_on_one_topic_both_receive_every_message(stage: Stage) -> None:
    """CM-07."""
    claims.two_groups_both_receive(stage)


def test_one_consumer_of_many_topics_receives_all_of_them(stage: Stage) -> None:
    """CM-06."""
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
    claims.a_group_goes_on_where_it_stopped(stage)


def test_a_consumer_whose_sql_expression_is_wrong_learns_it_at_its_start(
    stage: Stage, kind: ServerKind
) -> None:
    """From us with the place."""
    words = r"character 8.*only numbers" if isinstance(kind, Bolide) else "cannot be compared"
    with pytest.raises(WitnessError, match=words):
        stage.consume(stage.topic(), stage.name("group"), sql="TAGS > 'red'")
