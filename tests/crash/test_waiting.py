"""Messages that wait through any crash: each comes once, none early; planted bugs are found.

`make crash` lives new lives.
"""

from collections.abc import Callable

import pytest

from tests.crash.conftest import TOLD
from tests.crash.test_states import FIRST_SEED
from tests.crash.waiting.campaign import explore, hunt, play
from tests.crash.waiting.life import Life
from tests.crash.waiting.plants import PLANTS

pytestmark = pytest.mark.timeout(600)

STATES = 400
ONCE_BROKEN = (
    5066,
    777_099,
    777_196,
    777_834,
    9_100_230,
    465_813_868,
    3_480_857_951,
    3_480_858_036,
    3_480_858_207,
)
"""Lives in which a promise was broken when they were first lived."""

RARE = {
    "begin-a-slot-before-its-recalls-are-filed",
    "trust-the-units-of-a-killed-process",
    "leave-the-recalls-out-at-a-stop",
    "settle-halves-before-it-is-durable",
}
"""They take a hundred lives and more to show: `python -m tests.crash --plant` hunts them."""


def test_each_waiting_message_comes_once_and_in_its_time_whatever_ends_the_broker(
    record_property: Callable[[str, object], None],
) -> None:
    """DE-01, TM-01, TX-01, RY-01: delayed, timed, recalled, half, given up, retried and dead messages."""
    tally = explore(STATES, FIRST_SEED, workers=2)
    record_property(TOLD, f"with waiting messages: {tally}")
    assert not tally.failures, "\n".join(map(str, [tally, *tally.failures]))
    assert tally.states >= STATES


@pytest.mark.parametrize("seed", ONCE_BROKEN)
def test_a_life_that_broke_a_promise_once_keeps_them_all(seed: int) -> None:
    _, failure = play(seed)
    assert failure is None, failure


def test_a_seed_gives_the_same_life_every_time() -> None:
    """A failure is only as good as its replay."""
    lives = []
    for _ in range(2):
        life = Life(4711)
        life.play()
        lives.append((life.states, life.world.now, life.host.machine.disk.files()))
    assert lives[0] == lives[1]


@pytest.mark.parametrize("plant", sorted(PLANTS.keys() - RARE))
def test_a_planted_bug_is_found(plant: str) -> None:
    assert hunt(plant) is not None
