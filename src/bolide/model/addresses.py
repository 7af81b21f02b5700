"""Addresses as people, files and servers give them: `host:port`, and lists of them."""

from typing import Final

from bolide.model.errors import ConfigError
from bolide.model.numbers import parse_count

PORT_MAX: Final = 65_535


def parse_address(address: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port`.

    >>> parse_address("[::1]:9876")
    ('::1', 9876)
    """
    host, _, port = address.strip().rpartition(":")
    host = host.strip("[]")
    number = parse_count(port)
    if not host or number is None or not 0 < number <= PORT_MAX:
        raise ConfigError(f"{address[:255]!r} is not an address of the form host:port")
    return host, number


def host_of(address: str) -> str:
    """Of whoever is connected, without the port: a host has many connections, one after the other if need be.

    >>> host_of("10.0.0.1:5000")
    '10.0.0.1'
    """
    return address.rpartition(":")[0]


def parse_addresses(addresses: str) -> list[str]:
    """A list separated by `;` or `,`, each checked."""
    parts = [part.strip() for part in addresses.replace(",", ";").split(";") if part.strip()]
    if not parts:
        raise ConfigError("no name server address is given")
    for part in parts:
        parse_address(part)
    return parts
