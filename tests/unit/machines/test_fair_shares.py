"""Fair shares: how much each may take, and who gives way."""

from hypothesis import given
from hypothesis import strategies as st

from bolide.machines.fair_shares import GIVEN_UP_AT_ONCE, FairShares


def nobody(rival: str) -> None:
    raise AssertionError(f"{rival} should give nothing up")


def test_everybody_takes_what_there_is_room_for() -> None:
    shares: FairShares[str] = FairShares(100, 60)
    assert shares.take("a", 60, nobody)
    assert not shares.take("a", 1, nobody)  # the most that one can have
    assert shares.take("b", 40, nobody)
    assert (shares.total, shares.of("a"), shares.of("c")) == (100, 60, 0)
    shares.give_back("a", 60)
    assert (shares.total, shares.of("a")) == (40, 0)


def test_who_has_most_gives_way_to_who_has_less_and_to_nobody_else() -> None:
    shares: FairShares[str] = FairShares(100, 80)
    assert shares.take("greedy", 80, nobody)
    assert shares.take("small", 20, nobody)
    asked: list[str] = []

    def give_up(rival: str) -> None:
        asked.append(rival)
        shares.give_back(rival, 10)

    assert shares.take("new", 15, give_up)
    assert (asked, shares.of("greedy"), shares.of("new")) == (["greedy", "greedy"], 60, 15)
    assert shares.take("small", 15, give_up)
    assert not shares.take("small", 20, give_up)  # it would have more than whoever has most
    assert not shares.take("greedy", 10, give_up)


def test_a_newcomer_who_needs_much_makes_nobody_give_up_all() -> None:
    shares: FairShares[str] = FairShares(1000, 1000)
    shares.take("greedy", 1000, nobody)
    asked: list[str] = []

    def give_up(rival: str) -> None:
        asked.append(rival)
        shares.give_back(rival, 1)

    assert not shares.take("new", 400, give_up)
    assert len(asked) == GIVEN_UP_AT_ONCE


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 50), st.booleans()), max_size=60))
def test_nobody_has_too_much_and_the_sum_is_right(steps: list[tuple[str, int, bool]]) -> None:
    shares: FairShares[str] = FairShares(120, 70)
    held: dict[str, list[int]] = {name: [] for name in "abcd"}

    def give_up(rival: str) -> None:
        most = max(sum(sizes) for sizes in held.values())
        assert 2 * sum(held[rival]) > most, "somebody has twice as much"
        shares.give_back(rival, held[rival].pop())

    for name, size, takes in steps:
        if takes:
            if shares.take(name, size, give_up):
                held[name].append(size)
        elif held[name]:
            shares.give_back(name, held[name].pop())
        assert {name: shares.of(name) for name in held} == {name: sum(sizes) for name, sizes in held.items()}
        assert shares.total == sum(map(sum, held.values())) <= 120
        assert max(map(sum, held.values())) <= 70
