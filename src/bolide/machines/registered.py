"""One broker name as a name server knows it: who is alive under it, and which topics it has."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

from bolide.machines.registration import Master, Registration
from bolide.model import limits
from bolide.model.data_version import DataVersion
from bolide.wire.bodies.route import MASTER_ID, BrokerData, QueueData


@dataclass(slots=True)
class AliveBroker:
    """One address."""

    heard_ms: int
    lifetime_ms: int
    data_version: DataVersion
    connection: Hashable
    ha_address: str
    filter_servers: Sequence[str]
    is_whole: bool = False
    """Whether all topics of the registration are taken in."""


@dataclass(slots=True)
class RegisteredBroker:
    """For reading; only the route table changes it."""

    data: BrokerData
    alive: dict[str, AliveBroker] = field(default_factory=dict)
    """By address; some may have lost their id to another one."""
    topics: dict[str, QueueData] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """Topics that this name may still have."""
        return max(0, limits.BROKER_TOPICS_MAX - len(self.topics))

    def shown(self) -> BrokerData:
        """For operators, with the addresses that are alive and hold no id."""
        if len(self.alive) == len(self.data.addresses):
            return self.data
        held = set(self.data.addresses.values())
        return replace(self.data, rivals=tuple(address for address in self.alive if address not in held))

    def master(self) -> Master:
        address = self.data.addresses.get(MASTER_ID)
        alive = None if address is None else self.alive.get(address)
        return Master() if alive is None else Master(address, alive.ha_address)

    def takes_topics_of(self, news: Registration) -> bool:
        """Of a master.  A slave only stands in where acting masters are wanted and it comes first."""
        if news.broker_id == MASTER_ID:
            return True
        return news.enable_acting_master and news.broker_id == min(self.data.addresses)

    def filter_servers(self) -> dict[str, list[str]]:
        servers = ((address, self.alive.get(address)) for address in self.data.addresses.values())
        return {
            address: list(alive.filter_servers)
            for address, alive in servers
            if alive is not None and alive.filter_servers
        }
