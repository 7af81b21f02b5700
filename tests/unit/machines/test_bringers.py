"""What a host brings into a table that is for all."""

from bolide.machines.bringers import Bringers
from bolide.machines.shares import SMALL_PART

COUNT_MAX, BYTES_MAX = 64, 6400


def fill(bringers: Bringers, host: str, taken: int, bytes_: int = 10) -> int:
    """Bring as much as there is room for; how many are in the table then."""
    while bringers.may_bring(
        f"{host}-{taken}", host, bytes_, count=(COUNT_MAX, taken), bytes_taken=(BYTES_MAX, taken * bytes_)
    ):
        bringers.brought(f"{host}-{taken}", host, bytes_)
        taken += 1
    return taken


def test_each_host_finds_half_of_what_is_left_and_a_quarter_is_kept_for_those_with_little() -> None:
    bringers, taken, found = Bringers(), 0, []
    for host in ("a", "b", "c", "d"):
        before, taken = taken, fill(bringers, host, taken)
        found.append(taken - before)
    assert found == [24, 12, 6, 3]


def test_bytes_are_shared_like_entries() -> None:
    bringers = Bringers()
    assert fill(bringers, "a", 0, bytes_=640) == 3
    assert fill(bringers, "b", 3, bytes_=640) == 5


def test_what_is_gone_or_somebody_elses_leaves_room_for_more() -> None:
    bringers = Bringers()
    taken = fill(bringers, "a", 0)
    bringers.forget("a-23")
    bringers.forget("a-23")
    assert fill(bringers, "a", taken - 1) == taken
    bringers.brought("a-1", "b", 10)
    bringers.brought("a-2", "b", 10)
    assert fill(bringers, "a", taken) == taken + 1


def test_many_hosts_leave_a_quarter_to_those_that_want_little() -> None:
    bringers, taken, most = Bringers(), 0, 4096
    for number in range(100):
        host = f"greedy {number}"
        while bringers.may_bring(f"{taken}", host, 1, count=(most, taken), bytes_taken=(most, taken)):
            bringers.brought(f"{taken}", host, 1)
            taken += 1
    assert taken <= 3072 + 100 * most // SMALL_PART < most
    assert bringers.may_bring("mine", "honest", 1, count=(most, taken), bytes_taken=(most, taken))


def test_who_changes_the_entry_of_another_is_asked_for_all_of_it_and_its_own_for_what_is_new() -> None:
    bringers = Bringers()
    for host in ("a", "b"):
        bringers.brought(host, host, 1000)
    without = {"count": (COUNT_MAX, 1), "bytes_taken": (BYTES_MAX, 1000)}
    assert bringers.may_bring("a", "a", 1900, **without)
    assert not bringers.may_bring("a", "b", 1900, **without)


def test_a_host_without_entries_is_forgotten() -> None:
    bringers = Bringers()
    bringers.brought("x", "a", 10)
    bringers.brought("x", "b", 20)
    bringers.forget("x")
    assert (bringers._counts, bringers._bytes, bringers._brought) == ({}, {}, {})
