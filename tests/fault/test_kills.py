"""Twenty kills under load, with real Java clients; `python -m tests.fault.kills` runs more of the same."""

import random
from pathlib import Path

import pytest

from tests.fault import kills
from tests.peers import java
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

KILLS = 20
COME_BACK_SECONDS_MAX = 20
"""The promise is 5 s; this is what a machine busy with other things may make of it."""


def test_nothing_acknowledged_is_lost_or_changed_or_out_of_order_by_killing_the_broker(
    tmp_path: Path,
) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    progress: list[str] = [f"seed {seed}"]
    witness = Witness(java.LATEST, tmp_path / "java")
    try:
        summary = kills.campaign(witness, tmp_path, KILLS, seed, progress.append)
    finally:
        witness.stop()
    assert not summary.problems, "\n".join([*progress, *summary.problems[:20]])
    assert summary.kills == KILLS
    assert summary.acknowledged > KILLS * 100, "that was no load"
    assert max(summary.first_send_seconds) < COME_BACK_SECONDS_MAX, str(summary)
