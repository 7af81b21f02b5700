"""Who is next in a fair line, and who may stand in it."""

from contextlib import ExitStack

import pytest

from bolide.machines.fair_line import FairLine, Places
from bolide.model.errors import TooBusy


def test_hosts_take_turns_and_the_connections_of_one_among_themselves() -> None:
    line: FairLine[str] = FairLine()
    for host, connection in (("a", 1), ("a", 1), ("a", 1), ("a", 2), ("b", 3), ("b", 3)):
        line.add(host, connection, f"{host}{connection}")
    order = [line.next() for _ in range(3)]
    line.add("c", 4, "c4")
    while line:
        order.append(line.next())
    assert order == ["a1", "b3", "a2", "b3", "a1", "c4", "a1"]


def test_a_host_and_a_connection_leave_places_to_others() -> None:
    places = Places("questions", 256, 4, 32)
    with ExitStack() as held:

        def taken(host: str, connection: int) -> int:
            for count in range(1000):
                try:
                    held.enter_context(places.place(host, connection))
                except TooBusy:
                    return count
            raise AssertionError

        assert taken("a", 1) == 32
        assert taken("a", 2) == 32
        assert sum(taken("a", number) for number in range(3, 20)) == 96 - 64
        assert all(taken(f"b{number}", 100 + number) >= 4 for number in range(10))
        with pytest.raises(TooBusy, match="32 of your connection"), places.place("a", 1):
            pass
        held.close()
        assert taken("a", 1) == 32, "all of it comes back"
