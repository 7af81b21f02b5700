"""Plants: bugs put into the code on purpose.  Each must be found, or the worlds prove nothing."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from bolide.broker.safety import Safety
from bolide.client.instance import ClientInstance
from bolide.client.push import PushConsumer
from bolide.machines import clients, locks, routes
from bolide.machines.consumer import ProcessQueue
from bolide.net import link, server


def _next_offset(process: ProcessQueue) -> int:
    return process.next_offset


def _answer_at_once(safety: Safety, end: int, ready: Callable[[bool], None]) -> None:
    ready(True)


async def _do_nothing(*_: Any) -> None:
    return None


def _all_of_them(queues: Any, members: Any, me: str) -> Any:
    return sorted(queues)


PLANTS: dict[str, tuple[str, int, Any]] = {
    "a dead connection is kept": ("reconnect", 2, patch.object(link, "SILENT_MS", 10**9)),
    "offsets pass what was only pulled": (
        "rebalance",
        0,
        patch.object(ProcessQueue, "commit_offset", property(_next_offset)),
    ),
    "SYNC_FLUSH answers before the sync": (
        "reconnect",
        20,
        patch.object(Safety, "when_kept", _answer_at_once),
    ),
    "every member takes every queue": (
        "rebalance",
        0,
        patch("bolide.client.assignment.allocate_average", _all_of_them),
    ),
    "members come and go unnoticed": ("rebalance", 0, patch.object(PushConsumer, "_rebalance", _do_nothing)),
    "no heartbeat but the first": ("expiry", 0, patch.object(ClientInstance, "_beat", _do_nothing)),
    "clients are dropped too soon": ("expiry", 0, patch.object(clients, "LIFETIME_MS", 20_000)),
    "locks are given away too soon": ("expiry", 0, patch.object(locks, "LIFETIME_MS", 55_000)),
    "locks live too long": ("expiry", 0, patch.object(locks, "LIFETIME_MS", 65_000)),
    "connections are closed too soon": ("expiry", 0, patch.object(server, "IDLE_MS_MAX", 90_000)),
    "silent brokers stay": ("registration", 8, patch.object(routes.RouteTable, "expire", lambda *_: [])),
}
"""What is wrong, the scenario that must show it, a seed that did when this was written, and what makes it wrong."""
