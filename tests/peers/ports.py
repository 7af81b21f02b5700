"""Free TCP ports for servers under test, below the range that the kernel hands to outgoing connections.

Processes that run tests side by side have ranges of their own: a port is free until its server has started.
"""

import os
import random
import socket
import time
from collections.abc import Sequence

FIRST, LAST = 20_000, 32_000
TRIES_MAX = 500

_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _workers
_own = (LAST - FIRST) // _workers
_first = FIRST + _worker * _own
_chooser = random.Random(os.getpid() ^ time.monotonic_ns())
_given: set[int] = set()


def free_port() -> int:
    """A port for a name server."""
    return _free_block((0,))


def free_broker_port() -> int:
    """A port for a broker, which also takes port - 2 (VIP channel) and port + 1 (replication)."""
    return _free_block((-2, 0, 1))


def _free_block(steps: Sequence[int]) -> int:
    for _ in range(TRIES_MAX):
        port = _chooser.randrange(_first - min(steps), _first + _own - max(steps))
        block = {port + step for step in steps}
        if not block & _given and all(map(_is_free, block)):
            _given.update(block)
            return port
    raise RuntimeError(f"no free ports between {FIRST} and {LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("0.0.0.0", port))  # the original takes every address of the machine
        except OSError:
            return False
    return True
