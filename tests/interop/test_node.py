"""The Node client `ali-ons` 3.12.0: what it sends arrives, what it asks is answered."""

import hashlib
from pathlib import Path

import pytest

from tests.interop import claims
from tests.interop.stage import BareStage
from tests.peers.node import NodeWitness
from tests.peers.server import ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.needs("node", "npm")


def test_every_message_arrives_once_where_its_acknowledgement_said(node: BareStage) -> None:
    claims.arrive_once_where_acknowledged(node)


def test_every_message_of_many_in_flight_arrives_once_where_its_acknowledgement_said(node: BareStage) -> None:
    claims.arrive_once_where_acknowledged(node, mode="async")


def test_tags_keys_properties_and_large_compressed_bodies_arrive_unchanged(node: BareStage) -> None:
    claims.properties_and_large_bodies_arrive_unchanged(node)


def test_messages_of_one_order_stay_in_one_queue_and_in_order(node: BareStage) -> None:
    """The client spreads the orders that fall on queue 0, so these have no place of their own."""
    claims.orders_stay_in_one_queue(node, placed=lambda order: _queue_of(order) != 0)


def _queue_of(order: int) -> int:
    """The queue of four that the client means for an order."""
    return int.from_bytes(hashlib.md5(b"order-%d" % order).digest()[:4], "big") % 4


def test_a_send_to_an_unknown_topic_fails_with_the_servers_words(node: BareStage) -> None:
    """The client does not go on to the template for new topics."""
    production = node.produce(node.name("unknown"), 1)
    assert production.answer.result(PATIENCE_SECONDS)["failed"] == 1
    assert "topic" in production.errors[0]


def test_members_of_a_group_share_the_messages_and_each_is_handled_once(node: BareStage) -> None:
    claims.members_share(node)


def test_in_broadcasting_every_member_gets_every_message(node: BareStage) -> None:
    claims.in_broadcasting_everybody_gets_everything(node)


def test_a_tag_expression_lets_only_its_tags_through(node: BareStage) -> None:
    claims.only_wanted_messages_come(node, tags="red || blue")


def test_an_sql_expression_lets_only_its_messages_through(node: BareStage) -> None:
    claims.only_wanted_messages_come(node, sql="TAGS IN ('red', 'blue') AND witness IS NOT NULL")


def test_two_groups_on_one_topic_both_receive_every_message(node: BareStage) -> None:
    claims.two_groups_both_receive(node)


def test_a_group_goes_on_where_it_stopped(node: BareStage) -> None:
    claims.a_group_goes_on_where_it_stopped(node)


def test_a_group_goes_on_after_a_restart_of_the_server(
    node_witness: NodeWitness, kind: ServerKind, home: Path
) -> None:
    claims.a_group_goes_on_after_a_restart_of_the_server(node_witness, Together(kind, home))


def test_queues_move_when_members_join_and_leave_and_nothing_is_lost(node: BareStage) -> None:
    claims.queues_move_when_members_join_and_leave(node)


def test_a_namespace_is_part_of_the_names_of_topics_and_groups(node: BareStage) -> None:
    claims.a_namespace_is_part_of_the_names(node)
