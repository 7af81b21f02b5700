"""The Go client 2.1.2: what it sends arrives, what it asks is answered."""

from pathlib import Path

import pytest

from tests.interop import claims, ledger
from tests.interop.stage import BareStage
from tests.peers.go import GoWitness
from tests.peers.server import ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("go")

COUNT = claims.COUNT


def test_every_sync_message_arrives_once_where_its_acknowledgement_said(go: BareStage) -> None:
    claims.arrive_once_where_acknowledged(go)


def test_every_async_message_arrives_once_where_its_acknowledgement_said(go: BareStage) -> None:
    claims.arrive_once_where_acknowledged(go, mode="async")


def test_every_oneway_message_arrives_once(go: BareStage) -> None:
    claims.oneway_messages_arrive_once(go)


def test_a_batch_becomes_single_messages_side_by_side_in_one_queue(go: BareStage) -> None:
    claims.a_batch_becomes_neighbours_in_one_queue(go)


def test_tags_keys_properties_and_large_compressed_bodies_arrive_unchanged(go: BareStage) -> None:
    claims.properties_and_large_bodies_arrive_unchanged(go)


def test_messages_of_one_order_are_consumed_in_order_under_a_lock_of_their_queue(go: BareStage) -> None:
    claims.orders_stay_in_one_queue(go, listener="orderly")


def test_an_orderly_consumer_that_fails_sees_the_same_message_again_before_the_next(go: BareStage) -> None:
    topic = go.topic(queues=1)
    sent = go.produce(topic, 3).finish().bodies
    consumer = go.consume(topic, go.name("group"), listener="orderly", fails=1)
    wait_until(lambda: len(consumer.bodies) >= 6, PATIENCE_SECONDS, lambda: f"saw {consumer.bodies}")
    assert consumer.bodies == [body for body in sent for _ in range(2)]


def test_an_unknown_topic_is_created_with_four_queues_by_the_first_send(go: BareStage) -> None:
    claims.an_unknown_topic_is_created(go)


def test_members_of_a_group_share_the_messages_and_each_is_handled_once(go: BareStage) -> None:
    claims.members_share(go)


def test_in_broadcasting_every_member_gets_every_message(go: BareStage) -> None:
    claims.in_broadcasting_everybody_gets_everything(go)


def test_a_tag_expression_lets_only_its_tags_through(go: BareStage) -> None:
    claims.only_wanted_messages_come(go, tags="red || blue")


def test_an_sql_expression_lets_only_its_messages_through(go: BareStage) -> None:
    claims.only_wanted_messages_come(go, sql="TAGS IN ('red', 'blue') AND witness IS NOT NULL")


def test_two_groups_on_one_topic_both_receive_every_message(go: BareStage) -> None:
    claims.two_groups_both_receive(go)


def test_a_group_goes_on_where_it_stopped(go: BareStage) -> None:
    claims.a_group_goes_on_where_it_stopped(go)


def test_a_group_goes_on_after_a_restart_of_the_server(
    go_witness: GoWitness, kind: ServerKind, home: Path
) -> None:
    claims.a_group_goes_on_after_a_restart_of_the_server(go_witness, Together(kind, home))


def test_queues_move_at_once_when_members_join_and_leave_and_nothing_is_lost(go: BareStage) -> None:
    claims.queues_move_when_members_join_and_leave(go)


def test_a_namespace_is_part_of_the_names_of_topics_and_groups(go: BareStage) -> None:
    claims.a_namespace_is_part_of_the_names(go)


@pytest.mark.parametrize("wanted", [{}, {"tags": "red"}, {"sql": "TAGS = 'red'"}], ids=["all", "tags", "sql"])
def test_a_pull_consumer_reads_what_its_expression_wants(go: BareStage, wanted: dict[str, str]) -> None:
    topic = go.topic()
    sent = go.produce(topic, COUNT, tags=["red", "green"]).finish().bodies
    messages, answer = go.read("pull", topic, go.name("group"), **wanted)
    expected = [body for body in sent if not wanted or ledger.number(body) % 2 == 0]
    ledger.assert_each_once(expected, (message.body for message in messages))
    assert answer["count"] == len(expected)


def test_a_polling_member_gets_the_messages_and_its_acknowledgements_are_kept(go: BareStage) -> None:
    topic, group = go.topic(), go.name("group")
    sent = go.produce(topic, COUNT).finish().bodies
    messages, _ = go.read("poll", topic, group, count=COUNT, seconds=PATIENCE_SECONDS)
    ledger.assert_each_once(sent, (message.body for message in messages))
    claims.wait_committed(go, topic, group, COUNT)


def test_the_admin_client_creates_lists_and_deletes_topics_and_lists_groups(go: BareStage) -> None:
    topic, group, broker = go.name("made"), go.name("group"), go.server.broker

    def ask(what: str, **options: object) -> dict[str, object]:
        return go.witness.ask("admin", what=what, nameserver=go.nameserver, broker=broker, **options)

    ask("create", topic=topic, queues=6)
    wait_until(lambda: go.route_numbers(topic) == {(6, 6)}, PATIENCE_SECONDS, "the topic has no route")
    assert ask("queues", topic=topic)["queues"] == 6
    assert topic in ask("topics")["topics"]  # type: ignore[operator]
    go.consume(topic, group).stop()
    assert group in ask("groups")["groups"]  # type: ignore[operator]
    ask("delete", topic=topic)
    wait_until(lambda: not go.route_numbers(topic), PATIENCE_SECONDS, "the topic still has a route")
