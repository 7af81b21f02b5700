"""Addresses as people, files and servers give them: `host:port`, and lists of them."""

import ipaddress
import re
from typing import Final

from bolide.model.errors import ConfigError
from bolide.model.numbers import parse_count

PORT_MAX: Final = 65_535

_DIGITS = re.compile(r"[0-9.]+")
_NAME = re.compile(r"[\w.-]+")


def parse_address(address: str) -> tuple[str, int]:
    """`host:port` or `[v6]:port`.

    >>> parse_address("[::1]:9876")
    ('::1', 9876)
    """
    scheme, mark, _ = address.strip().partition("://")
    if mark:
        raise ConfigError(f"{address[:255]!r} is not an address: leave out {scheme[:64]}://, as in host:port")
    host, _, port = scheme.rpartition(":")
    host = host.strip("[]")
    number = parse_count(port)
    if not host or number is None:
        raise ConfigError(f"{address[:255]!r} is not an address of the form host:port")
    if not 0 < number <= PORT_MAX:
        raise ConfigError(f"{address[:255]!r} has a port that none can be: they go from 1 to {PORT_MAX}")
    return host, number


def host_of(address: str) -> str:
    """Of whoever is connected, without the port: a host has many connections, one after the other if need be.

    >>> host_of("10.0.0.1:5000")
    '10.0.0.1'
    """
    return address.rpartition(":")[0]


def check_host(setting: str, host: str) -> None:
    """Whether a setting can be an address without a port.  Whether it is somebody's, only the network knows.

    >>> check_host("brokerIP1", "10.0.0.7:10911")
    Traceback (most recent call last):
    ...
    bolide.model.errors.ConfigError: brokerIP1 is an address without a port, as in 10.0.0.7, not '10.0.0.7:10911'
    """
    bare = host.strip("[]").partition("%")[0]
    try:
        if ":" in bare or _DIGITS.fullmatch(bare):
            ipaddress.ip_address(bare)
        elif bare and not _NAME.fullmatch(bare):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"{setting} is an address without a port, as in 10.0.0.7, not {host[:255]!r}"
        ) from None


def check_addresses(setting: str, addresses: str) -> None:
    """Whether a setting is a list of addresses, perhaps an empty one."""
    try:
        if addresses:
            parse_addresses(addresses)
    except ConfigError as error:
        raise ConfigError(f"{setting}: {error}") from None


def parse_addresses(addresses: str) -> list[str]:
    """A list separated by `;` or `,`, each checked."""
    parts = [part.strip() for part in addresses.replace(",", ";").split(";") if part.strip()]
    if not parts:
        raise ConfigError("no name server address is given")
    for part in parts:
        parse_address(part)
    return parts
