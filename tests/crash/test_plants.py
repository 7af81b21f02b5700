"""Every planted bug is found: what the harness is for, it does."""

import pytest

from tests.crash.campaign import hunt
from tests.crash.plants import PLANTS

pytestmark = pytest.mark.timeout(1200)


@pytest.mark.parametrize("plant", sorted(PLANTS))
def test_a_planted_bug_is_found(plant: str) -> None:
    assert hunt(plant) is not None
