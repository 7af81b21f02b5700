"""What a broker says about itself to name servers: the requests, built from its identity, topics and permission."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from bolide.model import java_json, names
from bolide.model.data_version import DataVersion
from bolide.model.errors import ConfigError
from bolide.model.topic import Permission, TopicConfig
from bolide.net.caller import parse_address
from bolide.wire.bodies.registration import RegistrationBody, checksum
from bolide.wire.bodies.route import QueueData, TopicRoute
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.route import BrokerRequest, RegisterBroker

ANYWHERE = ("0.0.0.0", "::")

TopicSource = Callable[[], tuple[DataVersion, Sequence[TopicConfig]]]
"""The broker's table: a new data version with every change, also of the broker's permission."""


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Who this broker is; `address` is what clients will connect to, exactly as written."""

    cluster: str
    name: str
    address: str
    broker_id: int = 0
    ha_address: str = ""

    def __post_init__(self) -> None:
        host, _ = parse_address(self.address)
        if host in ANYWHERE:
            raise ConfigError(
                f"{self.address} cannot be given to clients; set brokerIP1 to one they can reach"
            )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The topics as name servers shall see them."""

    version: DataVersion
    permission: int
    topics: Mapping[str, TopicConfig]


class Introduction:
    """Builds the requests; remembers the last encoded table, because everybody gets the same one again and again."""

    def __init__(
        self,
        identity: BrokerIdentity,
        topics: TopicSource,
        permission: Callable[[], int],
        *,
        compressed: bool = False,
        lifetime_ms: int | None = None,
    ) -> None:
        self._identity = identity
        self._topics = topics
        self._permission = permission
        self._compressed = compressed
        self._lifetime_ms = lifetime_ms
        self._body: tuple[tuple[DataVersion, int], bytes] | None = None

    def snapshot(self) -> Snapshot:
        version, topics = self._topics()
        permission = self._permission()
        shown = {topic.name: _masked(topic, permission) for topic in (*self._built_in(), *topics)}
        return Snapshot(version, permission, shown)

    def whole(self, now: Snapshot) -> Command:
        """103: everything."""
        me, body = self._identity, self._encoded(now)
        header = RegisterBroker(
            broker_name=me.name,
            broker_addr=me.address,
            cluster_name=me.cluster,
            ha_server_addr=me.ha_address,
            broker_id=me.broker_id,
            compressed=self._compressed,
            body_crc32=checksum(body),
            heartbeat_timeout_millis=self._lifetime_ms,
        )
        return Command(RequestCode.REGISTER_BROKER, header.encode(), body)

    def one(self, topic: TopicConfig) -> Command:
        """217: one new or changed topic."""
        queues = QueueData(
            self._identity.name, topic.read_queues, topic.write_queues, int(topic.perm), topic.sys_flag
        )
        body = TopicRoute(queues=(queues,)).encode()
        return Command(RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": topic.name}, body)

    def question(self, now: Snapshot) -> Command:
        """322: is this news to you?"""
        body = java_json.dumps(now.version.as_json())
        return Command(RequestCode.QUERY_DATA_VERSION, self._whom(), body)

    def goodbye(self) -> Command:
        """104."""
        return Command(RequestCode.UNREGISTER_BROKER, self._whom())

    def _whom(self) -> dict[str, str]:
        me = self._identity
        return BrokerRequest(me.name, me.address, me.cluster, me.broker_id).encode()

    def _built_in(self) -> tuple[TopicConfig, ...]:
        """What every broker has: a first registration of a single topic would be refused."""
        inherited = Permission.READ_WRITE | Permission.INHERIT
        return TopicConfig(names.SELF_TEST_TOPIC, 1, 1), TopicConfig(
            self._identity.name, 1, 1, perm=inherited
        )

    def _encoded(self, now: Snapshot) -> bytes:
        key = (now.version, now.permission)
        if self._body is None or self._body[0] != key:
            body = RegistrationBody(now.version, tuple(now.topics.values()))
            self._body = (key, body.encode(compressed=self._compressed))
        return self._body[1]


def _masked(topic: TopicConfig, permission: int) -> TopicConfig:
    """What the broker does not permit, no topic permits."""
    if permission == Permission.READ_WRITE:
        return topic
    return replace(topic, perm=topic.perm & permission)
