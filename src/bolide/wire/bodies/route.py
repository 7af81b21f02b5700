"""Where topics live: routes, cluster info, topic lists and key-value tables, as values and as JSON bodies.

A route's broker ids are map keys.  Clients from 4.9.4 on ask for standard JSON (`{"0":"ip:port"}`); older ones
want the dialect of fastjson (`{0:"ip:port"}`), and some of them misread the other form.  All other bodies here are
written as standard JSON, which every reader takes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bolide.model import java_json, json_pieces
from bolide.model.limits import ANSWER_DIALECT_BYTES_MAX
from bolide.wire.bodies.members import (
    as_number,
    as_texts,
    flag,
    number,
    parse_answer,
    parse_object,
    rows,
    small_number,
    table,
    text,
    texts,
)

MASTER_ID = 0

VERSION_STANDARD_JSON = 401
"""MQVersion.V4_9_4, the first that is sure to read quoted broker ids."""


@dataclass(frozen=True, slots=True)
class QueueData:
    """A topic's queues on one broker name."""

    broker_name: str
    read_queues: int
    write_queues: int
    perm: int
    sys_flag: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "brokerName": self.broker_name,
            "perm": self.perm,
            "readQueueNums": self.read_queues,
            "topicSysFlag": self.sys_flag,
            "writeQueueNums": self.write_queues,
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "QueueData":
        return cls(
            broker_name=text(members, "brokerName"),
            read_queues=number(members, "readQueueNums"),
            write_queues=number(members, "writeQueueNums"),
            perm=small_number(members, "perm"),
            # 4.8 and older spell it with an n.
            sys_flag=small_number(members, "topicSysFlag", small_number(members, "topicSynFlag")),
        )


@dataclass(frozen=True, slots=True)
class BrokerData:
    """The brokers that share one name: id 0 is the master."""

    broker_name: str
    cluster: str
    addresses: Mapping[int, str]
    enable_acting_master: bool = False
    zone_name: str | None = None
    rivals: tuple[str, ...] = ()
    """Others that register under this name although their id is taken.  Only our own name server tells."""

    @property
    def master(self) -> str | None:
        return self.addresses.get(MASTER_ID)

    def as_json(self, *, bare_keys: bool = False) -> dict[str, Any]:
        members: dict[str, Any] = {
            "brokerAddrs": addresses_as_json(self.addresses, bare_keys=bare_keys),
            "brokerName": self.broker_name,
            "cluster": self.cluster,
            "enableActingMaster": self.enable_acting_master,
        }
        if self.zone_name is not None:
            members["zoneName"] = self.zone_name
        if self.rivals:
            members["rivalAddrs"] = list(self.rivals)
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "BrokerData":
        return cls(
            broker_name=text(members, "brokerName"),
            cluster=text(members, "cluster"),
            addresses=addresses_from_json(members),
            enable_acting_master=flag(members, "enableActingMaster"),
            zone_name=text(members, "zoneName") or None,
            rivals=tuple(texts(members, "rivalAddrs")),
        )


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The answer to 105 (RocketMQ: TopicRouteData)."""

    queues: tuple[QueueData, ...] = ()
    brokers: tuple[BrokerData, ...] = ()
    filter_servers: Mapping[str, list[str]] = field(default_factory=dict)
    order_config: str | None = None

    def encode(self, *, bare_keys: bool = False) -> bytes:
        return java_json.dumps(self._members(list, bare_keys))

    def pieces(self, *, bare_keys: bool = False) -> Iterator[bytes]:
        """The same, for a topic that is on many brokers."""
        return json_pieces.compact(self._members(json_pieces.Items, bare_keys))

    def _members(self, listed: Callable[[Iterable[Any]], Any], bare_keys: bool) -> dict[str, Any]:
        members: dict[str, Any] = {
            "brokerDatas": listed(broker.as_json(bare_keys=bare_keys) for broker in self.brokers),
            "filterServerTable": dict(self.filter_servers),
            "queueDatas": listed(queue.as_json() for queue in self.queues),
        }
        if self.order_config is not None:
            members["orderTopicConf"] = self.order_config
        return members

    @classmethod
    def decode(cls, body: bytes, *, dialect_bytes_max: int = ANSWER_DIALECT_BYTES_MAX) -> "TopicRoute":
        """An answer to 105; 217 has it in its request."""
        members = parse_object(body, "the route", dialect_bytes_max=dialect_bytes_max)
        servers = table(members, "filterServerTable")
        return cls(
            queues=tuple(QueueData.from_json(row) for row in rows(members, "queueDatas")),
            brokers=tuple(BrokerData.from_json(row) for row in rows(members, "brokerDatas")),
            filter_servers={key: as_texts(value, "filterServerTable") for key, value in servers.items()},
            order_config=text(members, "orderTopicConf") or None,
        )


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The answer to 106: every broker name, and the names of each cluster."""

    brokers: Mapping[str, BrokerData]
    clusters: Mapping[str, list[str]]

    def encode(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        brokers = ((name, broker.as_json()) for name, broker in self.brokers.items())
        clusters = ((name, json_pieces.Items(names)) for name, names in self.clusters.items())
        return json_pieces.compact(
            {
                "brokerAddrTable": json_pieces.Entries(brokers),
                "clusterAddrTable": json_pieces.Entries(clusters),
            }
        )

    @classmethod
    def decode(cls, body: bytes) -> "ClusterInfo":
        members = parse_answer(body, "the cluster info")
        brokers, clusters = table(members, "brokerAddrTable"), table(members, "clusterAddrTable")
        return cls(
            brokers={name: BrokerData.from_json(table(brokers, name)) for name in brokers},
            clusters={name: texts(clusters, name) for name in clusters},
        )


@dataclass(frozen=True, slots=True)
class TopicList:
    """Topic names; `broker_address` only where the original gives one."""

    topics: tuple[str, ...]
    broker_address: str | None = None

    def encode(self) -> bytes:
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        return topic_list_pieces(self.topics, self.broker_address)

    @classmethod
    def decode(cls, body: bytes) -> "TopicList":
        members = parse_answer(body, "the topic list")
        return cls(tuple(texts(members, "topicList")), text(members, "brokerAddr") or None)


def topic_list_pieces(topics: Iterable[str], broker_address: str | None = None) -> Iterator[bytes]:
    """A `TopicList`, while its topics are still being found."""
    members: dict[str, Any] = {"topicList": json_pieces.Items(topics)}
    if broker_address is not None:
        members["brokerAddr"] = broker_address
    return json_pieces.compact(members)


def encode_kv_table(pairs: Mapping[str, str]) -> bytes:
    """Text to text (RocketMQ: KVTable)."""
    return java_json.dumps({"table": dict(pairs)})


def decode_kv_table(body: bytes) -> dict[str, str]:
    pairs = table(parse_answer(body, "the table"), "table")
    return {name: text(pairs, name) for name in pairs}


def encode_member_group(cluster: str, broker_name: str, addresses: Mapping[int, str]) -> bytes:
    """The answer to 901 (RocketMQ: BrokerMemberGroup)."""
    members = {
        "brokerAddrs": addresses_as_json(addresses, bare_keys=False),
        "brokerName": broker_name,
        "cluster": cluster,
    }
    return java_json.dumps({"brokerMemberGroup": members})


def decode_member_group(body: bytes) -> dict[int, str]:
    """Broker id to address."""
    return addresses_from_json(table(parse_answer(body, "the member group"), "brokerMemberGroup"))


def addresses_as_json(addresses: Mapping[int, str], *, bare_keys: bool) -> dict[Any, str]:
    ids: Iterable[int] = sorted(addresses)
    return {(one if bare_keys else str(one)): addresses[one] for one in ids}


def addresses_from_json(members: Mapping[str, Any]) -> dict[int, str]:
    addresses = table(members, "brokerAddrs")
    return {as_number(key, "a broker id"): text(addresses, key) for key in addresses}
