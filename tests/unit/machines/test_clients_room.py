"""How much of the clients' state one connection can take, and who gives way when there is no room."""

import tracemalloc
from typing import Any

import pytest

from bolide.machines import clients as module
from bolide.machines.clients import SEAT_BYTES, ClientTable, Refused
from bolide.model.limits import CONNECTION_CLIENT_BYTES_MAX, CONNECTION_GROUPS_MAX
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from tests.unit.machines.test_clients_membership import beat


def groups(first: int, count: int) -> tuple[str, ...]:
    return tuple(f"g{number}" for number in range(first, first + count))


def test_a_connection_is_in_so_many_groups_of_consumers_and_producers() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", *groups(0, CONNECTION_GROUPS_MAX - 1), producers=("p",), subscriptions=())
    effects = beat(table, "A", "a", "one more", producers=("q", "p"))
    assert effects == [Refused("one more"), Refused("q")]
    assert table.group("one more") is None
    assert table.producers("q") == []
    assert beat(table, "B", "b", "one more", producers=("q",)) != []
    table.unregister("A", producer_group="p")
    beat(table, "A", "a", producers=("q",))
    assert [member.connection for member in table.producers("q")] == ["B", "A"]


def test_what_a_connection_subscribes_to_is_bounded_in_bytes_and_the_group_keeps_what_it_had() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", subscriptions=(Subscription("t", version=1),))
    long = Subscription("u", "x" * int(CONNECTION_CLIENT_BYTES_MAX), version=2)
    assert beat(table, "A", "a", "g", subscriptions=(long,)) == [Refused("g")]
    assert table.subscription("g", "t") is not None
    assert table.subscription("g", "u") is None
    assert table.member_ids("g") == ["a"]


def test_new_subscriptions_take_the_place_of_the_old_ones_and_need_no_room_beside_them() -> None:
    table: ClientTable[str] = ClientTable()
    most = int(CONNECTION_CLIENT_BYTES_MAX) * 2 // 3
    for version, letter in enumerate("xyx"):
        tags = Subscription("t", letter * most, version=version)
        assert Refused("g") not in beat(table, "A", "a", "g", subscriptions=(tags,))
        assert table.subscription("g", "t") == tags
    kept = table.bytes_kept
    again = Subscription("t", "z" * most, version=9)
    assert Refused("g") not in beat(table, "B", "b", "g", subscriptions=(again,))
    assert table.subscription("g", "t") == again
    assert table.bytes_kept == kept + SEAT_BYTES + 4  # B's seat; what A brought is no longer counted
    table.connection_lost("B")
    table.connection_lost("A")
    assert table.bytes_kept == 0


def test_subscriptions_that_are_refused_leave_the_old_ones_counted_where_they_were() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g", subscriptions=(Subscription("t", "x" * 1000, version=1),))
    beat(table, "B", "b", "g", subscriptions=(Subscription("t", "x" * 1000, version=1),))
    before = {name: table._shares.of(name) for name in "AB"}
    long = Subscription("t", "x" * int(CONNECTION_CLIENT_BYTES_MAX), version=2)
    for name in "AB":
        assert Refused("g") in beat(table, name, name.lower(), "g", subscriptions=(long,))
        assert {name: table._shares.of(name) for name in "AB"} == before


def test_who_has_most_groups_loses_one_to_who_has_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENTS_BYTES_MAX", 10 * (SEAT_BYTES + 40))
    table: ClientTable[str] = ClientTable()
    beat(table, "greedy", "a", *groups(0, 9), subscriptions=())
    assert table.bytes_kept > 9 * SEAT_BYTES
    effects = beat(table, "B", "b", "honest", subscriptions=())
    assert Refused("honest") not in effects
    assert beat(table, "C", "c", "honest", subscriptions=()) != []
    assert table.member_ids("honest") == ["b", "c"]
    assert table.group("g0") is None  # the first it was in
    assert table.member_ids("g8") == ["a"]
    assert Refused("g100") in beat(table, "greedy", "a", "g100", subscriptions=())


def test_nothing_is_left_of_a_connection_that_is_gone() -> None:
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", *groups(0, 50), producers=groups(100, 50))
    beat(table, "B", "b", *groups(0, 50))
    alone = table.bytes_kept
    table.connection_lost("A")
    assert 0 < table.bytes_kept < alone  # what A subscribed to counts for B now
    table.connection_lost("B")
    assert table.bytes_kept == 0
    assert (table._heard, table._held, table._groups, table._producers) == ({}, {}, {}, {})


def test_what_is_counted_is_about_what_it_takes() -> None:
    """Measured: groups of their own with a subscription each, and groups of producers."""
    count = 500
    table: ClientTable[str] = ClientTable()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            tags = " || ".join(f"tag {number} {tag}" for tag in range(20))
            consumer = ConsumerData(
                f"g{number}", subscriptions=(Subscription.parse(f"t{number}", tags, number),)
            )
            data = HeartbeatData(f"c{number}", (f"p{number}", f"q{number}"), (consumer,))
            table.heartbeat(f"connection {number}", data, number)
            del consumer, data
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken <= table.bytes_kept <= 2 * taken


def test_a_heartbeat_of_somebody_known_finds_him_without_a_look_at_the_others() -> None:
    """Goal: a large group costs a new member no more than a small one."""
    table: ClientTable[str] = ClientTable()
    beat(table, "A", "a", "g")
    group = table.group("g")
    assert group is not None

    class Members(dict):  # type: ignore[type-arg]
        def values(self) -> Any:
            raise AssertionError("all members are looked at")

    group.members = Members(group.members)
    beat(table, "B", "b", "g")
    beat(table, "C", "b", "g")
    assert list(group.members) == ["A", "C"]
    assert group.connection_of == {"a": "A", "b": "C"}
