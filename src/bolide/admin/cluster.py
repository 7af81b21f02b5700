"""Clusters and their brokers: who is there, and which masters a change goes to."""

from collections.abc import Collection, Sequence

from bolide.admin.connection import AdminConnection
from bolide.model.errors import ConfigError, NoBroker, RouteNotFound
from bolide.model.printable import printable
from bolide.wire.bodies.properties import parse_settings
from bolide.wire.bodies.route import BrokerData, ClusterInfo, decode_kv_table
from bolide.wire.codes import RequestCode

NAMED_MAX = 8
"""So many names stand in an error; a cluster may have hundreds."""


async def cluster_info(servers: AdminConnection) -> ClusterInfo:
    """Every broker that is registered, by name, and the names in each cluster."""
    answer = await servers.ask_nameserver(RequestCode.GET_BROKER_CLUSTER_INFO)
    return ClusterInfo.decode(answer.body)


async def brokers_there(servers: AdminConnection) -> ClusterInfo:
    """The same, or `NoBroker`: whoever has not found something asks this before saying that it does not exist."""
    info = await cluster_info(servers)
    if not info.brokers:
        raise NoBroker.at(servers.nameservers)
    return info


async def broker_state(servers: AdminConnection, address: str) -> dict[str, str]:
    """A broker's own words about itself, as `mqadmin brokerStatus` shows them."""
    return decode_kv_table((await servers.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO)).body)


async def broker_settings(servers: AdminConnection, address: str) -> dict[str, str]:
    """A broker's settings, as `mqadmin getBrokerConfig` shows them."""
    return parse_settings((await servers.ask(address, RequestCode.GET_BROKER_CONFIG)).body)


async def masters(
    servers: AdminConnection, *, cluster: str | None = None, broker: str | None = None
) -> Sequence[BrokerData]:
    """The broker names that a change goes to: one broker, one cluster, or the only cluster there is."""
    info = await brokers_there(servers)
    if broker is not None:
        names = [known("broker", broker, info.brokers)]
    elif cluster is not None:
        names = info.clusters[known("cluster", cluster, info.clusters)]
    elif len(info.clusters) > 1:
        raise ConfigError(
            f"there are several clusters ({listed(info.clusters)}): say which one with --cluster"
        )
    else:
        names = [name for members in info.clusters.values() for name in members]
    found = [info.brokers[name] for name in sorted(names) if info.brokers[name].master is not None]
    if not found:
        raise RouteNotFound(
            f"of {listed(names)} no master is registered with the name server: start one first"
        )
    return found


def listed(names: Collection[str]) -> str:
    """Names for an error, not too many of them.  They come from the network, so what a terminal might obey is escaped.

    >>> listed(["b", "a", "x\\x1b[2J"])
    'a, b, x\\\\x1b[2J'
    """
    shown = ", ".join(map(printable, sorted(names)[:NAMED_MAX]))
    more = len(names) - NAMED_MAX
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def known(what: str, name: str, names: Collection[str]) -> str:
    """The name, if it is one of these; `RouteNotFound` lists them otherwise."""
    if name not in names:
        raise RouteNotFound(f"there is no {what} {name!r}; the name server knows {listed(names)}")
    return name
