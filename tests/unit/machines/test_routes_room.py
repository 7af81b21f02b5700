"""The route table: nobody takes it from the others, and what a step does is bounded."""

import sys
from collections import Counter
from collections.abc import Iterable
from itertools import count
from unittest import mock

import pytest

from bolide.machines import routes
from bolide.machines.route_shares import room
from bolide.machines.routes import Registration, RouteTable
from bolide.model import limits
from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError, TopicNotFound
from bolide.model.steps import Steps, at_once
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.route import QueueData

_versions = count(1)


def registration(
    name: str,
    topics: Iterable[str] = ("t1", "t2"),
    *,
    address: str = "",
    broker_id: int = 0,
    cluster: str = "C",
) -> Registration:
    """Of a broker at an address made of its name, with a new version."""
    made = [TopicConfig(topic, 4, 4) for topic in topics]
    return Registration(
        cluster, name, address or f"{name}:1", broker_id, DataVersion(counter=next(_versions)), made
    )


def fill(table: RouteTable, connection: object, name: str) -> None:
    """Take as much as this connection can get."""
    for number in range(50):
        try:
            table.register(0, registration(f"{name}{number}", many(2, f"{name}{number}-")), connection)
        except RequestError:
            return
    pytest.fail("it took it all")


def many(number: int, prefix: str = "t") -> list[str]:
    return [f"{prefix}{one}" for one in range(number)]


def topics(table: RouteTable) -> set[str]:
    return set(at_once(table.all_topics()).topics)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> RouteTable:
    """A table for 160 topics, 480 entries, 50 topics of a broker; small are connections with 4 topics."""
    monkeypatch.setattr(limits, "ROUTE_TOPICS_MAX", 160)
    monkeypatch.setattr(limits, "ROUTE_ENTRIES_MAX", 480)
    monkeypatch.setattr(limits, "SMALL_SHARE_MAX", 4)
    monkeypatch.setattr(limits, "BROKER_TOPICS_MAX", 50)
    return RouteTable()


@pytest.mark.parametrize(
    ("held", "entries", "topics_taken", "may_add"),
    [
        (0, 0, 0, 60),  # half of three quarters of 160
        (20, 20, 20, 40),
        (60, 60, 60, 0),
        (0, 0, 118, 4),  # the last quarter is for small shares
        (3, 0, 150, 1),
        (0, 0, 158, 2),
        (0, 0, 160, 0),
        (0, 480, 0, 0),
    ],
)
def test_a_share_is_half_of_what_is_free_or_a_small_one(
    small: RouteTable, held: int, entries: int, topics_taken: int, may_add: int
) -> None:
    assert room(held, entries, topics_taken) == may_add


def test_a_cluster_of_a_hundred_brokers_with_ten_thousand_topics_each_fits() -> None:
    """Counted as the table counts them; at a hundredth of the size."""
    with (
        mock.patch.object(limits, "ROUTE_ENTRIES_MAX", limits.ROUTE_ENTRIES_MAX // 100),
        mock.patch.object(limits, "ROUTE_TOPICS_MAX", limits.ROUTE_TOPICS_MAX // 100),
    ):
        table = RouteTable()
        for number in range(100):
            table.register(0, registration(f"b{number}", many(100)), number)
        assert len(table.route("t99").queues) == 100
        table.register(0, registration("b0", many(110)), 0)
        assert len(table.route("t109").queues) == 1


def test_a_broker_with_as_many_topics_as_ours_can_have_fits_eight_times() -> None:
    with (
        mock.patch.object(limits, "ROUTE_ENTRIES_MAX", limits.ROUTE_ENTRIES_MAX // 100),
        mock.patch.object(limits, "ROUTE_TOPICS_MAX", limits.ROUTE_TOPICS_MAX // 100),
    ):
        table = RouteTable()
        for number in range(8):
            table.register(0, registration(f"b{number}", many(limits.TOPICS_MAX // 100)), number)


def test_a_connection_adds_no_more_than_stay_free_for_others(small: RouteTable) -> None:
    for number in range(4):
        fill(small, number, f"hog{number}-")
    for number in range(8):  # of a quarter of the table
        small.register(0, registration(f"honest-{number}", many(4, f"honest-{number}-")), f"c{number}")
    assert "honest-7-3" in topics(small)


def test_many_names_over_one_connection_are_no_way_to_more(small: RouteTable) -> None:
    fill(small, "c1", "b")
    assert len(topics(small)) == 60
    small.register(0, registration("honest", many(20, "honest-")), "c2")


def test_what_is_known_is_never_refused_for_want_of_room(small: RouteTable) -> None:
    small.register(0, registration("a", many(40)), "c1")
    for number in range(10):
        fill(small, number, f"hog{number}-")
    small.register(0, registration("a", many(40)), "c1")
    assert small.route("t39").queues


def test_other_topics_than_those_that_are_known_are_new(small: RouteTable) -> None:
    """As many as before, so it looks as if nothing came in addition."""
    small.register(0, registration("a", many(50)), "c1")
    with pytest.raises(RequestError, match="room for 0"):
        small.register(0, registration("a", many(50, "other-")), "c1")
    assert small.route("t0").queues
    assert len(topics(small)) == 50


def test_topics_told_alone_have_the_same_bounds(small: RouteTable) -> None:
    small.register(0, registration("a", many(48)), "c1")
    for name in ("one", "two"):
        small.register_topic(name, [QueueData("a", 1, 1, 6)])
    small.register_topic("two", [QueueData("a", 2, 2, 6)])
    with pytest.raises(RequestError, match="room for 0"):
        small.register_topic("three", [QueueData("a", 1, 1, 6)])


def test_a_topic_told_of_many_brokers_at_once_needs_room_for_all_of_them(
    small: RouteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ROUTE_ENTRIES_MAX", 100)
    names = many(40, "b")
    for name in names:
        small.register(0, registration(name), name)
    rows = [QueueData(name, 1, 1, 6) for name in names]
    with pytest.raises(RequestError, match="room for 0"):
        small.register_topic("new", rows)
    with pytest.raises(TopicNotFound):
        small.route("new")
    small.register_topic("new", [*rows[:20], *rows[:20]])
    assert len(small.route("new").queues) == 20
    small.register_topic("t1", rows)
    assert small.route("t1").queues == tuple(rows)


def test_a_topic_told_of_no_broker_takes_no_place_in_the_table(small: RouteTable) -> None:
    small.register(0, registration("a"), "c1")
    for name in many(limits.ROUTE_TOPICS_MAX, "nobody-"):
        small.register_topic(name, [])
    small.register_topic("t1", [])
    assert len(small.route("t1").queues) == 1
    small.register(0, registration("b", ["new", "newer"]), "c2")
    assert topics(small) == {"t1", "t2", "new", "newer"}


def test_a_topic_of_many_brokers_costs_as_much_for_each_as_one_of_few() -> None:
    """Registered, changed and forgotten by hand: each took one step, and all rows for every row."""
    table, names, calls = RouteTable(), many(400, "b"), Counter[str]()
    for name in names:
        table.register(0, registration(name), name)
    sys.setprofile(lambda _frame, event, _arg: calls.update([event]))
    try:
        table.register_topic("new", [QueueData(name, 1, 1, 6) for name in names])
        table.register_topic("new", [QueueData(name, 2, 2, 6) for name in names])
        table.delete_topic("new", "C")
    finally:
        sys.setprofile(None)
    assert calls["call"] <= 32 * len(names)


def test_a_slave_needs_no_room_for_topics_that_it_does_not_write(small: RouteTable) -> None:
    small.register(0, registration("a", many(51), broker_id=1), "c1")
    assert topics(small) == set()


def test_brokers_names_addresses_and_clusters_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RouteTable()
    monkeypatch.setattr(limits, "BROKERS_PER_CONNECTION_MAX", 2)
    monkeypatch.setattr(limits, "CLUSTERS_MAX", 2)
    monkeypatch.setattr(limits, "ADDRESSES_PER_BROKER_MAX", 3)
    monkeypatch.setattr(limits, "BROKERS_MAX", 6)
    table.register(0, registration("a"), "c1")
    table.register(0, registration("b"), "c1")
    with pytest.raises(RequestError, match="over this connection"):
        table.register(0, registration("c"), "c1")
    table.register(0, registration("c", cluster="D"), "c2")
    with pytest.raises(RequestError, match="clusters"):
        table.register(0, registration("d", cluster="E"), "c2")
    for number in (1, 2):
        table.register(0, registration("a", address=f"x:{number}", broker_id=number), "c3")
    with pytest.raises(RequestError, match="under this name"):
        table.register(0, registration("a", address="x:3", broker_id=3), "c4")
    table.register(0, registration("d"), "c4")
    with pytest.raises(RequestError, match="brokers are registered"):
        table.register(0, registration("e"), "c4")
    table.register(0, registration("a"), "c1")  # who is there stays welcome
    assert set(table.cluster_info().brokers) == {"a", "b", "c", "d"}


def steps_and_work(table: RouteTable, steps: Steps[object] | None, method: str) -> tuple[int, int]:
    """How often a method is called in all, and at most within one step."""
    with mock.patch.object(
        RouteTable, method, autospec=True, side_effect=getattr(RouteTable, method)
    ) as called:
        total = most = 0
        while table.tidy() if steps is None else next(steps, table) is not table:
            most = max(most, called.call_count - total)
            total = called.call_count
        return called.call_count, max(most, called.call_count - total)


@pytest.mark.parametrize("topics_count", [5 * routes.STEP_TOPICS, 20 * routes.STEP_TOPICS])
def test_what_a_step_does_does_not_grow_with_the_topics(topics_count: int) -> None:
    table = RouteTable()
    begun = table.registering(0, registration("a", many(topics_count)), "c1")
    assert steps_and_work(table, begun, "_put") == (topics_count, routes.STEP_TOPICS)
    wiped = table.wiping_write_permission("a")
    assert steps_and_work(table, wiped, "_put") == (topics_count, routes.STEP_TOPICS)
    fewer = table.registering(0, registration("a", many(2)), "c1", forget_absent_topics=True)
    assert steps_and_work(table, fewer, "_drop") == (topics_count - 2, routes.STEP_TOPICS)
    table.register(0, registration("a", many(topics_count)), "c1")
    assert table.connection_lost("c1") == ["a"]
    assert steps_and_work(table, None, "_drop") == (topics_count, routes.STEP_TOPICS)


def test_a_leaving_broker_costs_what_it_has_and_not_what_others_have() -> None:
    table = RouteTable()
    table.register(0, registration("large", many(20 * routes.STEP_TOPICS)), "c1")
    table.register(0, registration("small", many(3)), "c2")
    table.connection_lost("c2")
    assert steps_and_work(table, None, "_drop") == (3, 3)


def test_a_broker_that_has_left_is_in_no_route_before_its_topics_are_swept_out() -> None:
    table = RouteTable()
    table.register(0, registration("a", many(2)), "c1")
    table.register(0, registration("b", ["t0", "own"]), "c2")
    table.connection_lost("c1")
    assert table._untidy
    assert [queue.broker_name for queue in table.route("t0").queues] == ["b"]
    with pytest.raises(TopicNotFound):
        table.route("t1")
    assert topics(table) == {"t0", "own"}


def test_a_broker_that_comes_back_at_once_is_there_with_what_it_has_now() -> None:
    table = RouteTable()
    table.register(0, registration("a", many(3)), "c1")
    table.connection_lost("c1")
    table.register(0, registration("a", ["t1", "new"]), "c2")
    for _ in range(2):
        assert topics(table) == {"t1", "new"}
        assert len(table.route("t1").queues) == 1
        while table.tidy():
            pass


def test_a_word_from_known_brokers_is_no_way_to_more_of_them_over_one_connection() -> None:
    table = RouteTable()
    for number in range(100):
        table.register(0, registration(f"b{number}"), f"c{number}")
    refused = []
    for number in range(100):
        table.word_from(5, f"b{number}", f"b{number}:1", "one")
        try:
            table.register(5, registration(f"b{number}"), "one")
        except RequestError as error:
            refused.append(str(error))
    assert len(refused) == 100 - limits.BROKERS_PER_CONNECTION_MAX
    assert "32 brokers have registered over this connection already" in refused[0]
    assert len(table.connection_lost("one")) == limits.BROKERS_PER_CONNECTION_MAX
    assert table.connection_of("b99", "b99:1") == "c99"  # which is its life line, as before


def test_a_broker_whose_connection_is_full_registers_over_it_again() -> None:
    table = RouteTable()
    for number in range(limits.BROKERS_PER_CONNECTION_MAX):
        table.register(0, registration(f"b{number}"), "one")
    table.word_from(5, "b0", "b0:1", "one")
    table.register(5, registration("b0"), "one")
    assert table.connection_of("b0", "b0:1") == "one"
