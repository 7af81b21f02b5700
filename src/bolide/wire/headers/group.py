"""Clients and groups: codes 35, 38, 40, 203, 204, 207, 208, 352."""

import dataclasses

from bolide.wire.schema import Header, wire


@dataclasses.dataclass(frozen=True)
class UnregisterClient(Header):
    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


@dataclasses.dataclass(frozen=True)
class GroupRequest(Header):
    """Codes 38, 40 and 203 ask with the group's name."""

    consumer_group: str


@dataclasses.dataclass(frozen=True)
class ProducerGroupRequest(Header):
    producer_group: str


@dataclasses.dataclass(frozen=True)
class GroupConfigRequest(Header):
    group: str


@dataclasses.dataclass(frozen=True)
class DeleteGroup(Header):
    group_name: str
    clean_offset: bool | None = None


@dataclasses.dataclass(frozen=True)
class ConsumeStatsRequest(Header):
    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None
    """Several topics, joined by semicolons; 5.x asks so."""
