"""How long it takes from the start of the process to the first acknowledged send, seen by a bare socket."""

import time
from pathlib import Path

from tests.bench.sides import running_server
from tests.peers import frames
from tests.peers.server import READY_SECONDS, Together
from tests.peers.waiting import wait_until

PROBE_SECONDS = 0.005


def seconds_to_first_send(name: str, home: Path) -> float:
    """With an empty store; the clock starts when the first process of the server does."""
    with running_server(name, home, wait=False) as server:
        wait_until(lambda: _acknowledged(server), READY_SECONDS, "no send is acknowledged", PROBE_SECONDS)
        return time.monotonic() - server.processes[0].started_at


def _acknowledged(server: Together) -> bool:
    return frames.try_send(server.nameserver, server.broker, "first")
