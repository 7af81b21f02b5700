"""Crash states: thousands of moments at which power may go.  `make crash` goes through new ones."""

from collections.abc import Callable

import pytest

from tests.crash.campaign import explore
from tests.crash.conftest import TOLD
from tests.crash.states import Run

pytestmark = pytest.mark.timeout(1200)

STATES = 5000
FIRST_SEED = 1_000_000
"""The same for everybody: a change is judged by what it does, and not by the luck of its run."""


def test_nothing_promised_is_lost_and_nothing_wrong_is_delivered(
    record_property: Callable[[str, object], None],
) -> None:
    tally = explore(STATES, FIRST_SEED, workers=2)
    record_property(TOLD, str(tally))
    assert not tally.failures, "\n".join(map(str, [tally, *tally.failures]))
    assert tally.states >= STATES


def test_a_seed_gives_the_same_states_every_time() -> None:
    """A failure is only as good as its replay."""
    counts: list[tuple[int, dict[str, bytes]]] = []
    for _ in range(2):
        run = Run(4711)
        assert run.play() is None
        counts.append((run.states, run.life.disk.files()))
    assert counts[0] == counts[1]
    alone = Run(4711, only=3)
    assert alone.play() is None
    assert alone.life.disk.files() == counts[0][1]
