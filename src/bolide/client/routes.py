"""RouteCache: where topics live, asked from the name servers and remembered.

Any name server will do: the cache begins with one by chance and moves on to the next when one does not answer, or does
not know the topic.  A route once known stays in use until a newer one comes.  So a name server that is down, or has
just started and knows nothing yet, stops nobody.
"""

import asyncio
import logging
from collections.abc import Sequence
from random import Random

from bolide.model.errors import (
    ClientError,
    NoBroker,
    NoNameServer,
    NotANameServer,
    ProtocolError,
    RemoteError,
    RouteNotFound,
    is_of_a_broker,
)
from bolide.model.names import DEFAULT_TOPIC, RETRY_PREFIX
from bolide.net.caller import Caller
from bolide.wire.bodies.client import Route, decode_route
from bolide.wire.bodies.route import MASTER_ID, ClusterInfo
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.route import RouteRequest

log = logging.getLogger(__name__)

CALL_TIMEOUT_MS = 3_000
SECOND_OPINION_S = 0.5
"""How long another name server may take when one has said that there is no such topic."""

SAID_BROKERS_MAX = 3
"""Of those that a route names and nobody can use."""


class RouteCache:
    """Routes of the topics in use, and from them the addresses of brokers."""

    def __init__(self, caller: Caller, nameservers: Sequence[str], random: Random) -> None:
        self._caller = caller
        self._nameservers = list(nameservers)
        self._at = random.randrange(len(nameservers))
        self._routes: dict[str, Route] = {}
        self._borrowed: dict[str, Route] = {}  # topics that do not exist yet: the default topic's route
        self._brokers: dict[str, dict[int, str]] = {}  # broker name to broker id to address, of all routes
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
        self._gather_brokers()
        return default, True

    async def refresh(self) -> bool:
        """Ask again for every topic in use; whether any route has changed."""
        changed = False
        for topic in [*self._routes, *self._borrowed]:
            route = await self._ask(topic)
            if route is not None and route != self._routes.get(topic):
                self._remember(topic, route)
                changed = True
        return changed

    def address(self, broker_name: str, broker_id: int = MASTER_ID) -> str:
        """Where to reach a broker: the member asked for, else the master, else any."""
        members = self._brokers.get(broker_name) or {}
        for member in (broker_id, MASTER_ID, *members):
            if member in members:
                return members[member]
        raise RouteNotFound(f"no address of the broker {broker_name!r} is known")

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

    def _remember(self, topic: str, route: Route) -> None:
        self._say_left_out(topic, route)
        self._routes[topic] = route
        self._borrowed.pop(topic, None)
        self._gather_brokers()

    def _gather_brokers(self) -> None:
        self._brokers = {}
        for route in (*self._borrowed.values(), *self._routes.values()):
            for name, members in route.brokers.items():
                self._brokers.setdefault(name, {}).update(members)

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
        failures: list[str] = []
        is_unknown = False
        request = Command(
            RequestCode.GET_ROUTEINFO_BY_TOPIC,
            RouteRequest(topic, accept_standard_json_only=True).encode(),
        )
        for _ in self._nameservers:
            address = self._nameservers[self._at]
            try:
                async with asyncio.timeout(SECOND_OPINION_S if is_unknown else None):
                    route = _read(await self._caller.call(address, request, CALL_TIMEOUT_MS))
            except (ClientError, ProtocolError, TimeoutError) as error:
                failures.append(_words(address, error))
            else:
                if route is not None:
                    return route
                is_unknown = True
            self._at = (self._at + 1) % len(self._nameservers)
        if is_unknown:
            return None
        raise NoNameServer(
            f"no name server answers: {'; '.join(failures)}."
            " Is the address right, and is one running there (`bolide up` starts one)?"
        )

    async def _asked(self, topic: str) -> str:
        """Whom we have asked, and which brokers are up; `NoBroker` when there is none that could have the topic."""
        said = f"asked {self._servers()}"
        if topic.startswith(RETRY_PREFIX):  # missing until something fails, and asked for again and again
            return said
        found: list[ClusterInfo] = []
        for address in self._nameservers:
            try:
                request = Command(RequestCode.GET_BROKER_CLUSTER_INFO)
                answer = await self._caller.call(address, request, CALL_TIMEOUT_MS)
                if answer.code == ResponseCode.SUCCESS:
                    found.append(ClusterInfo.decode(answer.body))
            except (ClientError, ProtocolError):
                pass  # what the others know will do
        names = sorted({name for info in found for name in info.brokers})
        if found and not names:
            raise NoBroker.at(self._nameservers)
        more = f" and {len(names) - SAID_BROKERS_MAX} more" if len(names) > SAID_BROKERS_MAX else ""
        return f"{said}; brokers that are up: {', '.join(names[:SAID_BROKERS_MAX])}{more}" if names else said

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


def _words(address: str, error: Exception) -> str:
    """Why a name server has given no route."""
    return str(NotANameServer.at(address) if is_of_a_broker(error) else error)
