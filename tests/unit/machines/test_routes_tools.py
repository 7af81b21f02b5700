"""The route table: what tools ask and what operators change."""

import pytest

from bolide.machines.routes import Registration, RouteTable
from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError, TopicNotFound
from bolide.model.steps import Steps, at_once
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.route import QueueData, TopicList


def table_of(*rows: tuple[str, str, list[TopicConfig]]) -> RouteTable:
    """Brokers given as cluster, name, topics; each at an address made of its name."""
    table = RouteTable()
    for cluster, name, topics in rows:
        topics = [*topics, TopicConfig("SELF_TEST_TOPIC", 1, 1)]
        table.register(0, Registration(cluster, name, f"{name}:1", 0, DataVersion(counter=1), topics), name)
    return table


def perms(table: RouteTable, topic: str) -> dict[str, int]:
    return {queue.broker_name: queue.perm for queue in table.route(topic).queues}


def listed(listing: Steps[TopicList]) -> set[str]:
    return set(at_once(listing).topics)


def test_wiping_and_adding_write_permission_changes_all_topics_of_one_broker_name() -> None:
    topics = [TopicConfig("orders", 4, 4), TopicConfig("TBW102", 8, 8, perm=7)]
    table = table_of(("C", "a", topics), ("C", "b", topics))
    assert at_once(table.wiping_write_permission("a")) == 3
    assert perms(table, "orders") == {"a": 4, "b": 6}
    assert perms(table, "TBW102") == {"a": 5, "b": 7}
    assert at_once(table.adding_write_permission("a")) == 3
    assert perms(table, "TBW102") == {"a": 6, "b": 7}
    assert at_once(table.wiping_write_permission("nobody")) == 0


def test_a_wiped_permission_survives_equal_registrations_and_ends_with_a_changed_one() -> None:
    topics = [TopicConfig("orders", 4, 4), TopicConfig("SELF_TEST_TOPIC", 1, 1)]
    table = table_of(("C", "a", topics))
    at_once(table.wiping_write_permission("a"))
    table.register(1, Registration("C", "a", "a:1", 0, DataVersion(counter=1), topics), "a")
    assert perms(table, "orders") == {"a": 4}
    table.register(2, Registration("C", "a", "a:1", 0, DataVersion(counter=2), topics), "a")
    assert perms(table, "orders") == {"a": 6}


def test_a_topic_can_be_deleted_everywhere_or_in_one_cluster() -> None:
    topics = [TopicConfig("orders", 4, 4), TopicConfig("bills", 4, 4)]
    table = table_of(("one", "a", topics), ("two", "b", topics))
    table.delete_topic("orders", "one")
    assert perms(table, "orders") == {"b": 6}
    table.delete_topic("bills")
    with pytest.raises(TopicNotFound):
        table.route("bills")
    table.delete_topic("never seen")


def test_one_topic_of_known_brokers_can_be_registered_alone() -> None:
    table = table_of(("C", "a", [TopicConfig("orders", 4, 4)]))
    table.register_topic("bills", [QueueData("a", 2, 2, 6)])
    assert table.route("bills").queues == (QueueData("a", 2, 2, 6),)
    with pytest.raises(RequestError):
        table.register_topic("bills", [QueueData("a", 9, 9, 6), QueueData("stranger", 2, 2, 6)])
    assert table.route("bills").queues == (QueueData("a", 2, 2, 6),)


def test_topic_lists_by_cluster_and_of_system_names() -> None:
    table = table_of(
        ("one", "a", [TopicConfig("orders")]),
        ("one", "b", [TopicConfig("bills")]),
        ("two", "c", [TopicConfig("orders")]),
    )
    assert listed(table.all_topics()) == {"orders", "bills", "SELF_TEST_TOPIC"}
    assert listed(table.topics_of_cluster("two")) == {"orders", "SELF_TEST_TOPIC"}
    with pytest.raises(RequestError):
        table.topics_of_cluster("three")
    assert set(table.system_topics().topics) == {"one", "two", "a", "b", "c"}
    assert table.system_topics().broker_address == "a:1"
    assert RouteTable().system_topics().broker_address is None


def test_topic_lists_by_unit_flags() -> None:
    flags = {"none": 0, "unit": 1, "subscribed": 2, "both": 3}
    table = table_of(("C", "a", [TopicConfig(name, sys_flag=flag) for name, flag in flags.items()]))
    assert listed(table.unit_topics()) == {"unit", "both"}
    assert listed(table.unit_subscription_topics()) == {"subscribed", "both"}
    assert listed(table.unit_subscription_topics_without_unit()) == {"subscribed"}


def test_cluster_info_lists_brokers_by_name_and_names_by_cluster() -> None:
    table = table_of(
        ("one", "a", [TopicConfig("t")]), ("one", "b", [TopicConfig("t")]), ("two", "c", [TopicConfig("t")])
    )
    info = table.cluster_info()
    assert info.clusters == {"one": ["a", "b"], "two": ["c"]}
    assert info.brokers["c"].addresses == {0: "c:1"}
    assert table.member_group("b") == {0: "b:1"}
    assert table.member_group("nobody") == {}


def test_filter_servers_appear_in_the_routes_of_their_broker() -> None:
    table = RouteTable()
    topics = [TopicConfig("orders"), TopicConfig("SELF_TEST_TOPIC")]
    table.register(
        0, Registration("C", "a", "a:1", 0, DataVersion(), topics, filter_servers=["f:1", "f:2"]), "c1"
    )
    assert table.route("orders").filter_servers == {"a:1": ["f:1", "f:2"]}
