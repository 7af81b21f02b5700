"""Twenty kills under load, with real Java clients; `python -m tests.fault.kills` runs more of the same."""

from pathlib import Path

import pytest

from tests.fault import kills
from tests.fault.campaign import random_seed

pytestmark = [pytest.mark.needs("java", "mvn"), pytest.mark.timeout(1800)]

KILLS = 20


def test_nothing_acknowledged_is_lost_or_changed_or_out_of_order_by_killing_the_broker(
    tmp_path: Path,
) -> None:
    progress: list[str] = []
    summary = kills.campaign(tmp_path, KILLS, random_seed(), progress.append)
    assert not summary.problems, summary.story(progress)
    assert summary.rounds == KILLS
