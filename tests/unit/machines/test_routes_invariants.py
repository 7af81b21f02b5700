"""The route table under any sequence of events keeps its invariants: nothing orphaned, nothing double.

Registrations come in one go and in steps, with whatever else happens between two steps.
"""

from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from bolide.machines import routes
from bolide.machines.routes import Registration, RouteTable
from bolide.model.data_version import DataVersion
from bolide.model.errors import RequestError
from bolide.model.steps import Steps, at_once
from bolide.model.topic import TopicConfig

clusters = st.sampled_from(["C", "D"])
names = st.sampled_from(["a", "b"])
addresses = st.sampled_from(["x:1", "y:1", "z:1"])
connections = st.integers(0, 3)
topics = st.lists(st.sampled_from(["t1", "t2", "t3", "t4"]), unique=True)

registrations = st.builds(
    Registration,
    cluster=clusters,
    broker_name=names,
    address=addresses,
    broker_id=st.integers(0, 2),
    data_version=st.builds(DataVersion, state_version=st.integers(0, 2), counter=st.integers(0, 2)),
    topics=topics.map(lambda found: [TopicConfig(name) for name in found]),
    lifetime_ms=st.sampled_from([120_000, 10]),
    enable_acting_master=st.booleans(),
)
events = st.one_of(
    st.tuples(st.just("begin"), registrations, connections, st.booleans()),
    st.tuples(st.just("step"), st.integers(0, 9)),
    st.tuples(st.just("register"), registrations, connections, st.booleans()),
    st.tuples(st.just("unregister"), names, addresses),
    st.tuples(st.just("lost"), connections),
    st.tuples(st.just("tidy")),
    st.tuples(st.just("word"), names, addresses, connections),
    st.tuples(st.just("wipe"), names),
    st.tuples(st.just("pass"), st.sampled_from([1, 11, 120_001])),
    st.tuples(st.just("delete"), st.sampled_from(["t1", "t2"]), st.sampled_from([None, "C", "D"])),
)


@given(st.lists(events, max_size=30))
def test_no_sequence_of_events_leaves_an_orphan(history: list[tuple[object, ...]]) -> None:
    table, now_ms = RouteTable(), 0
    under_way: list[Steps[Any]] = []
    with mock.patch.object(routes, "STEP_TOPICS", 1):
        for event in history:
            now_ms = _apply(table, now_ms, event, under_way)
            _check(table)
        table.expire(now_ms + 200_000)
        for steps in under_way:  # whoever is gone adds nothing more
            at_once(steps)
        assert at_once(table.all_topics()).topics == ()
        while table.tidy():
            pass
    assert table.cluster_info().brokers == {}
    assert table._entries == table._addresses == 0
    assert not table._queues
    assert not table._carried


def _apply(table: RouteTable, now_ms: int, event: tuple[object, ...], under_way: list[Steps[Any]]) -> int:
    match event:
        case ("begin", Registration() as news, connection, bool() as forget):
            steps = table.registering(now_ms, news, connection, forget_absent_topics=forget)
            try:
                if next(steps, True) is None:
                    under_way.append(steps)
            except RequestError:
                assert len(news.topics) == 1
        case ("step", int() as number) if under_way:
            next(under_way[number % len(under_way)], None)
        case ("register", Registration() as news, connection, bool() as forget):
            try:
                table.register(now_ms, news, connection, forget_absent_topics=forget)
            except RequestError:
                assert len(news.topics) == 1
        case ("unregister", str() as name, str() as address):
            table.unregister(name, address)
        case ("lost", connection):
            table.connection_lost(connection)
        case ("tidy",):
            table.tidy()
        case ("word", str() as name, str() as address, connection):
            table.word_from(now_ms, name, address, connection)
        case ("wipe", str() as name):
            under_way.append(table.wiping_write_permission(name))
        case ("pass", int() as passed):
            now_ms += passed
            table.expire(now_ms)
        case ("delete", str() as topic, None | str() as cluster):
            table.delete_topic(topic, cluster)
    return now_ms


def _check(table: RouteTable) -> None:
    brokers = table.cluster_info().brokers
    for name, broker in brokers.items():
        assert broker.addresses, f"{name} has no address"
        assert len(set(broker.addresses.values())) == len(broker.addresses), f"{name} lists an address twice"
        for address in (*broker.addresses.values(), *broker.rivals):
            carrier = table.connection_of(name, address)
            assert (name, address) in table._carried[carrier], f"{name} at {address} can never leave"
    assert sum(map(len, table._carried.values())) == table._addresses
    found = {name: set() for name in brokers}  # type: dict[str, set[str]]
    for topic in at_once(table.all_topics()).topics:
        queues = table.route(topic).queues
        assert len({queue.broker_name for queue in queues}) == len(queues), f"a broker is in {topic} twice"
        for queue in queues:
            found[queue.broker_name].add(topic)
    assert found == {name: set(table._brokers[name].topics) for name in brokers}
    assert sum(map(len, table._queues.values())) == table._entries
