"""Brokers: what each says of itself, its settings, and keeping producers away from it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bolide.admin.cluster import broker_settings, broker_state, brokers_there, known
from bolide.admin.connection import AdminConnection
from bolide.admin.many import UNTOLD, Silent, of_brokers, of_each
from bolide.model.errors import BolideError, RouteNotFound
from bolide.model.names import RETRY_PREFIX, is_system_topic, reply_topic
from bolide.model.topic import Permission, TopicConfig
from bolide.wire.bodies.properties import format_settings
from bolide.wire.bodies.topic import decode_topic_table
from bolide.wire.codes import RequestCode

PERMISSION = "brokerPermission"


@dataclass(frozen=True, slots=True)
class BrokerReport:
    """One broker; `figures` is None when it does not tell them, and `silent` says why."""

    name: str
    cluster: str
    broker_id: int
    address: str
    figures: Mapping[str, str] | None
    silent: BolideError | None = None
    drained: bool | None = None
    """Whether it takes no messages; None when it does not tell."""

    def number(self, key: str) -> int:
        """A figure, 0 where the broker does not tell it."""
        return int(self.rate(key))

    def rate(self, key: str) -> float:
        """The newest of up to three numbers in one figure."""
        text = (self.figures or {}).get(key, "")
        try:
            return float(text.split()[0])
        except (IndexError, ValueError, OverflowError):
            return 0.0

    @property
    def version(self) -> str:
        """As people write it: V5_4_0 is 5.4.0."""
        told = (self.figures or {}).get("brokerVersionDesc", "")
        return told.removeprefix("V").replace("_", ".") or "?"

    def up_ms(self, now_ms: int) -> int:
        booted_ms = self.number("bootTimestamp")
        return max(0, now_ms - booted_ms) if booted_ms else 0


async def broker_reports(
    servers: AdminConnection, *, cluster: str | None = None, broker: str | None = None
) -> list[BrokerReport]:
    """Every broker that is registered, or those of a cluster or a name."""
    info = await brokers_there(servers)
    if broker is not None:
        known("broker", broker, info.brokers)
    if cluster is not None:
        known("cluster", cluster, info.clusters)
    places = [
        (name, info.brokers[name].cluster, broker_id, address)
        for name in sorted(info.brokers)
        for broker_id, address in sorted(info.brokers[name].addresses.items())
        if broker in (None, name) and (cluster is None or name in info.clusters[cluster])
    ]

    async def one(place: tuple[str, str, int, str]) -> BrokerReport:
        try:
            figures = await broker_state(servers, place[3])
        except UNTOLD as error:
            return BrokerReport(*place, None, error)
        return BrokerReport(*place, figures, drained=await is_drained(servers, place[3]))

    return await of_each(places, one)


async def master_address(servers: AdminConnection, broker: str) -> str:
    """Where a broker's master listens; `RouteNotFound` says which brokers there are."""
    info = await brokers_there(servers)
    address = info.brokers[known("broker", broker, info.brokers)].master
    if address is None:
        raise RouteNotFound(f"no master of the broker {broker!r} is registered with the name server")
    return address


async def change_settings(servers: AdminConnection, broker: str, settings: Mapping[str, str]) -> None:
    """Change what may change while it runs; bolide refuses the rest with the reason, and then changes nothing."""
    address = await master_address(servers, broker)
    await servers.ask(address, RequestCode.UPDATE_BROKER_CONFIG, body=format_settings(settings))


async def settings_of(servers: AdminConnection, broker: str) -> dict[str, str]:
    return await broker_settings(servers, await master_address(servers, broker))


async def is_drained(servers: AdminConnection, address: str) -> bool | None:
    """Whether a broker's settings let nobody write; None when it keeps them to itself."""
    try:
        permission = int((await broker_settings(servers, address))[PERMISSION])
    except (KeyError, ValueError, *UNTOLD):
        return None
    return not permission & Permission.WRITE


async def topics_on(
    servers: AdminConnection, brokers: Collection[str], silent: Silent | None = None
) -> dict[str, dict[str, TopicConfig]]:
    """What people have made there, by broker; see `of_brokers`."""
    info = await brokers_there(servers)
    own = {*info.clusters, *info.brokers, *map(reply_topic, info.clusters)}

    found = {name: info.brokers[known("broker", name, info.brokers)].master for name in brokers}
    addresses = {name: address for name, address in found.items() if address is not None}

    async def one(address: str) -> dict[str, TopicConfig]:
        answer = await servers.ask(address, RequestCode.GET_ALL_TOPIC_CONFIG)
        return {
            name: config
            for name, config in decode_topic_table(answer.body).items()
            if name not in own and not is_system_topic(name) and not name.startswith(RETRY_PREFIX)
        }

    return await of_brokers(addresses, one, silent)


async def only_there(servers: AdminConnection, broker: str) -> list[str]:
    """Topics that no other broker takes messages for: their producers have nowhere to go without this one."""
    info = await brokers_there(servers)
    silent: Silent = {}
    topics = await topics_on(servers, {known("broker", broker, info.brokers), *info.brokers}, silent)
    if broker in silent:  # of the others, who does not tell takes nothing
        raise silent[broker]
    here = {name for name, config in topics.pop(broker, {}).items() if config.writable}
    elsewhere = {name for others in topics.values() for name, config in others.items() if config.writable}
    return sorted(here - elsewhere)
