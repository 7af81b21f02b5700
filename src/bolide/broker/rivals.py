"""Rivals: does another broker call itself like this one, by name and id?

Clients know brokers by their names.  Of two with one name they find whichever registered last, look there for the
messages of the other, and go on behind offsets that were committed elsewhere.  A name server remembers only the last
address of a name and id.  So before it starts a broker asks who is there, and does not start beside one that answers;
and before it registers again it looks whether its place was taken meanwhile, and says so.
"""

import asyncio
import logging
from collections.abc import Iterable

from bolide.broker.introduction import BrokerIdentity
from bolide.machines.said import Said
from bolide.model.clock import Clock
from bolide.model.errors import BolideError, ConfigError, RequestError
from bolide.model.response_code import ResponseCode
from bolide.net.caller import Caller
from bolide.net.link import Link
from bolide.wire.bodies.properties import parse_settings
from bolide.wire.bodies.route import TopicRoute
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.route import RouteRequest

log = logging.getLogger(__name__)

ASK_MS = 2_000
"""For an answer.  Who is not there for so long keeps nobody from starting."""

WHAT_TO_DO = "stop one of them, or give it another brokerName"


async def check_no_rival(caller: Caller, nameservers: Iterable[str], me: BrokerIdentity) -> None:
    """`ConfigError` if a broker of our name and id is running at another address.

    An address where nobody answers is where a broker was, perhaps this one; it is not in the way.
    """
    known = await asyncio.gather(*(_known_address(caller, address, me) for address in nameservers))
    for address in dict.fromkeys(filter(None, known)):
        if await _is_called_like(caller, address, me):
            raise ConfigError(
                f"a broker called {me.name} (id {me.broker_id}) is running at {address}. Clients would find only one"
                f" of the two, and miss the messages of the other: {WHAT_TO_DO}"
            )


async def other_holder(link: Link, me: BrokerIdentity, timeout_ms: int) -> str | None:
    """The address under which a name server knows our name and id, if it is not ours."""
    route = RouteRequest(me.name, accept_standard_json_only=True)  # every broker's name is a topic of it
    answer = await link.call(Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, route.encode()), timeout_ms)
    try:
        brokers = TopicRoute.decode(answer.body).brokers if answer.code == ResponseCode.SUCCESS else ()
    except RequestError:  # a name server that talks nonsense may take registrations all the same
        return None
    for broker in brokers:
        address = broker.addresses.get(me.broker_id)
        if broker.broker_name == me.name and address is not None and address != me.address:
            return address
    return None


class Rivals:
    """Those that a broker has met while it runs."""

    def __init__(self, me: BrokerIdentity, clock: Clock) -> None:
        self._me = me
        self._clock = clock
        self._said = Said()
        self._met: dict[str, str] = {}  # by name server

    def look(self, nameserver: str, other: str | None) -> None:
        """What a name server says of our place, when it should have us there."""
        if other is None:
            self._met.pop(nameserver, None)
            return
        self._met[nameserver] = other
        if self._said.is_news(self._clock.monotonic_ms(), "rival"):
            log.error(
                "another broker calls itself %s (id %d): %.255r has taken our place at the name server %s. Clients"
                " find whichever registered last, and miss the messages of the other: %s",
                self._me.name,
                self._me.broker_id,
                other,
                nameserver,
                WHAT_TO_DO,
            )

    def figures(self) -> dict[str, str]:
        """For operators; nothing while all is well."""
        return {"rivalBrokerAddr": ",".join(dict.fromkeys(self._met.values()))} if self._met else {}


async def _known_address(caller: Caller, nameserver: str, me: BrokerIdentity) -> str | None:
    try:
        async with asyncio.timeout(ASK_MS / 1000):
            return await other_holder(await caller.link(nameserver), me, ASK_MS)
    except (BolideError, TimeoutError):
        return None  # whether it works at all is seen when we register


async def _is_called_like(caller: Caller, address: str, me: BrokerIdentity) -> bool:
    """Whether a broker of our name and id answers there."""
    try:
        async with asyncio.timeout(ASK_MS / 1000):
            answer = await caller.call(address, Command(RequestCode.GET_BROKER_CONFIG), ASK_MS)
        settings = parse_settings(answer.body) if answer.code == ResponseCode.SUCCESS else {}
    except (BolideError, TimeoutError):
        return False
    return settings.get("brokerName") == me.name and settings.get("brokerId") == str(me.broker_id)
