"""Messages that wait through any crash: each comes once, none early, new lives in every run; planted bugs are found."""

import secrets
from collections.abc import Callable

import pytest

from tests.crash.conftest import TOLD
from tests.crash.waiting.campaign import explore, hunt
from tests.crash.waiting.life import Life
from tests.crash.waiting.plants import PLANTS

pytestmark = pytest.mark.timeout(600)

STATES = 150
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
    tally = explore(STATES, secrets.randbelow(1 << 32), workers=2)
    record_property(TOLD, f"with waiting messages: {tally}")
    assert not tally.failures, "\n".join(map(str, [tally, *tally.failures]))
    assert tally.states >= STATES


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
