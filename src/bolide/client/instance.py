"""ClientInstance: what every client has, whatever it does: a life, an identity, and its part of a hub.

Connections, routes and heartbeats belong to the hub (`hub.py`), which clients of one instance name share.
"""

import asyncio
import ipaddress
import os
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Unpack

from bolide.client.answers import raise_for as raise_for
from bolide.client.hooks import HookChain
from bolide.client.hub import CALL_TIMEOUT_MS, Hub, Member, hub_for
from bolide.client.hub import Serve as Serve
from bolide.client.routes import RouteCache
from bolide.client.terms import ClientOptions, Terms
from bolide.model.errors import ClientNotRunning
from bolide.model.offsets import MessageQueue
from bolide.net.link import Link
from bolide.net.surroundings import Surroundings
from bolide.record.message_id import UniqueIds
from bolide.wire.bodies.group import ConsumerData
from bolide.wire.bodies.route import MASTER_ID
from bolide.wire.command import Command

_NOTHING: Mapping[int, Serve] = {}


class _Life(Enum):
    NEW = "not started"
    STARTING = "starting"
    RUNNING = "running"
    CLOSED = "closed"


class ClientInstance:
    """One client.  `start` before anything else, `close` at the end; there is no second start.

    `client_id`, `ids` and `routes` are there from the start on.
    """

    ids: UniqueIds
    batch_ids: UniqueIds
    """For messages that are counted by their batches."""
    routes: RouteCache

    def __init__(
        self, nameservers: str, surroundings: Surroundings | None = None, **options: Unpack[ClientOptions]
    ) -> None:
        self.surroundings = surroundings or Surroundings()
        self.clock = self.surroundings.clock
        self._terms = Terms.of(nameservers, options)
        self.hooks = HookChain(options.get("hooks", ()), self.clock)
        self._member = Member(hooks=self.hooks.all)
        self.client_id = ""
        self._life = _Life.NEW
        self._hub: Hub | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._address = b""

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        self.check_not_closed()
        if self._life is not _Life.NEW:
            raise ClientNotRunning(
                "the client is running already: `with` starts it, or start(), but not both"
            )
        self._life = _Life.STARTING
        self._loop = asyncio.get_running_loop()
        try:
            await self._join()
        except BaseException:
            self._life = _Life.CLOSED
            raise

    async def _join(self) -> None:
        chance = self.surroundings.random.getrandbits(32)
        address = await self.surroundings.addresses.facing(self._terms.nameservers[0])
        self.check_not_closed()
        self.client_id = self._terms.client_id(address, f"{self.surroundings.pid}#{chance:08x}")
        self._address = ipaddress.ip_address(address).packed
        self.ids = UniqueIds(self._address, self.surroundings.pid, chance, self.clock)
        self.batch_ids = self.more_ids()
        hub = hub_for(self._terms, self.client_id, self.surroundings)
        hub.join(self._member, self._terms)
        self._hub, self.routes = hub, hub.routes
        self._life = _Life.RUNNING

    async def close(self) -> None:
        """Say goodbye to the brokers; if nobody else shares them, close the connections."""
        self.check_place()
        self._life = _Life.CLOSED
        hub, self._hub = self._hub, None
        if hub is not None:
            await hub.leave(self._member)

    def more_ids(self) -> UniqueIds:
        """Ids that differ from all others, for whoever counts by himself."""
        chance = self.surroundings.random.getrandbits(32)
        return UniqueIds(self._address, self.surroundings.pid, chance, self.clock)

    def plain_link(self, address: str) -> Link | None:
        """See `Hub.plain_link`; none either while the client is not running."""
        hub = self._hub
        return hub.plain_link(address) if hub is not None else None

    def next_head(self) -> str:
        """The first digits of the ids of a batch, with the present time."""
        return self.batch_ids.head()

    def check_not_closed(self) -> None:
        if self._life is _Life.CLOSED:
            raise ClientNotRunning("the client is closed, and is not started again: make a new one")
        self.check_place()

    @property
    def is_running(self) -> bool:
        return self._life is _Life.RUNNING

    def check_running(self) -> None:
        self.check_not_closed()
        if not self.is_running:
            raise ClientNotRunning(
                "the client is not running: use it inside `with` (or `async with`), or call start() first"
            )

    @property
    def is_here(self) -> bool:
        """Whether this is the event loop that it was started on."""
        return self._loop is asyncio.get_running_loop()

    def check_place(self) -> None:
        """Connections, if there are any, belong to the process and to the event loop that they were made on."""
        if not self.is_running:
            return
        if self._process != os.getpid():
            raise ClientNotRunning(
                "this client was made before the process was forked, and its connections belong to the other"
                " process: make a new client in this one"
            )
        if not self.is_here:
            raise ClientNotRunning(
                "this client was started on another event loop, and its connections live there: use and close it"
                " there, make a client on each loop, or use the blocking clients of bolide, which serve any thread"
            )

    def act_as_producer(self, group: str, serves: Mapping[int, Serve] = _NOTHING) -> None:
        """Heartbeats name this producer group; `serves` has what it answers to brokers, by request code."""
        self._member.producer_group = group
        self._member.serves.update(serves)

    def act_as_consumer(
        self,
        state: Callable[[], ConsumerData],
        on_change: Callable[[], None],
        serves: Mapping[int, Serve] = _NOTHING,
    ) -> None:
        """Heartbeats carry this state; `on_change` is called when members or routes may have changed.

        Raises:
            ConfigError: the group has a consumer of this client id already.
        """
        if self._hub is not None:  # else `join` looks
            self._hub.check_no_consumer(state().group)
        self._member.consumer = state
        self._member.on_change = on_change
        self._member.serves.update(serves)

    # ---- calls ---------------------------------------------------------------------------------------------

    @property
    def hub(self) -> Hub:
        """What it shares with others, while it runs."""
        if self._hub is None:
            self.check_running()
            raise ClientNotRunning("the client is starting")
        return self._hub

    async def call(self, address: str, request: Command, timeout_ms: int = CALL_TIMEOUT_MS) -> Command:
        """A broker's answer, whatever its code."""
        return await (await self.hub.link(address)).call(request, timeout_ms)

    async def link(self, address: str) -> Link:
        """The connection to a broker that knows us, for whoever must know whether it is still the same one."""
        return await self.hub.link(address)

    async def notify(self, address: str, request: Command) -> None:
        """A one-way request to a broker."""
        await self.hub.notify(address, request)

    async def queue_address(self, queue: MessageQueue, broker_id: int = MASTER_ID) -> str:
        """Where a queue can be asked about."""
        self.check_running()
        await self.routes.route(queue.topic)
        return self.routes.address(queue.broker_name, broker_id)

    def refresh_routes_soon(self) -> None:
        """Something failed in a way that an outdated route would explain."""
        if self._hub is not None:
            self._hub.refreshes.soon()

    async def routes_renewed(self) -> None:
        """Wait until the name servers were asked again, for whoever has a deadline."""
        await self.hub.refreshes.renewed()

    async def greet_all(self) -> None:
        """Be known to every broker of the topics in use.  A broker out of reach is met again later."""
        await self.hub.greet_all()

    async def beat_now(self) -> None:
        """Tell every broker our present state."""
        self.check_running()
        await self.hub.beat_now()
