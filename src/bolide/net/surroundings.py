"""Surroundings: what a server or a client takes from the machine it runs on.  The defaults are the real ones.

Time, chance, threads, the process, its memory and its addresses come from here and from nowhere else, so that a whole
cluster can be put into a simulated world.  Two things come by another way: files through a `Disk`, and the network and
all timers through the running event loop.  A clock's monotonic time and the loop's own time are one.
"""

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Protocol

from bolide.model.clock import Clock
from bolide.net.addresses import Addresses, SystemAddresses
from bolide.net.clock import SystemClock
from bolide.net.daemon_threads import DaemonThreads


class Threads(Protocol):
    """Makes threads of one's own, `count` of them; who asked for them shuts them down.

    The process ends without those that are `for_application`: what runs there may never return.
    """

    def __call__(self, name: str, count: int = 1, *, for_application: bool = False) -> Executor: ...


def system_threads(name: str, count: int = 1, *, for_application: bool = False) -> Executor:
    return (
        DaemonThreads(name, count) if for_application else ThreadPoolExecutor(count, thread_name_prefix=name)
    )


def system_memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@dataclass(frozen=True)
class Surroundings:
    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    threads: Threads = system_threads
    addresses: Addresses = field(default_factory=SystemAddresses)
    pid: int = field(default_factory=os.getpid)
    memory_bytes: int = field(default_factory=system_memory_bytes)
