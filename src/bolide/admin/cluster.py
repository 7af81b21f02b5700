"""Clusters and their brokers: who is there, and which masters a change goes to."""

from collections.abc import Sequence

from bolide.admin.connection import AdminConnection
from bolide.model.errors import ConfigError, RouteNotFound
from bolide.wire.bodies.properties import parse_settings
from bolide.wire.bodies.route import BrokerData, ClusterInfo, decode_kv_table
from bolide.wire.codes import RequestCode


async def cluster_info(servers: AdminConnection) -> ClusterInfo:
    """Every broker that is registered, by name, and the names in each cluster."""
    answer = await servers.ask_nameserver(RequestCode.GET_BROKER_CLUSTER_INFO)
    return ClusterInfo.decode(answer.body)


async def broker_state(servers: AdminConnection, address: str) -> dict[str, str]:
    """A broker's own words about itself, as `mqadmin brokerStatus` shows them."""
    return decode_kv_table((await servers.ask(address, RequestCode.GET_BROKER_RUNTIME_INFO)).body)


async def broker_identity(servers: AdminConnection, address: str) -> tuple[str, str]:
    """The name and the id that the broker at an address has in its own settings."""
    settings = parse_settings((await servers.ask(address, RequestCode.GET_BROKER_CONFIG)).body)
    return settings.get("brokerName", ""), settings.get("brokerId", "")


async def masters(
    servers: AdminConnection, *, cluster: str | None = None, broker: str | None = None
) -> Sequence[BrokerData]:
    """The broker names that a change goes to: one broker, one cluster, or the only cluster there is."""
    info = await cluster_info(servers)
    if broker is not None:
        names = [_known("broker", broker, info.brokers)]
    elif cluster is not None:
        names = info.clusters[_known("cluster", cluster, info.clusters)]
    elif len(info.clusters) > 1:
        raise ConfigError(f"there are several clusters ({', '.join(sorted(info.clusters))}): say which one")
    else:
        names = [name for members in info.clusters.values() for name in members]
    found = [info.brokers[name] for name in sorted(names) if info.brokers[name].master is not None]
    if not found:
        raise RouteNotFound("no master broker is registered with the name server: start a broker first")
    return found


def _known(what: str, name: str, names: Sequence[str] | object) -> str:
    known = sorted(names) if isinstance(names, (dict, list)) else []
    if name not in known:
        raise RouteNotFound(
            f"there is no {what} {name!r}; the name server knows {', '.join(known) or 'none'}"
        )
    return name
