"""Some losses of power under load, on a real file system; `python -m tests.fault.power` runs more of the same."""

import random
from pathlib import Path

import pytest

from tests.fault import machine, power
from tests.peers import java
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

LOSSES = 8


def test_power_loss_costs_nothing_under_sync_flush_and_at_most_the_flush_window_under_async_flush(
    tmp_path: Path,
) -> None:
    if missing := machine.missing_tools():
        pytest.skip(f"needs a disk that forgets: {missing}")
    seed = random.SystemRandom().randrange(1_000_000)
    progress: list[str] = [f"seed {seed}"]
    witness = Witness(java.LATEST, tmp_path / "java")
    try:
        summary = power.campaign(witness, tmp_path, LOSSES, seed, progress.append)
    finally:
        witness.stop()
    assert not summary.problems, "\n".join([*progress, *summary.problems[:20]])
    assert summary.losses == LOSSES
    assert summary.acknowledged > LOSSES * 50, "that was no load"
