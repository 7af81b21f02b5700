"""Scenarios: what happens in a world, and what must be true then.  Each is a coroutine function that takes a world."""

from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.scenarios.expiry import expiry
from tests.simulation.scenarios.rebalance import days, orderly, polling, rebalance
from tests.simulation.scenarios.reconnect import reconnect, relock
from tests.simulation.scenarios.registration import registration
from tests.simulation.scenarios.transactions import transactions
from tests.simulation.world import World

Scenario = Callable[[World], Coroutine[Any, Any, None]]

SCENARIOS: dict[str, Scenario] = {
    "days": days,
    "expiry": expiry,
    "orderly": orderly,
    "polling": polling,
    "rebalance": rebalance,
    "reconnect": reconnect,
    "registration": registration,
    "relock": relock,
    "transactions": transactions,
}

SHORT = ("expiry", "orderly", "polling", "rebalance", "reconnect", "registration", "relock", "transactions")
"""Those that take a second or two; the others are played when they are asked for."""
