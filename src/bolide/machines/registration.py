"""What a broker says of itself to a name server, and what it hears in return: values of the route table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bolide.model.data_version import DataVersion

LIFETIME_MS = 120_000
"""How long a broker counts as alive after its last word, unless its registration says otherwise."""

LIFETIME_MS_MIN = 1_000
LIFETIME_MS_MAX = 3_600_000
"""What a registration may say otherwise: a broker that was gone for an hour is gone."""


class NamedQueues(Protocol):
    """A topic, as much of it as a route needs."""

    @property
    def name(self) -> str: ...

    @property
    def read_queues(self) -> int: ...

    @property
    def write_queues(self) -> int: ...

    @property
    def perm(self) -> int: ...

    @property
    def sys_flag(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Registration:
    """What a broker says about itself."""

    cluster: str
    broker_name: str
    address: str
    broker_id: int
    data_version: DataVersion
    topics: Sequence[NamedQueues] = ()
    ha_address: str = ""
    lifetime_ms: int = LIFETIME_MS
    enable_acting_master: bool = False
    zone_name: str | None = None
    filter_servers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Master:
    """What a slave learns from its registration; a master learns nothing."""

    address: str | None = None
    ha_address: str | None = None


def lifetime(asked_ms: int | None) -> int:
    """How long a broker that asks for so long may be silent."""
    return LIFETIME_MS if asked_ms is None else min(max(asked_ms, LIFETIME_MS_MIN), LIFETIME_MS_MAX)
