"""Hub: what clients with one client id have together: connections, routes, heartbeats, and the requests of brokers.

To a broker they are one client that has several groups.  Each is a `Member` here: it joins when it starts and leaves
when it is closed, and with the last one the connections go.

A broker learns who is on a connection from the first request on it: the heartbeat is answered before anything else
is sent, on every new connection, so membership comes back by itself when a broker does.  It is sent again before
anything else when somebody has joined.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field

from bolide.client.answers import raise_for
from bolide.client.hooks import CallHooks, Hooks
from bolide.client.rounds import Periodic, Seldom, saying_if_slow
from bolide.client.routes import RouteCache
from bolide.client.terms import Terms
from bolide.model.errors import BolideError, CallTimeout, ConfigError, ConnectionLost, RequestError
from bolide.model.printable import printable_part
from bolide.net.caller import Caller
from bolide.net.caller_link import Escort, signing
from bolide.net.link import Link
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import CANCELLED_MS, Tasks
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.group import GroupRequest, UnregisterClient

log = logging.getLogger(__name__)

HEARTBEAT_PERIOD_MS = 30_000
ROUTE_PERIOD_MS = 30_000
ROUTE_GAP_MS = 1_000
"""Every failed send asks for new routes; the name servers are asked this often at most."""

CALL_TIMEOUT_MS = 3_000
SAY_AGAIN_MS = 10_000
ADDRESSES_LENGTH = 255

Serve = Callable[[Link, Command], Coroutine[None, None, Command | None] | None]
"""What answers a request that a broker sends by itself.  It gives None at once for a request that is not for this
client, and else the work, which ends with the answer; with None, if nobody waits for one."""


@dataclass(eq=False)
class Member:
    """One client of a hub: what it is to the brokers, and what it wants to hear."""

    producer_group: str | None = None
    consumer: Callable[[], ConsumerData] | None = None
    on_change: Callable[[], None] | None = None
    """Called when members of its group or routes may have changed."""

    serves: dict[int, Serve] = field(default_factory=dict)
    hooks: tuple[Hooks, ...] = ()

    @property
    def consumer_group(self) -> str | None:
        return self.consumer().group if self.consumer is not None else None


class Hub:
    """One client id on the network.  The first `join` opens it, the last `leave` closes it."""

    def __init__(self, terms: Terms, client_id: str, surroundings: Surroundings) -> None:
        self.client_id = client_id
        self._terms = terms
        self._clock = surroundings.clock
        self._caller = Caller(self._clock, on_request=self._on_request, tls=terms.security)
        self.routes = RouteCache(self._caller, terms.nameservers, surroundings.random)
        self._tasks = Tasks()
        self._heartbeats = Periodic("the heartbeat", HEARTBEAT_PERIOD_MS, self._beat)
        self.refreshes = Periodic(
            "the refresh of routes", ROUTE_PERIOD_MS, self._refresh, gap_ms=ROUTE_GAP_MS
        )
        self._members: list[Member] = []
        self._joined = 0
        self._greeted: dict[str, Link] = {}
        """Connections on which the broker was told of all members that there are."""

        self._say_notice = Seldom(self._clock, SAY_AGAIN_MS)

    # ---- who is here ---------------------------------------------------------------------------------------

    def join(self, member: Member, terms: Terms) -> None:
        """From now on heartbeats name it too."""
        if terms != self._terms:
            raise ConfigError(
                f"clients with the client id {self.client_id} share connections, so they need the same"
                " credentials and tls: give this one another instance_name, or what the others have"
            )
        if (group := member.consumer_group) is not None:
            self.check_no_consumer(group)
        if not self._members:
            self._tasks.start(self._heartbeats.run(), "heartbeats")
            self._tasks.start(self.refreshes.run(), "routes")
        self._members.append(member)
        self._caller.escort = self._escort()
        self._joined += 1
        self._greeted.clear()

    def check_no_consumer(self, group: str) -> None:
        """A group has one consumer here: two would be one member to a broker, and both have its queues."""
        if any(group == one.consumer_group for one in self._members):
            raise ConfigError(
                f"a consumer of the group {group!r} was created already in this process with the client id"
                f" {self.client_id}, and a broker cannot tell two apart: give one of them another instance_name"
            )

    async def leave(self, member: Member) -> None:
        """Say goodbye to the brokers; the last one closes the connections."""
        self._members.remove(member)
        try:
            await self._say_goodbye(member)
        except BaseException:
            if not self._members:
                self._caller.abort()  # nobody is left who could close them later
            raise
        finally:
            self._caller.escort = self._escort()  # not before the goodbye, which is a call too
        if not self._members:
            await self._caller.close()

    async def _say_goodbye(self, member: Member) -> None:
        if not self._members:
            _forget(self)
            await self._tasks.close_within(CANCELLED_MS)
        links = self._caller.open_links(self.routes.addresses(masters_only=False))
        await saying_if_slow(
            asyncio.gather(*(self._unregister(member, link) for link in links.values())),
            lambda: f"the goodbye of the brokers at {printable_part(', '.join(links), ADDRESSES_LENGTH)}",
        )

    def _escort(self) -> Escort | None:
        """What every request passes by: the hooks first, so that what they add is signed too."""
        hooks = CallHooks((hook for member in self._members for hook in member.hooks), self._clock)
        signs = signing(self._terms.credentials)
        if signs is None or not hooks:
            return hooks.before if hooks else signs

        def escort(address: str, request: Command) -> Callable[[asyncio.Future[Command]], None] | None:
            after = hooks.before(address, request)
            signs(address, request)
            return after

        return escort

    @property
    def _consumes(self) -> bool:
        return any(member.consumer is not None for member in self._members)

    # ---- calls ---------------------------------------------------------------------------------------------

    async def link(self, address: str) -> Link:
        """A connection to a broker that knows us."""
        link = self._greeted.get(address)
        return link if link is not None and link.is_open else await self._greet(address)

    def plain_link(self, address: str) -> Link | None:
        """The same if it is there, and requests go over it as they are: not encrypted, not signed and seen by no hook.
        Any thread may ask.
        """
        link = self._greeted.get(address)
        is_plain = self._caller.escort is None and self._terms.security is None
        return link if is_plain and link is not None and link.is_open else None

    async def notify(self, address: str, request: Command) -> None:
        """A one-way request to a broker, when it has read most of those before."""
        link = await self.link(address)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_MS / 1000):
                await link.drained()
        except TimeoutError:
            raise CallTimeout(f"{address} does not read what it is sent") from None
        link.notify(request)

    async def greet_all(self) -> None:
        """Be known to every broker of the topics in use.  A broker out of reach is met again later."""
        addresses = self.routes.addresses(masters_only=not self._consumes)
        new = [address for address in addresses if not self._is_greeted(address)]
        for address, outcome in zip(
            new, await asyncio.gather(*map(self._greet, new), return_exceptions=True), strict=True
        ):
            if isinstance(outcome, BolideError):
                log.warning("the broker at %s cannot be greeted now: %s", address, outcome)
            elif isinstance(outcome, BaseException):
                raise outcome

    async def beat_now(self) -> None:
        """Tell every broker our present state."""
        await self._beat()

    # ---- heartbeats ----------------------------------------------------------------------------------------

    async def _greet(self, address: str) -> Link:
        try:
            link = await self._caller.link(address)
        except ConnectionLost as error:
            raise type(error)(
                f"the broker {self.routes.name_at(address)} does not answer: {error}"
            ) from error
        if self._greeted.get(address) is not link:
            joined = self._joined
            await self._send_heartbeat(link)
            if joined == self._joined:  # else it was not told of who has joined meanwhile
                self._greeted[address] = link
        return link

    def _is_greeted(self, address: str) -> bool:
        link = self._greeted.get(address)
        return link is not None and link.is_open

    async def _beat(self) -> None:
        await self.greet_all()
        addresses = self.routes.addresses(masters_only=not self._consumes)
        links = [self._greeted[address] for address in addresses if self._is_greeted(address)]
        for outcome in await asyncio.gather(*map(self._send_heartbeat, links), return_exceptions=True):
            if isinstance(outcome, BolideError):
                log.warning("a heartbeat failed: %s", outcome)
            elif outcome is not None:
                raise outcome

    async def _send_heartbeat(self, link: Link) -> None:
        producers = dict.fromkeys(one.producer_group for one in self._members if one.producer_group)
        consumers = tuple(one.consumer() for one in self._members if one.consumer is not None)
        body = HeartbeatData(self.client_id, tuple(producers), consumers).encode()
        raise_for(await link.call(Command(RequestCode.HEART_BEAT, body=body), CALL_TIMEOUT_MS))

    async def _unregister(self, member: Member, link: Link) -> None:
        group = member.producer_group
        if any(group == one.producer_group for one in self._members):
            group = None  # others of the group stay
        if self._members and group is None and member.consumer is None:
            return
        header = UnregisterClient(self.client_id, group, member.consumer_group)
        try:
            await link.call(Command(RequestCode.UNREGISTER_CLIENT, header.encode()), CALL_TIMEOUT_MS)
        except BolideError as error:
            log.info("leaving without a goodbye: %s", error)  # the broker notices the closed connection

    # ---- what comes by itself ------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        if await self.routes.refresh():
            self._leave_strangers()
            for member in self._members:
                if member.on_change is not None:
                    member.on_change()

    def _leave_strangers(self) -> None:
        """Brokers that are in no route any more: their connections would stay for ever, and more would come."""
        known = {*self.routes.addresses(masters_only=False), *self._terms.nameservers}
        self._greeted = {address: link for address, link in self._greeted.items() if address in known}
        self._caller.keep_only(known)

    def _on_request(self, link: Link, request: Command) -> None:
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self._on_notice(request)
        elif not link.is_behind:  # who asks and does not read is not answered
            for member in self._members:
                serve = member.serves.get(request.code)
                if serve is not None and (work := serve(link, request)) is not None:
                    name = f"request {request.code} of {link.remote}"
                    self._tasks.start(self._serve(link, request, work), name)
                    return
            if not request.is_one_way:
                link.answer(
                    request.answer(
                        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                        remark=f"this client does not answer request code {request.code}",
                    )
                )

    def _on_notice(self, request: Command) -> None:
        try:
            group = GroupRequest.decode(request.fields).consumer_group
        except RequestError as error:
            if self._say_notice.is_due():
                log.warning("a notice that cannot be read: %s", error)
            return
        for member in self._members:
            if member.on_change is not None and member.consumer_group == group:
                member.on_change()

    async def _serve(self, link: Link, request: Command, work: Coroutine[None, None, Command | None]) -> None:
        try:
            answer = await work
        except BolideError as error:
            if self._say_notice.is_due():
                log.warning("request %d of %s failed: %s", request.code, link.remote, error)
            answer = request.answer(ResponseCode.SYSTEM_ERROR, remark=str(error))
        if answer is not None and not request.is_one_way:
            link.answer(answer)


# ---- which hubs there are ----------------------------------------------------------------------------------------

_Place = tuple[asyncio.AbstractEventLoop, int, tuple[str, ...], str]
"""The loop that a hub lives on, the process, its name servers and its client id."""

_hubs: dict[_Place, Hub] = {}
"""Those that can be shared: their clients were given a name.  Loops of several threads meet here, so nobody goes over
it, but over a copy of its keys."""


def hub_for(terms: Terms, client_id: str, surroundings: Surroundings) -> Hub:
    """The one that is there for this client id, or a new one."""
    if terms.instance_name is None:
        return Hub(terms, client_id, surroundings)
    for known in list(_hubs):
        if known[0].is_closed():  # with clients that nobody has closed
            _hubs.pop(known, None)
    place = (asyncio.get_running_loop(), surroundings.pid, terms.nameservers, client_id)
    hub = _hubs.get(place)
    if hub is None:
        hub = _hubs[place] = Hub(terms, client_id, surroundings)
    return hub


def _forget(hub: Hub) -> None:
    for place in list(_hubs):
        if _hubs.get(place) is hub:
            _hubs.pop(place, None)
