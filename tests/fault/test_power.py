"""Some losses of power under load, on a real file system; `python -m tests.fault.power` runs more of the same."""

from pathlib import Path

import pytest

from tests.fault import machine, power
from tests.fault.campaign import random_seed

pytestmark = [pytest.mark.needs("java", "mvn"), pytest.mark.timeout(1800)]

LOSSES = 8


def test_power_loss_costs_nothing_under_sync_flush_and_at_most_the_flush_window_under_async_flush(
    tmp_path: Path,
) -> None:
    if missing := machine.missing_tools():
        pytest.skip(f"needs a disk that forgets: {missing}")
    progress: list[str] = []
    summary = power.campaign(tmp_path, LOSSES, random_seed(), progress.append)
    assert not summary.problems, summary.story(progress)
    assert summary.rounds == LOSSES
