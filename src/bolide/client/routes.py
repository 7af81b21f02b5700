"""RouteCache: where topics live, asked from the name servers and remembered.

Any name server will do: the cache begins with one by chance and moves on to the next when one does not answer, or does
not know the topic.  A route once known stays in use until a newer one comes.  So a name server that is down, or has
just started and knows nothing yet, stops nobody.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import TypeVar

from bolide.model.errors import (
    CallTimeout,
    ClientError,
    ConnectionLost,
    NoBroker,
    NoNameServer,
    NotANameServer,
    ProtocolError,
    RemoteError,
    RouteNotFound,
    TlsFailed,
    is_of_a_broker,
)
from bolide.model.names import DEFAULT_TOPIC, RETRY_PREFIX
from bolide.net.caller import Caller
from bolide.net.ticks import pause
from bolide.wire.bodies.client import Route, decode_route
from bolide.wire.bodies.route import MASTER_ID, ClusterInfo
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.route import RouteRequest

log = logging.getLogger(__name__)

CALL_TIMEOUT_MS = 3_000
FIRST_TIMEOUT_MS = 1_000
"""Of these: after so long a silence the connection is taken for dead, and the same is asked over a new one."""

SECOND_OPINION_S = 0.5
"""How long another name server may take when one has said that there is no such topic."""

SAID_BROKERS_MAX = 3
"""Of those that a route names and nobody can use."""

WAIT_MS = 3_000
"""How long a client waits for a name server that may start beside it: who gave a wrong address wants to know soon."""

AGAIN_S = 0.1

T = TypeVar("T")


async def patiently(work: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T:
    """The outcome of work that needs a route: while no name server answers and one may, it is tried again."""
    timeout_ms = WAIT_MS if timeout_ms is None else min(timeout_ms, WAIT_MS)
    now = asyncio.get_running_loop().time
    until, is_first = now() + timeout_ms / 1000, True
    while True:
        try:
            return await work()
        except NoNameServer as error:
            if not error.may_come or now() + AGAIN_S >= until:
                raise
            if is_first:
                log.warning("waiting for a name server, for %g s at most: %s", timeout_ms / 1000, error)
            is_first = False
        await pause(AGAIN_S)


class RouteCache:
    """Routes of the topics in use, and from them the addresses of brokers."""

    def __init__(self, caller: Caller, nameservers: Sequence[str], random: Random) -> None:
        self._caller = caller
        self._nameservers = list(nameservers)
        self._at = random.randrange(len(nameservers))
        self._routes: dict[str, Route] = {}
        self._borrowed: dict[str, Route] = {}  # topics that do not exist yet: the default topic's route
        self._brokers: dict[str, Mapping[int, str]] = {}  # broker name to broker id to address, of all routes
        self._asking = asyncio.Lock()

    async def route(self, topic: str) -> Route:
        """The topic's own route; `RouteNotFound` when no broker has it."""
        route = self._routes.get(topic) or await self._find(topic)
        if route is None:
            raise RouteNotFound(
                f"no broker has the topic {topic!r} ({await self._asked(topic)}): start the broker that has it,"
                f" create it with `bolide topic create {topic}`, or send a first message to it"
            )
        return route

    async def route_for_sending(self, topic: str) -> tuple[Route, bool]:
        """The route to send to, and whether it is borrowed: the broker then creates the topic on demand."""
        if (route := self._routes.get(topic)) is not None:
            return route, False
        if (route := self._borrowed.get(topic)) is not None:
            return route, True
        if (route := await self._find(topic)) is not None:
            return route, False
        default = await self._ask(DEFAULT_TOPIC)
        if default is None:
            raise RouteNotFound(
                f"no broker has the topic {topic!r} and none creates topics on demand ({await self._asked(topic)}):"
                f" start the broker that has it, create it with `bolide topic create {topic}`, or set"
                " autoCreateTopicEnable=true on a broker"
            )
        self._borrowed[topic] = default
        self._locate_brokers(default)
        return default, True

    def known(self, topic: str) -> Route | None:
        """The topic's own route if it was asked for already; any thread may ask."""
        return self._routes.get(topic)

    async def refresh(self) -> bool:
        """Ask again for every topic in use; whether any route has changed."""
        changed = False
        for topic in [*self._routes, *self._borrowed]:
            route = await self._ask(topic)
            if route is not None:
                changed |= self._remember(topic, route)
        if self._borrowed and (default := await self._ask(DEFAULT_TOPIC)) is not None:
            changed |= self._lend(default)
        self._forget_brokers()
        return changed

    def address(self, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """Where to reach a broker: the member asked for, else the master, else any."""
        members = self._brokers.get(broker_name) or {}
        for member in (broker_id, MASTER_ID, *members):
            if member in members:
                return members[member]
        raise RouteNotFound(f"no address of the broker {broker_name!r} is known")

    def has_master(self, broker_name: str) -> bool:
        """Whether any route in use names its master."""
        return MASTER_ID in self._brokers.get(broker_name, ())

    async def find_address(self, broker_name: str) -> str:
        """Where to reach a broker that may have none of the topics in use; name servers know all that are up."""
        with contextlib.suppress(RouteNotFound):
            return self.address(broker_name)
        for info in await self._cluster_infos():
            known = info.brokers.get(broker_name)
            if known is not None and known.master is not None:
                return known.master
        raise RouteNotFound(f"no name server knows the broker {broker_name!r} ({self._servers()})")

    def name_at(self, address: str) -> str:
        """Who is said to be there; the address where no route says it any more."""
        return next((name for name, members in self._brokers.items() if address in members.values()), address)

    def addresses(self, *, masters_only: bool) -> list[str]:
        """Every broker of the topics in use."""
        return sorted(
            {
                address
                for members in self._brokers.values()
                for broker_id, address in members.items()
                if broker_id == MASTER_ID or not masters_only
            }
        )

    def _remember(self, topic: str, route: Route) -> bool:
        """Whether it says anything new."""
        is_new = route != self._routes.get(topic)
        if is_new:
            self._say_left_out(topic, route)
            self._routes[topic] = route
        self._borrowed.pop(topic, None)
        return self._locate_brokers(route) or is_new

    def _lend(self, default: Route) -> bool:
        """To all topics that do not exist yet; whether it says anything new."""
        is_new = any(route != default for route in self._borrowed.values())
        self._borrowed = dict.fromkeys(self._borrowed, default)
        return self._locate_brokers(default) or is_new

    def _locate_brokers(self, newest: Route) -> bool:
        """A broker is where the newest answer has it, whatever the route of a topic that is gone still says; whether
        any was elsewhere before."""
        known, told = self._brokers, {**self._brokers, **newest.brokers}
        self._brokers = told  # whole: threads look into it
        return told != known

    def _forget_brokers(self) -> None:
        """Those that no route names any more."""
        routes = (*self._borrowed.values(), *self._routes.values())
        named = {name for route in routes for name in route.brokers}
        self._brokers = {name: members for name, members in self._brokers.items() if name in named}

    async def _find(self, topic: str) -> Route | None:
        async with self._asking:  # many sends may want the same first route
            if (known := self._routes.get(topic)) is not None:
                return known
            route = await self._ask(topic)
            if route is not None:
                self._remember(topic, route)
            return route

    async def _ask(self, topic: str) -> Route | None:
        """The route as the first name server has it that knows one; None when none of those that answer does."""
        failures: dict[str, Exception] = {}
        is_unknown = False
        request = Command(
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RouteRequest(topic, accept_standard_json_only=True).encode(),
        )
        first = self._at  # others ask meanwhile, and may move on too
        for number in (*range(first, len(self._nameservers)), *range(first)):
            address = self._nameservers[number]
            try:
                async with asyncio.timeout(SECOND_OPINION_S if is_unknown else None):
                    route = _read(await self._call(address, request))
            except (ClientError, ProtocolError, TimeoutError) as error:
                failures[address] = error
            else:
                if route is not None:
                    self._at = number
                    return route
                is_unknown = True
        if is_unknown:
            return None
        trouble = NoNameServer(_why_none(failures))
        trouble.may_come = any(map(_may_pass, failures.values()))
        raise trouble

    async def _call(self, address: str, request: Command) -> Command:
        try:
            return await self._caller.call(address, request, FIRST_TIMEOUT_MS)
        except CallTimeout:  # one who is only slow has heard it twice, and is answered for either
            return await self._caller.call(address, request, CALL_TIMEOUT_MS - FIRST_TIMEOUT_MS)

    async def _asked(self, topic: str) -> str:
        """Whom we have asked, and which brokers are up; `NoBroker` when there is none that could have the topic."""
        said = f"asked {self._servers()}"
        if topic.startswith(RETRY_PREFIX):  # missing until something fails, and asked for again and again
            return said
        found = await self._cluster_infos()
        names = sorted({name for info in found for name in info.brokers})
        if found and not names:
            raise NoBroker.at(self._nameservers)
        more = f" and {len(names) - SAID_BROKERS_MAX} more" if len(names) > SAID_BROKERS_MAX else ""
        return f"{said}; brokers that are up: {', '.join(names[:SAID_BROKERS_MAX])}{more}" if names else said

    async def _cluster_infos(self) -> list[ClusterInfo]:
        """All brokers that are up, as each name server that answers has them."""
        found: list[ClusterInfo] = []
        for address in self._nameservers:
            try:
                request = Command(RequestCode.GET_BROKER_CLUSTER_INFO)
                answer = await self._call(address, request)
                if answer.code == ResponseCode.SUCCESS:
                    found.append(ClusterInfo.decode(answer.body))
            except (ClientError, ProtocolError):
                pass  # what the others know will do
        return found

    def _say_left_out(self, topic: str, route: Route) -> None:
        """Once, and again when others are left out."""
        known = self._routes.get(topic)
        if route.left_out and (known is None or known.left_out != route.left_out):
            some = "; ".join(route.left_out[:SAID_BROKERS_MAX])
            log.warning(
                "the route of %s has %d entries that are left out: %s", topic, len(route.left_out), some
            )

    def _servers(self) -> str:
        return ", ".join(self._nameservers)


def _read(answer: Command) -> Route | None:
    if answer.code == ResponseCode.SUCCESS:
        return decode_route(answer.body)
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return None
    raise RemoteError(answer.code, answer.remark or "")


def _why_none(failures: Mapping[str, Exception]) -> str:
    said = "; ".join(_words(address, error) for address, error in failures.items())
    if not any(_is_starting(error) for error in failures.values()):
        return (
            f"no name server answers: {said}."
            " Is the address right, and is one running there (`bolide up` starts one)?"
        )
    return f"no name server gives routes yet: {said}. One is there, so try again in a moment"


def _may_pass(error: Exception) -> bool:
    if isinstance(error, ConnectionLost):
        return not isinstance(error, TlsFailed)
    return isinstance(error, CallTimeout | TimeoutError) or _is_starting(error)


def _is_starting(error: Exception) -> bool:
    """Whether it is the answer of one that waits for its brokers; the original's differs in its words only."""
    return isinstance(error, RemoteError) and error.response_code == ResponseCode.SYSTEM_ERROR


def _words(address: str, error: Exception) -> str:
    """Why a name server has given no route."""
    if isinstance(error, RemoteError):
        return str(NotANameServer.at(address)) if is_of_a_broker(error) else f"{address} says {error}"
    return str(error)
