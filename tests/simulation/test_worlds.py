"""Worlds from seeds keep every promise, and a seed is the same world whenever it is played.

python -m tests.simulation --seeds 1000 --workers 2     many more
python -m tests.simulation --replay rebalance:17         one of them, with everything that happens in it
"""

import os
import subprocess
import sys

import pytest

from tests.simulation.campaign import play
from tests.simulation.scenarios import SHORT

SEEDS = {
    **{"expiry": 4, "orderly": 4, "polling": 4, "rebalance": 8},
    **{"reconnect": 10, "registration": 12, "relock": 2, "transactions": 6},
}
CHUNK = 2


@pytest.mark.parametrize(
    ("scenario", "first"),
    [(name, first) for name in SHORT for first in range(0, SEEDS[name], CHUNK)],
)
def test_every_promise_is_kept(scenario: str, first: int) -> None:
    for seed in range(first, first + CHUNK):
        run = play(scenario, seed)
        assert run.failure is None, f"{run}\n{run.where}"


@pytest.mark.parametrize("scenario", ["rebalance", "reconnect"])
def test_a_seed_is_one_world_whatever_the_order_of_hashes_compiled_or_not(scenario: str) -> None:
    program = f"from tests.simulation.campaign import play; print(play({scenario!r}, 3).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "BOLIDE_PURE": pure},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed, pure in (("1", ""), ("2", "1"))
    }
    assert digests == {f"{play(scenario, 3).digest}\n"}


def test_seeds_are_different_worlds() -> None:
    assert len({play("registration", seed).digest for seed in range(5)}) == 5
