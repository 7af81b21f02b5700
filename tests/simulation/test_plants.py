"""Bugs that were put in on purpose are found."""

import pytest

from tests.simulation.campaign import play
from tests.simulation.plants import PLANTS

SEEDS = 30


@pytest.mark.parametrize("plant", sorted(PLANTS))
def test_a_planted_bug_is_found(plant: str) -> None:
    scenario, first, bug = PLANTS[plant]
    with bug:
        assert any(play(scenario, seed).failure for seed in range(first, first + SEEDS))
