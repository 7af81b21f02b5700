"""Registrar: tells every name server that this broker is here and which topics it has.

One task per name server, so that a dead one costs the others nothing: it registers at start, then every period, at
once when a topic has changed, and again soon after a failure or a lost connection.  Changes that come while a
registration is under way are told together by the next one.  Always the whole topic table is sent: it is right for
every version and every setting of the name server.

The connection that carried a registration is the broker's life line: the name server drops the broker when it
closes.  So over a new connection the broker always registers, even where it could ask first whether that is needed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bolide.model import java_json, names
from bolide.model.data_version import DataVersion
from bolide.model.errors import BolideError, CallTimeout, ConfigError, RemoteError
from bolide.model.response_code import ResponseCode
from bolide.model.topic import Permission, TopicConfig
from bolide.net.caller import Caller, parse_address
from bolide.net.link import Link
from bolide.wire.bodies.registration import RegistrationBody, checksum
from bolide.wire.bodies.route import decode_kv_table
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.route import BrokerRequest, DataVersionAnswer, RegisterBroker, RegisterBrokerAnswer

log = logging.getLogger(__name__)

PERIOD_MS_MIN = 10_000
PERIOD_MS_MAX = 60_000
RETRY_MS = 1_000
"""After a first failure; doubled with each further one, up to the period."""

REGISTER_TIMEOUT_MS = 24_000
UNREGISTER_TIMEOUT_MS = 3_000
SETTLE_MS = 2_000

ANYWHERE = ("0.0.0.0", "::")

TopicSource = Callable[[], tuple[DataVersion, Sequence[TopicConfig]]]


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
class RegisterOptions:
    """`force` registers every time; without it a broker first asks whether its topics are news (forceRegister)."""

    period_ms: int = 30_000
    force: bool = True
    compressed: bool = False
    lifetime_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RegistrationNews:
    """What a name server answers: its ordered topics and, for a slave, where the master is."""

    order_topics: Mapping[str, str]
    master_address: str | None
    master_ha_address: str | None


@dataclass(slots=True)
class _Contact:
    """One name server: what it knows of us, and what stands in the way."""

    address: str
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    tried: int = 0
    failures: int = 0
    problem: str | None = None
    link: Link | None = None


class Registrar:
    """See the module.  `topics` must give a new data version with every change, also of `permission`."""

    def __init__(
        self,
        caller: Caller,
        addresses: Iterable[str],
        identity: BrokerIdentity,
        topics: TopicSource,
        *,
        permission: Callable[[], int] = lambda: int(Permission.READ_WRITE),
        options: RegisterOptions | None = None,
        on_news: Callable[[RegistrationNews], None] | None = None,
    ) -> None:
        self._caller = caller
        self._identity = identity
        self._topics = topics
        self._permission = permission
        self._options = RegisterOptions() if options is None else options
        self._on_news = on_news
        self._contacts = {address: _Contact(address) for address in addresses}
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = 1
        self._progress = asyncio.Event()
        self._body: tuple[tuple[DataVersion, int], bytes] | None = None

    @property
    def period_ms(self) -> int:
        return min(max(self._options.period_ms, PERIOD_MS_MIN), PERIOD_MS_MAX)

    async def start(self) -> None:
        """Begin; returns when every name server has been tried once, or after a moment if one does not answer."""
        self._tasks = [asyncio.create_task(self._keep_registered(one)) for one in self._contacts.values()]
        await self.settled()

    async def stop(self) -> None:
        """Leave every name server that knows us."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await asyncio.gather(*(self._leave(one) for one in self._contacts.values()))

    def topic_changed(self) -> None:
        """Topics or the broker's permission have changed: tell everyone now."""
        self._wanted += 1
        for contact in self._contacts.values():
            contact.wake.set()

    def connection_lost(self, address: str) -> None:
        """The connection to a name server has closed, and with it our registration there.

        One that is in trouble already keeps the pace of its retries.
        """
        contact = self._contacts.get(address)
        if contact is not None and contact.problem is None:
            contact.wake.set()

    async def settled(self, timeout_ms: int = SETTLE_MS) -> bool:
        """Wait until every name server that works has been told the latest; false when time is up first."""
        goal = self._wanted
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while any(one.tried < goal and one.problem is None for one in self._contacts.values()):
                    await self._progress.wait()
        except TimeoutError:
            return False
        return True

    def problems(self) -> dict[str, str]:
        """Name servers that do not know us at the moment, each with the reason."""
        return {one.address: one.problem for one in self._contacts.values() if one.problem is not None}

    # ---- one name server -----------------------------------------------------------------------------------

    async def _keep_registered(self, contact: _Contact) -> None:
        while True:
            contact.wake.clear()
            goal = self._wanted
            try:
                await self._register(contact)
            except Exception as error:
                self._failed(contact, error)
            else:
                self._succeeded(contact)
            contact.tried = goal
            self._progress.set()
            self._progress = asyncio.Event()
            retry_ms = RETRY_MS << min(contact.failures - 1, 16) if contact.failures else self.period_ms
            try:
                async with asyncio.timeout(min(retry_ms, self.period_ms) / 1000):
                    await contact.wake.wait()
            except TimeoutError:
                pass

    async def _register(self, contact: _Contact) -> None:
        link = await self._caller.link(contact.address)
        version, topics = self._topics()
        may_ask = contact.link is link and not self._options.force
        try:
            if may_ask and not await _is_news(link, self._whom(), version):
                return
            answer = await link.call(self._registration(version, topics), REGISTER_TIMEOUT_MS)
        except CallTimeout:
            link.close()  # the next try must not wait on the same silence
            raise
        if answer.code != ResponseCode.SUCCESS:
            raise RemoteError(answer.code, answer.remark or "")
        contact.link = link
        if self._on_news is not None:
            self._on_news(_news(answer))

    async def _leave(self, contact: _Contact) -> None:
        link, contact.link = contact.link, None
        if link is None or not link.is_open:
            return
        request = Command(RequestCode.UNREGISTER_BROKER, self._whom().encode())
        try:
            await link.call(request, UNREGISTER_TIMEOUT_MS)
        except BolideError as error:
            log.warning("could not say goodbye to the name server %s: %s", contact.address, error)

    def _succeeded(self, contact: _Contact) -> None:
        if contact.tried == 0 or contact.problem is not None:
            log.info("registered with the name server %s", contact.address)
        contact.failures = 0
        contact.problem = None

    def _failed(self, contact: _Contact, error: Exception) -> None:
        """Said once; the tries go on in silence."""
        if contact.problem is None:
            unforeseen = None if isinstance(error, BolideError) else error
            log.warning(
                "cannot register with the name server %s: %s", contact.address, error, exc_info=unforeseen
            )
        contact.failures += 1
        contact.problem = str(error) or type(error).__name__

    # ---- what is said --------------------------------------------------------------------------------------

    def _whom(self) -> BrokerRequest:
        me = self._identity
        return BrokerRequest(me.name, me.address, me.cluster, me.broker_id)

    def _registration(self, version: DataVersion, topics: Sequence[TopicConfig]) -> Command:
        me, options = self._identity, self._options
        body = self._encoded(version, topics)
        header = RegisterBroker(
            broker_name=me.name,
            broker_addr=me.address,
            cluster_name=me.cluster,
            ha_server_addr=me.ha_address,
            broker_id=me.broker_id,
            compressed=options.compressed,
            body_crc32=checksum(body),
            heartbeat_timeout_millis=options.lifetime_ms,
        )
        return Command(RequestCode.REGISTER_BROKER, header.encode(), body)

    def _encoded(self, version: DataVersion, topics: Sequence[TopicConfig]) -> bytes:
        """The body, kept until something changes: all name servers get the same one, again and again."""
        permission = self._permission()
        key = (version, permission)
        if self._body is None or self._body[0] != key:
            shown = tuple(_masked(topic, permission) for topic in self._complete(topics))
            body = RegistrationBody(version, shown).encode(compressed=self._options.compressed)
            self._body = (key, body)
        return self._body[1]

    def _complete(self, topics: Sequence[TopicConfig]) -> Sequence[TopicConfig]:
        """With the topics that every broker has: a first registration of a single topic would be refused."""
        known = {topic.name for topic in topics}
        built_in = (
            TopicConfig(names.SELF_TEST_TOPIC, 1, 1),
            TopicConfig(self._identity.name, 1, 1, perm=Permission.READ_WRITE | Permission.INHERIT),
        )
        return [*topics, *(topic for topic in built_in if topic.name not in known)]


async def _is_news(link: Link, whom: BrokerRequest, version: DataVersion) -> bool:
    """Whether the name server has another version than ours; one that cannot say gets ours."""
    request = Command(RequestCode.QUERY_DATA_VERSION, whom.encode(), java_json.dumps(version.as_json()))
    answer = await link.call(request, REGISTER_TIMEOUT_MS)
    return answer.code != ResponseCode.SUCCESS or DataVersionAnswer.decode(answer.fields).changed


def _masked(topic: TopicConfig, permission: int) -> TopicConfig:
    """What the broker does not permit, no topic permits."""
    if permission == Permission.READ_WRITE:
        return topic
    return replace(topic, perm=topic.perm & permission)


def _news(answer: Command) -> RegistrationNews:
    header = RegisterBrokerAnswer.decode(answer.fields)
    order_topics = decode_kv_table(answer.body) if answer.body else {}
    return RegistrationNews(order_topics, header.master_addr or None, header.ha_server_addr or None)
