"""Plants: bugs put into the code on purpose.  Each must be found, or the worlds prove nothing."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from bolide.broker.safety import Safety
from bolide.client import checks
from bolide.client.hub import Hub
from bolide.client.locking import Lock, Locking
from bolide.client.push import PushConsumer
from bolide.client.results import Transaction
from bolide.client.transactions import Transactions
from bolide.machines import clients, locks, routes
from bolide.machines.consumer import ProcessQueue
from bolide.machines.fetched import FetchedQueue
from bolide.net import caller_link, server


def _next_offset(process: ProcessQueue) -> int:
    return process.next_offset


def _given(fetched: FetchedQueue) -> int:
    return fetched.given


def _answer_at_once(safety: Safety, end: int, ready: Callable[[bool], None]) -> None:
    ready(True)


async def _do_nothing(*_: Any) -> None:
    return None


def _all_of_them(queues: Any, members: Any, me: str) -> Any:
    return sorted(queues)


async def _as_if_locked(locking: Locking, queue: Any) -> Lock:
    address = await locking._instance.queue_address(queue)
    return Lock(locking._clock.monotonic_ms(), await locking._instance.link(address))


PLANTS: dict[str, tuple[str, int, Any]] = {
    "a dead connection is kept": ("reconnect", 2, patch.object(caller_link, "SILENT_MS", 10**9)),
    "offsets pass what was only pulled": (
        "rebalance",
        0,
        patch.object(ProcessQueue, "commit_offset", property(_next_offset)),
    ),
    "offsets pass what was only given out": (
        "polling",
        0,
        patch.object(FetchedQueue, "done", property(_given, lambda *_: None), create=True),
    ),
    "SYNC_FLUSH answers before the sync": (
        "reconnect",
        20,
        patch.object(Safety, "when_kept", _answer_at_once),
    ),
    "every member takes every queue": (
        "rebalance",
        0,
        patch.object(checks, "strategy", lambda _: _all_of_them),
    ),
    "locks are taken for granted": ("orderly", 0, patch.object(Locking, "lock_one", _as_if_locked)),
    "members come and go unnoticed": ("rebalance", 0, patch.object(PushConsumer, "_rebalance", _do_nothing)),
    "no heartbeat but the first": ("expiry", 0, patch.object(Hub, "_beat", _do_nothing)),
    "clients are dropped too soon": ("expiry", 0, patch.object(clients, "LIFETIME_MS", 20_000)),
    "locks are given away too soon": ("expiry", 0, patch.object(locks, "LIFETIME_MS", 55_000)),
    "locks live too long": ("expiry", 0, patch.object(locks, "LIFETIME_MS", 65_000)),
    "connections are closed too soon": ("expiry", 0, patch.object(server, "IDLE_MS_MAX", 90_000)),
    "who does not know commits": (
        "transactions",
        0,
        patch("bolide.client.transactions.not_known", lambda *_: Transaction.COMMIT),
    ),
    "brokers ask in vain": ("transactions", 0, patch.object(Transactions, "serve", lambda *_: None)),
    "silent brokers stay": ("registration", 8, patch.object(routes.RouteTable, "expire", lambda *_: [])),
}
"""What is wrong, the scenario that must show it, a seed that did when this was written, and what makes it wrong."""
