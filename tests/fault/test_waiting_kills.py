"""Some kills with messages that wait; `python -m tests.fault.waiting_kills` runs more of the same."""

from pathlib import Path

import pytest

from tests.fault import waiting_kills
from tests.fault.campaign import random_seed

pytestmark = pytest.mark.timeout(600)

KILLS = 6


def test_each_waiting_message_comes_once_and_never_early_however_often_the_broker_is_killed(
    tmp_path: Path,
) -> None:
    """DE-01, TM-01, TM-02, TX-01, RY-01: delayed, timed, recalled, half, given up, retried and dead messages."""
    progress: list[str] = []
    summary = waiting_kills.campaign(tmp_path, KILLS, random_seed(), progress.append)
    assert not summary.problems, summary.story(progress)
    assert summary.rounds == KILLS
    kinds = {"delayed", "timed", "recalled", "half (COMMIT)", "retried", "dead"}
    assert kinds - {"recalled"} <= summary.promised.keys()
