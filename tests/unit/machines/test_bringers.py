"""What a host brings into a table that is for all."""

from bolide.machines.bringers import Bringers

COUNT_MAX, BYTES_MAX = 64, 6400


def fill(bringers: Bringers, host: str, taken: int, bytes_: int = 10) -> int:
    """Bring as much as there is room for; how many are in the table then."""
    while bringers.may_bring(
        host, bytes_=bytes_, count_free=COUNT_MAX - taken, bytes_free=BYTES_MAX - taken * bytes_
    ):
        bringers.brought(f"{host}-{taken}", host, bytes_)
        taken += 1
    return taken


def test_each_host_finds_half_of_what_is_left() -> None:
    bringers, taken, found = Bringers(), 0, []
    for host in ("a", "b", "c", "d"):
        before, taken = taken, fill(bringers, host, taken)
        found.append(taken - before)
    assert found == [32, 16, 8, 4]


def test_bytes_are_shared_like_entries() -> None:
    bringers = Bringers()
    assert fill(bringers, "a", 0, bytes_=640) == 5
    assert fill(bringers, "b", 5, bytes_=640) == 8


def test_what_is_gone_or_somebody_elses_leaves_room_for_more() -> None:
    bringers = Bringers()
    taken = fill(bringers, "a", 0)
    bringers.forget("a-31")
    bringers.forget("a-31")
    assert fill(bringers, "a", taken - 1) == taken
    bringers.brought("a-1", "b", 10)
    assert fill(bringers, "a", taken) == taken + 1


def test_a_host_without_entries_is_forgotten() -> None:
    bringers = Bringers()
    bringers.brought("x", "a", 10)
    bringers.brought("x", "b", 20)
    bringers.forget("x")
    assert (bringers._counts, bringers._bytes, bringers._brought) == ({}, {}, {})
