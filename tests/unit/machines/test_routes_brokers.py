"""The route table: brokers come, change and go."""

import pytest

from bolide.machines.registration import LIFETIME_MS, lifetime
from bolide.machines.routes import Master, Registration, RouteTable
from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError, TopicNotFound
from bolide.model.steps import at_once
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.route import QueueData

BUILT_IN = (TopicConfig("SELF_TEST_TOPIC", 1, 1), TopicConfig("TBW102", 8, 8, perm=7))


def registration(
    name: str = "broker-a",
    address: str = "127.0.0.1:10911",
    broker_id: int = 0,
    *topics: TopicConfig,
    version: int = 1,
    state: int = 0,
    cluster: str = "C",
    ha_address: str = "",
    lifetime_ms: int = LIFETIME_MS,
    acting: bool = False,
) -> Registration:
    return Registration(
        cluster=cluster,
        broker_name=name,
        address=address,
        broker_id=broker_id,
        data_version=DataVersion(state_version=state, counter=version),
        topics=(*BUILT_IN, *topics),
        ha_address=ha_address,
        lifetime_ms=lifetime_ms,
        enable_acting_master=acting,
    )


def names(table: RouteTable) -> set[str]:
    return set(table.cluster_info().brokers)


def topics(table: RouteTable) -> set[str]:
    return set(at_once(table.all_topics()).topics)


def test_a_route_has_one_queue_data_per_broker_name_and_every_address_by_id() -> None:
    table = RouteTable()
    orders = TopicConfig("orders", read_queues=4, write_queues=2, perm=6, sys_flag=1)
    table.register(0, registration("a", "10.0.0.1:1", 0, orders), "c1")
    table.register(0, registration("a", "10.0.0.2:1", 1, orders), "c2")
    table.register(0, registration("b", "10.0.0.3:1", 0, orders), "c3")
    route = table.route("orders")
    assert route.queues == (QueueData("a", 4, 2, 6, 1), QueueData("b", 4, 2, 6, 1))
    assert [dict(broker.addresses) for broker in route.brokers] == [
        {0: "10.0.0.1:1", 1: "10.0.0.2:1"},
        {0: "10.0.0.3:1"},
    ]
    assert route.brokers[0].master == "10.0.0.1:1"


def test_an_unknown_topic_has_no_route() -> None:
    with pytest.raises(TopicNotFound):
        RouteTable().route("orders")


def test_a_first_registration_with_exactly_one_topic_is_refused_and_leaves_nothing() -> None:
    table = RouteTable()
    alone = Registration("C", "a", "10.0.0.1:1", 0, DataVersion(), [TopicConfig("orders")])
    with pytest.raises(RequestError):
        table.register(0, alone, "c1")
    assert names(table) == set()
    two = Registration("C", "a", "10.0.0.1:1", 0, DataVersion(), BUILT_IN)
    table.register(0, two, "c1")
    table.register(0, alone, "c1")  # from now on one topic is the news of one change
    assert topics(table) == {"SELF_TEST_TOPIC", "TBW102", "orders"}


def test_a_slave_never_writes_topics_and_learns_its_master() -> None:
    table = RouteTable()
    orders = TopicConfig("orders", 4, 4)
    answer = table.register(0, registration("a", "10.0.0.2:1", 1, orders, ha_address="10.0.0.2:9"), "c2")
    assert answer == Master()
    with pytest.raises(TopicNotFound):
        table.route("orders")
    table.register(0, registration("a", "10.0.0.1:1", 0, orders, ha_address="10.0.0.1:9"), "c1")
    slave = registration("a", "10.0.0.2:1", 1, TopicConfig("orders", 9, 9), version=2)
    assert table.register(0, slave, "c2") == Master("10.0.0.1:1", "10.0.0.1:9")
    assert table.route("orders").queues == (QueueData("a", 4, 4, 6),)


def test_a_slave_stands_in_for_its_master_only_where_acting_masters_are_wanted_and_then_read_only() -> None:
    table = RouteTable()
    table.register(0, registration("a", "10.0.0.2:1", 2, TopicConfig("orders", 4, 4), acting=True), "c2")
    assert table.route("orders").queues == (QueueData("a", 4, 4, 4),)


def test_with_acting_masters_the_loss_of_the_master_takes_the_write_permission() -> None:
    table = RouteTable()
    orders = TopicConfig("orders", 4, 4)
    table.register(0, registration("a", "10.0.0.1:1", 0, orders, acting=True), "c1")
    table.register(0, registration("a", "10.0.0.2:1", 1, orders, acting=True), "c2")
    table.connection_lost("c1")
    table.tidy()
    assert table.route("orders").queues[0].perm == 4


def test_an_address_that_takes_another_id_gives_up_its_old_one() -> None:
    table = RouteTable()
    table.register(0, registration("a", "10.0.0.2:1", 1), "c2")
    table.register(0, registration("a", "10.0.0.2:1", 0), "c2")
    assert table.member_group("a") == {0: "10.0.0.2:1"}


def test_two_names_at_one_address_live_and_leave_apart() -> None:
    """Brokers in containers like to call themselves 127.0.0.1."""
    table = RouteTable()
    table.register(0, registration("a"), "c1")
    table.register(0, registration("b"), "c2")
    assert names(table) == {"a", "b"}
    table.connection_lost("c1")
    assert names(table) == {"b"}


def test_a_broker_elected_later_keeps_its_id_against_one_elected_earlier() -> None:
    table = RouteTable()
    table.register(0, registration("a", "10.0.0.1:1", 1, state=1), "c1")
    table.register(0, registration("a", "10.0.0.2:1", 0, state=5), "c2")
    assert table.register(0, registration("a", "10.0.0.1:1", 0, state=4), "c1") == Master()
    assert table.member_group("a") == {0: "10.0.0.2:1"}
    table.register(0, registration("a", "10.0.0.1:1", 0, state=6), "c1")
    assert table.member_group("a") == {0: "10.0.0.1:1"}


def test_topics_change_only_with_the_data_version_but_missing_ones_are_always_added() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1", 0, TopicConfig("orders", 4, 4)), "c1")
    table.register(
        0, registration("a", "x:1", 0, TopicConfig("orders", 8, 8), TopicConfig("new", 1, 1)), "c1"
    )
    assert table.route("orders").queues[0].read_queues == 4
    assert table.route("new").queues[0].read_queues == 1
    table.register(0, registration("a", "x:1", 0, TopicConfig("orders", 8, 8), version=2), "c1")
    assert table.route("orders").queues[0].read_queues == 8


def test_a_topic_deleted_on_its_broker_stays_routed_unless_told_otherwise() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1", 0, TopicConfig("orders", 4, 4)), "c1")
    table.register(0, registration("a", "x:1", version=2), "c1")
    assert table.route("orders").queues
    table.register(0, registration("a", "x:1", version=3), "c1", forget_absent_topics=True)
    with pytest.raises(TopicNotFound):
        table.route("orders")
    assert table.route("TBW102").queues


def test_unregistering_takes_topics_along_with_the_last_address() -> None:
    table = RouteTable()
    orders = TopicConfig("orders", 4, 4)
    table.register(0, registration("a", "10.0.0.1:1", 0, orders), "c1")
    table.register(0, registration("a", "10.0.0.2:1", 1, orders), "c2")
    table.unregister("a", "10.0.0.1:1")
    assert table.route("orders").brokers[0].addresses == {1: "10.0.0.2:1"}
    table.unregister("a", "10.0.0.2:1")
    assert names(table) == set()
    assert topics(table) == set()


def test_a_lost_connection_removes_its_broker_at_once_and_an_outdated_one_removes_nobody() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1"), "old")
    table.register(1, registration("a", "x:1"), "new")
    assert table.connection_lost("old") == []
    assert names(table) == {"a"}
    assert table.connection_lost("new") == ["a"]
    assert names(table) == set()


def test_a_broker_that_moved_to_another_cluster_outlives_its_old_connection() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1", cluster="one"), "old")
    table.register(0, registration("a", "x:1", cluster="two"), "new")
    table.connection_lost("old")
    assert table.cluster_info().clusters == {"two": ["a"]}


def test_silence_for_longer_than_two_minutes_removes_a_broker() -> None:
    table = RouteTable()
    table.register(1000, registration("a", "x:1"), "c1")
    assert table.expire(1000 + LIFETIME_MS) == []
    assert table.expire(1001 + LIFETIME_MS) == ["c1"]
    assert names(table) == set()


def test_a_broker_may_ask_for_a_shorter_life_and_prolong_it_by_heartbeats() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1", lifetime_ms=10_000), "c1")
    table.heartbeat(9_000, "a", "x:1")
    table.heartbeat(9_000, "a", "unknown:1")
    assert table.expire(15_000) == []
    assert table.expire(19_001) == ["c1"]


def test_the_data_version_is_known_only_of_brokers_that_are_alive() -> None:
    table = RouteTable()
    assert table.data_version("a", "x:1") is None
    table.register(0, registration("a", "x:1", version=7), "c1")
    assert table.data_version("a", "x:1") == DataVersion(counter=7)
    table.connection_lost("c1")
    assert table.data_version("a", "x:1") is None


def test_a_word_from_a_known_broker_is_a_sign_of_life_and_moves_its_life_line() -> None:
    """Whatever becomes of the registration that it begins."""
    table = RouteTable()
    table.word_from(0, "a", "x:1", "c1")
    table.register(0, registration("a", "x:1"), "c1")
    table.word_from(100_000, "a", "x:1", "c2")
    assert table.connection_of("a", "x:1") == "c2"
    assert table.connection_lost("c1") == []
    assert table.expire(100_000 + LIFETIME_MS) == []
    assert table.connection_lost("c2") == ["a"]
    assert table.connection_of("a", "x:1") is None


@pytest.mark.parametrize(
    ("asked", "given"), [(None, LIFETIME_MS), (-5, 1_000), (10_000, 10_000), (1 << 62, 3_600_000)]
)
def test_no_broker_is_forgotten_at_once_or_remembered_for_ever(asked: int | None, given: int) -> None:
    assert lifetime(asked) == given


def test_of_two_brokers_with_one_name_and_id_the_later_one_is_found_and_the_other_known() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1", 0, TopicConfig("orders", 4, 4)), "c1")
    assert table.holder("a", 0) == ("x:1", "c1")
    table.register(0, registration("a", "y:1", 0, TopicConfig("orders", 8, 8)), "c2")
    assert table.holder("a", 0) == ("y:1", "c2")
    assert table.route("orders").brokers[0].addresses == {0: "y:1"}
    assert table.route("orders").brokers[0].rivals == ()  # clients do not need to know
    assert table.cluster_info().brokers["a"].rivals == ("x:1",)
    table.register(0, registration("a", "x:1", 0, TopicConfig("orders", 4, 4)), "c1")
    assert (
        table.route("orders").queues[0].read_queues == 4
    )  # its own queues, although its version is the same
    assert table.cluster_info().brokers["a"].rivals == ("y:1",)
    table.connection_lost("c2")
    assert table.cluster_info().brokers["a"].rivals == ()
    assert table.route("orders").queues


def test_with_the_last_address_that_holds_an_id_a_name_goes_whoever_else_wanted_it() -> None:
    table = RouteTable()
    table.register(0, registration("a", "x:1"), "c1")
    table.register(0, registration("a", "y:1"), "c2")
    table.connection_lost("c2")
    assert names(table) == set()
    assert table.data_version("a", "x:1") is None
    assert table.connection_lost("c1") == []
    table.register(0, registration("a", "x:1"), "c1")
    assert table.connection_lost("c1") == ["a"]
