"""Half messages that wait for a time of their own: none that is due is passed, and few that are not are looked at."""

import random

import pytest

from bolide.machines.half_window import HalfWindow
from bolide.machines.immune_halves import BLOCK, ImmuneHalves


class Look:
    """Looks at a queue in which the numbers are immune until these times."""

    def __init__(self, untils: list[int]) -> None:
        self.untils = untils
        self.window = HalfWindow(0)
        self.immune = ImmuneHalves()

    def go(self, now_ms: int, stuck: frozenset[int] = frozenset()) -> list[int]:
        """Which are read.  What is due ends, unless it is stuck."""
        read: list[int] = []
        self.immune.begin(self.window.first)
        offset = 0
        while (place := self.window.next_open(offset, len(self.untils))) is not None:
            offset = self.immune.behind(place, now_ms)
            if offset > place:
                continue
            offset = place + 1
            read.append(place)
            if now_ms <= self.untils[place]:
                self.immune.note(place, self.untils[place])
            elif place in stuck:
                self.immune.stays()
            else:
                self.window.finish(place)
        return read


@pytest.mark.parametrize("known", [0, BLOCK, 100 * BLOCK])
def test_every_one_that_is_due_is_seen_however_few_are_remembered(
    monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    monkeypatch.setattr("bolide.machines.immune_halves.IMMUNE_HALVES_MAX", known)
    rng = random.Random(7)
    look = Look([])
    stuck = frozenset(rng.sample(range(5 * BLOCK), 3))
    for now_ms in range(0, 600, 20):
        look.untils += [now_ms + rng.choice((-1, 50, rng.randrange(400))) for _ in range(rng.randrange(400))]
        due = {place for place, until_ms in enumerate(look.untils) if until_ms < now_ms}
        due = {place for place in due if not look.window.is_finished(place)}
        assert due <= set(look.go(now_ms, stuck))
        for place in rng.sample(range(len(look.untils)), min(20, len(look.untils))):
            look.window.finish(place)


def test_each_is_read_once_and_again_when_it_is_due() -> None:
    """However the times of others fall."""
    look = Look([100 + number % 7 for number in range(3 * BLOCK)])
    assert len(look.go(10)) == 3 * BLOCK
    for now_ms in range(11, 100):
        assert look.go(now_ms) == []
    assert look.go(102) == [number for number in range(3 * BLOCK) if number % 7 < 2]
    assert look.go(106) == [number for number in range(3 * BLOCK) if 2 <= number % 7 < 6]


def test_of_too_many_a_block_is_passed_until_the_first_in_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bolide.machines.immune_halves.IMMUNE_HALVES_MAX", 0)
    look = Look([100 + number // BLOCK for number in range(3 * BLOCK)])
    last = [*range(2 * BLOCK, 3 * BLOCK)]  # more may come behind them
    look.go(10)
    assert look.go(20) == last
    assert look.go(101) == [*range(BLOCK), *last]


def test_what_is_finished_is_forgotten() -> None:
    look = Look([100] * (4 * BLOCK))
    look.go(10)
    look.window.finish_all_below(3 * BLOCK)
    look.go(20)
    assert len(look.immune._each) == 1
    assert len(look.immune._least) == 0


def test_one_that_is_due_and_stays_open_is_seen_at_every_look() -> None:
    look = Look([1000] * (2 * BLOCK))
    look.untils[5] = 0
    look.go(10, stuck=frozenset({5}))
    for now_ms in (20, 30):
        assert look.go(now_ms, stuck=frozenset({5})) == [5]
