"""Addresses: which address is ours, and which belongs to a name?  Nothing is sent to find that out."""

import asyncio
import socket
from typing import Protocol

from bolide.model.addresses import parse_address

LOOPBACK = "127.0.0.1"
LOOPBACK_V6 = "::1"


class Addresses(Protocol):
    def resolve(self, host: str) -> str:
        """The address of a name, `OSError` when it has none.  May block: only for a start."""

    def outward(self, *, v6: bool = False) -> str:
        """The address of ours that faces everybody else; loopback when there is nobody else."""

    async def facing(self, server: str) -> str:
        """The address of ours that faces `server` (`host:port`); loopback when that cannot be told."""


class SystemAddresses:
    """The machine's own."""

    def resolve(self, host: str) -> str:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])

    def outward(self, *, v6: bool = False) -> str:
        family, elsewhere, loopback = (
            (socket.AF_INET6, "2001:db8::1", LOOPBACK_V6) if v6 else (socket.AF_INET, "192.0.2.1", LOOPBACK)
        )
        try:
            return _source(family, (elsewhere, 9))
        except OSError:
            return loopback

    async def facing(self, server: str) -> str:
        host, port = parse_address(server)
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            family, _, _, _, address = found[0]
            return _source(family, address)
        except OSError:
            return LOOPBACK


def _source(family: int, address: tuple[object, ...]) -> str:
    """Connecting a datagram socket sends nothing; it only chooses a route, and with it our end."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        name: str = probe.getsockname()[0]
    return name.partition("%")[0]
