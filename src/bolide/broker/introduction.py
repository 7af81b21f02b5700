"""What a broker says about itself to name servers: the requests, built from its identity, topics and permission.

All topics are gone over a slice per turn of the event loop, and once for all name servers.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bolide.model import java_json, names
from bolide.model.addresses import parse_address
from bolide.model.config_json import topic_bytes
from bolide.model.data_version import DataVersion
from bolide.model.errors import ConfigError, TableFull
from bolide.model.limits import FRAME_BYTES_MAX, PLAIN_REGISTRATION_BYTES_MAX
from bolide.model.steps import Steps
from bolide.model.topic import Permission, TopicConfig
from bolide.net.turns import in_turns, join_pieces
from bolide.wire.bodies.registration import RegistrationBody, checksum
from bolide.wire.bodies.route import QueueData, TopicRoute
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.route import BrokerRequest, RegisterBroker

STEP_TOPICS = 1024
"""Topics that are looked at in one turn; that takes a fraction of a millisecond."""

HEADER_BYTES = 64 * 1024
"""What is left of a frame for everything but the body."""

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
    json_bytes: int
    """At most so long are they as JSON."""


class Introduction:
    """Builds the requests; remembers the last table and its text: everybody gets the same ones again and again."""

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
        self._turn = asyncio.Lock()
        self._last: Snapshot | None = None
        self._body: tuple[Snapshot, _Body] | None = None

    async def snapshot(self) -> Snapshot:
        """The topics as they are when this is called, or a little newer."""
        async with self._turn:
            version, topics = self._topics()
            permission = self._permission()
            last = self._last
            if last is None or (last.version, last.permission) != (version, permission):
                shown, size = await in_turns(_shown((*self._built_in(), *topics), permission))
                last = self._last = Snapshot(version, permission, shown, size)
            return last

    async def whole(self, now: Snapshot) -> Command:
        """103: everything."""
        me, body = self._identity, await self._encoded(now)
        header = RegisterBroker(
            broker_name=me.name,
            broker_addr=me.address,
            cluster_name=me.cluster,
            ha_server_addr=me.ha_address,
            broker_id=me.broker_id,
            compressed=body.compressed,
            body_crc32=body.checksum,
            heartbeat_timeout_millis=self._lifetime_ms,
        )
        return Command(RequestCode.REGISTER_BROKER, header.encode(), body.data)

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

    async def _encoded(self, now: Snapshot) -> "_Body":
        """Compressed where it is large: plain, a broker's topics may be more than a frame holds."""
        async with self._turn:
            if self._body is None or self._body[0] is not now:
                compressed = self._compressed or now.json_bytes > PLAIN_REGISTRATION_BYTES_MAX
                body = RegistrationBody(now.version, tuple(now.topics.values()))
                data = await join_pieces(body.pieces(compressed=compressed))
                if len(data) > FRAME_BYTES_MAX - HEADER_BYTES:
                    raise TableFull(
                        f"{len(now.topics)} topics take {len(data)} bytes in a registration, and name servers take"
                        f" {FRAME_BYTES_MAX}: delete topics"
                    )
                self._body = now, _Body(data, compressed, checksum(data))
            return self._body[1]


@dataclass(frozen=True, slots=True)
class _Body:
    data: bytes
    compressed: bool
    checksum: int


def news_since(
    told: Mapping[str, TopicConfig], now: Mapping[str, TopicConfig], most: int
) -> Steps[list[TopicConfig] | None]:
    """Topics that are new or have changed; None when they are more than `most`, or when some are gone."""
    news: list[TopicConfig] = []
    if told is now:
        return news
    for number, (name, topic) in enumerate(now.items(), 1):
        known = told.get(name)
        if known is not topic and known != topic:
            news.append(topic)
            if len(news) > most:
                return None
        if number % STEP_TOPICS == 0:
            yield
    for number, name in enumerate(told, 1):
        if name not in now:
            return None
        if number % STEP_TOPICS == 0:
            yield
    return news


def _shown(topics: Iterable[TopicConfig], permission: int) -> Steps[tuple[dict[str, TopicConfig], int]]:
    """By name, and how long they are as JSON."""
    shown: dict[str, TopicConfig] = {}
    size = 0
    for number, topic in enumerate(topics, 1):
        shown[topic.name] = _masked(topic, permission)
        size += topic_bytes(topic)
        if number % STEP_TOPICS == 0:
            yield
    return shown, size


def _masked(topic: TopicConfig, permission: int) -> TopicConfig:
    """What the broker does not permit, no topic permits."""
    if permission == Permission.READ_WRITE:
        return topic
    return replace(topic, perm=topic.perm & permission)
