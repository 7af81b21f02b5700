"""Twenty kills under the Python clients; `python -m tests.fault.python_kills` runs more of the same."""

from pathlib import Path

import pytest

from tests.fault import python_kills
from tests.fault.campaign import random_seed

pytestmark = pytest.mark.timeout(1200)

KILLS = 20


def test_every_acknowledged_message_comes_in_order_and_nothing_is_left_however_often_the_broker_is_killed(
    tmp_path: Path,
) -> None:
    """CO-10, OR-04, RY-07: blocking and asyncio clients, concurrent, orderly and polling, in both flush modes."""
    progress: list[str] = []
    summary = python_kills.campaign(tmp_path, KILLS, random_seed(), progress.append)
    assert not summary.problems, summary.story(progress)
    assert summary.rounds == KILLS
