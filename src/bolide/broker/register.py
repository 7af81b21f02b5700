"""Registrar: tells every name server that this broker is here and which topics it has.

One task per name server, so that a dead one costs the others nothing: it registers at start, then every period, at
once when a topic has changed or somebody else spoke for us, and again soon after a failure or a lost connection.
Changes that come while a registration is under way are told together by the next one.

A few new or changed topics are told alone (217) to name servers that take them so; everything else is told by
sending the whole table (103), which is right for every version and every setting of a name server.  Only the whole
table is a sign of life there, so it goes out every period, however much is told in between.

The connection that carried a registration is the broker's life line: the name server drops the broker when it
closes.  So over a new connection the broker always registers, even where it could ask first whether that is needed.
Where it should be known already it looks first whether another broker has taken its place (`rivals.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from bolide.broker.introduction import BrokerIdentity, Introduction, Snapshot, TopicSource, news_since
from bolide.broker.rivals import Rivals, other_holder
from bolide.model.errors import BolideError, CallTimeout, NotANameServer, RemoteError, is_of_a_broker
from bolide.model.response_code import ResponseCode
from bolide.model.topic import Permission, TopicConfig
from bolide.net.caller import Caller
from bolide.net.link import Link
from bolide.net.trouble import Trouble
from bolide.net.turns import in_turns
from bolide.wire.bodies.route import decode_kv_table
from bolide.wire.command import Command
from bolide.wire.headers.route import DataVersionAnswer, RegisterBrokerAnswer

__all__ = ["BrokerIdentity", "RegisterOptions", "Registrar", "RegistrationNews", "TopicSource"]

log = logging.getLogger(__name__)

PERIOD_MS_MIN = 10_000
PERIOD_MS_MAX = 60_000
RETRY_MS = 1_000
"""After a first failure; doubled with each further one, up to the period."""

REGISTER_TIMEOUT_MS = 24_000
UNREGISTER_TIMEOUT_MS = 3_000
SETTLE_MS = 2_000

NEWS_MAX = 16
"""More changed topics than this are told with the whole table."""

VERSION_TAKES_ONE_TOPIC = 413
"""MQVersion.V5_0_0: older name servers leave request 217 unanswered."""


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
    link: Link | None = None
    told: Mapping[str, TopicConfig] = field(default_factory=dict)
    takes_one_topic: bool = False
    whole_at: float = 0.0
    """When the whole table goes out next, by the loop's clock."""
    hurries: int = 0
    is_hurried: bool = False
    """How often in a row our place was taken, and whether the next registration answers that."""
    trouble: Trouble = field(init=False)

    def __post_init__(self) -> None:
        self.trouble = Trouble(log, f"cannot register with the name server {self.address}", logging.WARNING)


class Registrar:
    """See the module."""

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
        rivals: Rivals | None = None,
    ) -> None:
        self._caller = caller
        self._identity = identity
        self._rivals = rivals
        self._options = RegisterOptions() if options is None else options
        self._introduction = Introduction(
            identity,
            topics,
            permission,
            compressed=self._options.compressed,
            lifetime_ms=self._options.lifetime_ms,
        )
        self._on_news = on_news
        self._contacts = {address: _Contact(address) for address in addresses}
        self._tasks: list[asyncio.Task[None]] = []
        self._wanted = 1
        self._progress = asyncio.Event()

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
        if contact is not None and not contact.trouble:
            contact.wake.set()

    def place_taken(self, link: Link) -> None:
        """The name server behind this link has somebody else's word for us: it gets ours again.

        At once; where that goes on, as with two brokers of one name, ever later, up to the period.
        """
        contact = next((one for one in self._contacts.values() if one.link is link), None)
        if contact is None:
            return
        wait_ms = RETRY_MS << min(contact.hurries - 1, 16) if contact.hurries else 0
        soon = asyncio.get_running_loop().time() + wait_ms / 1000
        if soon < contact.whole_at:
            contact.whole_at = soon
            contact.hurries += 1
            contact.is_hurried = True
            contact.wake.set()

    async def settled(self, timeout_ms: int = SETTLE_MS) -> bool:
        """Wait until every name server that works has been told the latest; false when time is up first."""
        goal = self._wanted
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while any(one.tried < goal and not one.trouble for one in self._contacts.values()):
                    await self._progress.wait()
        except TimeoutError:
            return False
        return True

    async def registered(self, address: str, timeout_ms: int) -> bool:
        """Wait until the name server at this address knows us; false when time is up first."""
        contact = self._contacts[address]
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while contact.link is None:
                    await self._progress.wait()
        except TimeoutError:
            return False
        return True

    def problems(self) -> dict[str, str]:
        """Name servers that do not know us at the moment, each with the reason."""
        return {address: why for address, one in self._contacts.items() if (why := one.trouble.reason)}

    # ---- one name server -----------------------------------------------------------------------------------

    async def _keep_registered(self, contact: _Contact) -> None:
        now = asyncio.get_running_loop().time
        contact.whole_at = now()
        while True:
            contact.wake.clear()
            goal = self._wanted
            only_news, is_hurried = now() < contact.whole_at, contact.is_hurried
            if not only_news:
                contact.whole_at = now() + self.period_ms / 1000
                contact.hurries = contact.hurries if is_hurried else 0
                contact.is_hurried = False
            try:
                await self._register(contact, only_news=only_news, insists=is_hurried)
            except Exception as error:
                contact.failures += 1
                contact.trouble.met(NotANameServer.at(contact.address) if is_of_a_broker(error) else error)
                retry_ms = RETRY_MS << min(contact.failures - 1, 16)
                contact.whole_at = now() + min(retry_ms, self.period_ms) / 1000
            else:
                self._succeeded(contact)
                if not only_news and not contact.is_hurried:
                    contact.whole_at = now() + self.period_ms / 1000
            contact.tried = goal
            self._progress.set()
            self._progress = asyncio.Event()
            await _until(contact.whole_at, contact.wake)

    async def _register(self, contact: _Contact, *, only_news: bool, insists: bool) -> None:
        link = await self._caller.link(contact.address)
        now = await self._introduction.snapshot()
        try:
            if contact.link is link:
                if only_news and await self._tell_news(contact, now):
                    return
                if not only_news and self._rivals is not None:
                    other = await other_holder(link, self._identity, REGISTER_TIMEOUT_MS)
                    self._rivals.look(contact.address, other)
                is_free = not only_news and not insists and not self._options.force
                if is_free and not await self._is_news(link, now):
                    return
            await self._tell_all(contact, link, now)
        except CallTimeout:
            link.close()  # the next try must not wait on the same silence
            raise

    async def _tell_all(self, contact: _Contact, link: Link, now: Snapshot) -> None:
        answer = await link.call(await self._introduction.whole(now), REGISTER_TIMEOUT_MS)
        if answer.code != ResponseCode.SUCCESS:
            raise RemoteError(answer.code, answer.remark or "")
        contact.link = link
        contact.told = now.topics
        contact.takes_one_topic = answer.version >= VERSION_TAKES_ONE_TOPIC
        if self._on_news is not None:
            self._on_news(_news(answer))

    async def _tell_news(self, contact: _Contact, now: Snapshot) -> bool:
        """Tell only what is new; false when that takes the whole table."""
        if not contact.takes_one_topic:
            return False
        news = await in_turns(news_since(contact.told, now.topics, NEWS_MAX))
        if news is None:
            return False
        assert contact.link is not None
        calls = [contact.link.call(self._introduction.one(topic), REGISTER_TIMEOUT_MS) for topic in news]
        answers = await asyncio.gather(*calls)
        if any(answer.code != ResponseCode.SUCCESS for answer in answers):
            return False
        contact.told = now.topics
        return True

    async def _is_news(self, link: Link, now: Snapshot) -> bool:
        """Whether the name server has another version than ours; one that cannot say gets ours."""
        answer = await link.call(self._introduction.question(now), REGISTER_TIMEOUT_MS)
        return answer.code != ResponseCode.SUCCESS or DataVersionAnswer.decode(answer.fields).changed

    async def _leave(self, contact: _Contact) -> None:
        link, contact.link = contact.link, None
        if link is None or not link.is_open:
            return
        try:
            await link.call(self._introduction.goodbye(), UNREGISTER_TIMEOUT_MS)
        except BolideError as error:
            log.warning("could not say goodbye to the name server %s: %s", contact.address, error)

    def _succeeded(self, contact: _Contact) -> None:
        if contact.tried == 0:
            log.info("registered with the name server %s", contact.address)
        contact.failures = 0
        contact.trouble.over()


async def _until(moment: float, event: asyncio.Event) -> None:
    """Wait for the moment, by the loop's clock, or the event, whichever comes first."""
    try:
        async with asyncio.timeout_at(moment):
            await event.wait()
    except TimeoutError:
        pass


def _news(answer: Command) -> RegistrationNews:
    header = RegisterBrokerAnswer.decode(answer.fields)
    order_topics = decode_kv_table(answer.body) if answer.body else {}
    return RegistrationNews(order_topics, header.master_addr or None, header.ha_server_addr or None)
