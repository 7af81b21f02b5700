"""The name server: codes 100 to 106, 205, 216, 217, 219, 224, 322, 327, 901, 904."""

import dataclasses

from bolide.wire.schema import Header, Int, Long, wire


@dataclasses.dataclass(frozen=True)
class RegisterBroker(Header):
    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str = wire(required=True, default="")
    broker_id: Long = wire(required=True, default=0)
    compressed: bool = False
    body_crc32: Int = wire("bodyCrc32", default=0)
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None


@dataclasses.dataclass(frozen=True)
class RegisterBrokerAnswer(Header):
    ha_server_addr: str | None = None
    master_addr: str | None = None


@dataclasses.dataclass(frozen=True)
class BrokerRequest(Header):
    """Codes 104 and 322 name the broker with these fields."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


@dataclasses.dataclass(frozen=True)
class BrokerHeartbeat(BrokerRequest):
    """Code 904 may leave the number out."""

    broker_id: Long = 0


@dataclasses.dataclass(frozen=True)
class DataVersionAnswer(Header):
    changed: bool


@dataclasses.dataclass(frozen=True)
class RouteRequest(Header):
    topic: str
    accept_standard_json_only: bool = False


@dataclasses.dataclass(frozen=True)
class BrokerNameRequest(Header):
    broker_name: str
    cluster_name: str | None = None


@dataclasses.dataclass(frozen=True)
class WipePermAnswer(Header):
    wipe_topic_count: Int


@dataclasses.dataclass(frozen=True)
class AddPermAnswer(Header):
    add_topic_count: Int


@dataclasses.dataclass(frozen=True)
class PlaceTaken(Header):
    """Of a name: what is seen of it has changed, and the broker at this address is not there any more."""

    min_broker_name: str
    offline_broker_addr: str


@dataclasses.dataclass(frozen=True)
class KvRequest(Header):
    namespace: str
    key: str


@dataclasses.dataclass(frozen=True)
class PutKv(Header):
    namespace: str
    key: str
    value: str


@dataclasses.dataclass(frozen=True)
class KvAnswer(Header):
    value: str | None = None


@dataclasses.dataclass(frozen=True)
class NamespaceRequest(Header):
    namespace: str


@dataclasses.dataclass(frozen=True)
class DeleteTopicRoute(Header):
    topic: str
    cluster_name: str | None = None


@dataclasses.dataclass(frozen=True)
class ClusterRequest(Header):
    cluster: str
