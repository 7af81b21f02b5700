"""ClientInstance: what every client has, whatever it does: an identity, connections, routes, heartbeats.

A broker learns who is on a connection from the first request on it: the heartbeat is answered before anything else
is sent, on every new connection, so membership comes back by itself when a broker does.
"""

import asyncio
import ipaddress
import logging
from collections.abc import Callable
from enum import Enum

from bolide.client.rounds import Periodic, Seldom, saying_if_slow
from bolide.client.routes import RouteCache
from bolide.model.addresses import parse_addresses
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ClientNotRunning,
    ConnectionLost,
    RemoteError,
    RequestError,
)
from bolide.model.offsets import MessageQueue
from bolide.model.printable import printable_part
from bolide.net.caller import Caller
from bolide.net.link import Link
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.record.message_id import UniqueIds
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.bodies.route import MASTER_ID
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


class _Life(Enum):
    NEW = "not started"
    STARTING = "starting"
    RUNNING = "running"
    CLOSED = "closed"


class ClientInstance:
    """One client on the network.  `start` before anything else, `close` at the end; there is no second start."""

    def __init__(self, nameservers: str, surroundings: Surroundings | None = None) -> None:
        self.surroundings = surroundings or Surroundings()
        self.clock = self.surroundings.clock
        self._nameservers = parse_addresses(nameservers)
        self._caller = Caller(self.clock, on_request=self._on_request)
        self.routes = RouteCache(self._caller, self._nameservers, self.surroundings.random)
        self._tasks = Tasks()
        self._heartbeats = Periodic("the heartbeat", HEARTBEAT_PERIOD_MS, self._beat)
        self._refreshes = Periodic(
            "the refresh of routes", ROUTE_PERIOD_MS, self._refresh, gap_ms=ROUTE_GAP_MS
        )
        self._greeted: dict[str, Link] = {}
        self._producer_group: str | None = None
        self._consumer: Callable[[], ConsumerData] | None = None
        self._on_change: Callable[[], None] | None = None
        self._life = _Life.NEW
        self._say_notice = Seldom(self.clock, SAY_AGAIN_MS)
        self.client_id = ""
        self.ids: UniqueIds

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.check_not_closed()
        if self._life is not _Life.NEW:
            raise ClientNotRunning(
                "the client is running already: `with` starts it, or start(), but not both"
            )
        self._life = _Life.STARTING
        chance = self.surroundings.random.getrandbits(32)
        address = await self.surroundings.addresses.facing(self._nameservers[0])
        self.client_id = f"{address}@{self.surroundings.pid}#{chance:08x}"
        packed = ipaddress.ip_address(address).packed
        self.ids = UniqueIds(packed, self.surroundings.pid, chance, self.clock)
        self._life = _Life.RUNNING
        self._tasks.start(self._heartbeats.run(), "heartbeats")
        self._tasks.start(self._refreshes.run(), "routes")

    async def close(self) -> None:
        """Say goodbye to the brokers, then close the connections."""
        self._life = _Life.CLOSED
        await self._tasks.close()
        greeted = {address: link for address, link in self._greeted.items() if link.is_open}
        await saying_if_slow(
            asyncio.gather(*map(self._unregister, greeted.values())),
            lambda: f"the goodbye of the brokers at {printable_part(', '.join(greeted), ADDRESSES_LENGTH)}",
        )
        await self._caller.close()

    def check_not_closed(self) -> None:
        if self._life is _Life.CLOSED:
            raise ClientNotRunning("the client is closed, and is not started again: make a new one")

    def check_running(self) -> None:
        self.check_not_closed()
        if self._life is not _Life.RUNNING:
            raise ClientNotRunning(
                "the client is not running: use it inside `with` (or `async with`), or call start() first"
            )

    def act_as_producer(self, group: str) -> None:
        """Heartbeats name this producer group."""
        self._producer_group = group

    def act_as_consumer(self, state: Callable[[], ConsumerData], on_change: Callable[[], None]) -> None:
        """Heartbeats carry this state; `on_change` is called when members or routes may have changed."""
        self._consumer = state
        self._on_change = on_change

    # ---- calls ---------------------------------------------------------------------------------------------

    async def call(self, address: str, request: Command, timeout_ms: int = CALL_TIMEOUT_MS) -> Command:
        """A broker's answer, whatever its code."""
        return await (await self.link(address)).call(request, timeout_ms)

    async def link(self, address: str) -> Link:
        """The connection to a broker that knows us, for whoever must know whether it is still the same one."""
        link = self._greeted.get(address)
        return link if link is not None and link.is_open else await self._greet(address)

    async def notify(self, address: str, request: Command) -> None:
        """A one-way request to a broker."""
        link = self._greeted.get(address)
        if link is None or not link.is_open:
            link = await self._greet(address)
        try:
            async with asyncio.timeout(CALL_TIMEOUT_MS / 1000):
                await link.drained()
        except TimeoutError:
            raise CallTimeout(f"{address} does not read what it is sent") from None
        link.notify(request)

    async def queue_address(self, queue: MessageQueue, broker_id: int = MASTER_ID) -> str:
        """Where a queue can be asked about."""
        self.check_running()
        await self.routes.route(queue.topic)
        return self.routes.address(queue.broker_name, broker_id)

    def refresh_routes_soon(self) -> None:
        """Something failed in a way that an outdated route would explain."""
        self._refreshes.soon()

    async def greet_all(self) -> None:
        """Be known to every broker of the topics in use.  A broker out of reach is met again later."""
        addresses = self.routes.addresses(masters_only=self._consumer is None)
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
            raise ConnectionLost(
                f"the broker {self.routes.name_at(address)} does not answer: {error}"
            ) from error
        if self._greeted.get(address) is not link:
            await self._send_heartbeat(link)
            self._greeted[address] = link
        return link

    def _is_greeted(self, address: str) -> bool:
        link = self._greeted.get(address)
        return link is not None and link.is_open

    async def _beat(self) -> None:
        await self.greet_all()
        addresses = self.routes.addresses(masters_only=self._consumer is None)
        links = [self._greeted[address] for address in addresses if self._is_greeted(address)]
        for outcome in await asyncio.gather(*map(self._send_heartbeat, links), return_exceptions=True):
            if isinstance(outcome, BolideError):
                log.warning("a heartbeat failed: %s", outcome)
            elif outcome is not None:
                raise outcome

    async def _send_heartbeat(self, link: Link) -> None:
        producers = (self._producer_group,) if self._producer_group else ()
        consumers = (self._consumer(),) if self._consumer else ()
        body = HeartbeatData(self.client_id, producers, consumers).encode()
        raise_for(await link.call(Command(RequestCode.HEART_BEAT, body=body), CALL_TIMEOUT_MS))

    async def _unregister(self, link: Link) -> None:
        group = self._consumer().group if self._consumer else None
        header = UnregisterClient(self.client_id, self._producer_group, group)
        try:
            await link.call(Command(RequestCode.UNREGISTER_CLIENT, header.encode()), CALL_TIMEOUT_MS)
        except BolideError as error:
            log.info("leaving without a goodbye: %s", error)  # the broker notices the closed connection

    # ---- what comes by itself ------------------------------------------------------------------------------

    async def _refresh(self) -> None:
        if await self.routes.refresh():
            self._leave_strangers()
            if self._on_change is not None:
                self._on_change()

    def _leave_strangers(self) -> None:
        """Brokers that are in no route any more: their connections would stay for ever, and more would come."""
        known = {*self.routes.addresses(masters_only=False), *self._nameservers}
        self._greeted = {address: link for address, link in self._greeted.items() if address in known}
        self._caller.keep_only(known)

    def _on_request(self, link: Link, request: Command) -> None:
        if request.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            try:
                group = GroupRequest.decode(request.fields).consumer_group
            except RequestError as error:
                if self._say_notice.is_due():
                    log.warning("a notice that cannot be read: %s", error)
                return
            if self._consumer is not None and self._on_change is not None and group == self._consumer().group:
                self._on_change()
        elif not request.is_one_way and not link.is_behind:  # who asks and does not read is not answered
            link.answer(
                request.answer(
                    ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
                    remark=f"this client does not answer request code {request.code}",
                )
            )


def raise_for(answer: Command) -> Command:
    """The answer if it is a success, else `RemoteError`."""
    if answer.code != ResponseCode.SUCCESS:
        raise RemoteError(answer.code, answer.remark or "")
    return answer
