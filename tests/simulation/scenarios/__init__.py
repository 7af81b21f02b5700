"""Scenarios: what happens in a world, and what must be true then.  Each is a coroutine function that takes a world."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.scenarios.expiry import expiry
from tests.simulation.scenarios.rebalance import days, rebalance
from tests.simulation.scenarios.reconnect import reconnect
from tests.simulation.scenarios.registration import registration
from tests.simulation.world import World

Scenario = Callable[[World], Coroutine[Any, Any, None]]

SCENARIOS: dict[str, Scenario] = {
    "days": days,
    "expiry": expiry,
    "rebalance": rebalance,
    "reconnect": reconnect,
    "registration": registration,
}

SHORT = ("expiry", "rebalance", "reconnect", "registration")
"""Those that take a second or two; the others are played when they are asked for."""
