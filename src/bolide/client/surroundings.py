"""What a client takes from the machine it runs on: time, chance, its process and its address."""

import asyncio
import os
import socket
from dataclasses import dataclass, field
from random import Random, SystemRandom

from bolide.model.clock import Clock
from bolide.net.caller import parse_address
from bolide.net.clock import SystemClock

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Surroundings:
    """The defaults are the real ones; tests give their own."""

    clock: Clock = field(default_factory=SystemClock)
    random: Random = field(default_factory=SystemRandom)
    pid: int = field(default_factory=os.getpid)


async def local_address(server: str) -> str:
    """The address of ours that faces `server`; loopback when that cannot be told.  Sends nothing."""
    host, port = parse_address(server)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # for datagrams this only chooses a route
            name: str = probe.getsockname()[0]
    except OSError:
        return LOOPBACK
    return name.partition("%")[0]
