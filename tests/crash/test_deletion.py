"""Power is lost before and behind every step of deleting a topic."""

import pytest

from tests.crash.deletion import ORDERS, play


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(4))
def test_power_may_go_at_any_step_of_deleting_a_topic(seed: int, order: str) -> None:
    assert "rename" in play(seed, order).steps
