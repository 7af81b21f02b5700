"""Bodies that clients read: routes (105) and members of a group (38).  What is none is a `ProtocolError`.

A route is believed within bounds, because of what a client does with it: it connects to every broker, reads every queue
and names both in its log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bolide.model.addresses import parse_address
from bolide.model.errors import ConfigError, ProtocolError, RequestError
from bolide.model.limits import (
    BROKER_ADDRESSES_MAX,
    GROUP_MEMBERS_MAX,
    ROUTE_BROKERS_MAX,
    ROUTE_BYTES_MAX,
    ROUTE_QUEUES_MAX,
    TOLD_QUEUES_MAX,
)
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Permission
from bolide.wire.bodies.group import decode_member_ids
from bolide.wire.bodies.route import MASTER_ID, BrokerData, QueueData, TopicRoute

TOLD_NAME_LENGTH_MAX = 255
"""Of a broker's name or address in a route."""


@dataclass(frozen=True, slots=True)
class RouteQueues:
    """How many queues of a topic one broker name has."""

    broker_name: str
    read_queues: int
    write_queues: int
    perm: int


@dataclass(frozen=True, slots=True)
class Route:
    """Where a topic lives.  `brokers` is broker name to broker id to address; id 0 is the master."""

    queues: tuple[RouteQueues, ...]
    brokers: Mapping[str, Mapping[int, str]]
    left_out: tuple[str, ...] = ()
    """Brokers that it names and that nobody can use, each with the reason."""

    def readable(self, topic: str) -> list[MessageQueue]:
        """The queues that consumers share, in their common order."""
        return [
            MessageQueue(topic, part.broker_name, queue_id)
            for part in self.queues
            if part.perm & Permission.READ and part.broker_name in self.brokers
            for queue_id in range(part.read_queues)
        ]

    def writable(self, topic: str, queues_max: int = TOLD_QUEUES_MAX) -> list[MessageQueue]:
        """The queues that can be sent to: permitted, and with a master to send to."""
        return [
            MessageQueue(topic, part.broker_name, queue_id)
            for part in self.queues
            if part.perm & Permission.WRITE and MASTER_ID in self.brokers.get(part.broker_name, ())
            for queue_id in range(min(part.write_queues, queues_max))
        ]


def decode_route(body: bytes) -> Route:
    """TopicRouteData; broker ids may come as text or as bare numbers.

    A broker that cannot be used is left out, so that it keeps nobody from the others.
    """
    if len(body) > ROUTE_BYTES_MAX:
        raise ProtocolError(f"a route of {len(body)} bytes; {ROUTE_BYTES_MAX} are allowed")
    try:
        told = TopicRoute.decode(body)
    except RequestError as error:
        raise ProtocolError(f"a route that cannot be read: {error}") from error
    if max(len(told.brokers), len(told.queues)) > ROUTE_BROKERS_MAX:
        raise ProtocolError(f"a route with more than {ROUTE_BROKERS_MAX} brokers")
    left_out: list[str] = []
    brokers = {
        broker.broker_name: dict(broker.addresses)
        for broker in told.brokers
        if not _is_odd(_fault_of_broker(broker), broker.broker_name, left_out)
    }
    parts = {
        queues.broker_name: RouteQueues(
            queues.broker_name, queues.read_queues, queues.write_queues, queues.perm
        )
        for queues in told.queues
        if not _is_odd(_fault_of_queues(queues), queues.broker_name, left_out)
    }
    if sum(max(part.read_queues, part.write_queues) for part in parts.values()) > ROUTE_QUEUES_MAX:
        raise ProtocolError(f"a route with more than {ROUTE_QUEUES_MAX} queues")
    return Route(tuple(parts[name] for name in sorted(parts)), brokers, tuple(left_out))


def decode_members(body: bytes) -> list[str]:
    """Client ids of a group."""
    try:
        members = decode_member_ids(body)
    except RequestError as error:
        raise ProtocolError(f"a list of members that cannot be read: {error}") from error
    if len(members) > GROUP_MEMBERS_MAX:
        raise ProtocolError(f"a list of {len(members)} members; {GROUP_MEMBERS_MAX} are allowed")
    return members


def _is_odd(fault: str | None, broker_name: str, left_out: list[str]) -> bool:
    if fault is not None:
        left_out.append(f"{broker_name[:TOLD_NAME_LENGTH_MAX]!r}: {fault}")
    return fault is not None


def _fault_of_broker(broker: BrokerData) -> str | None:
    return _fault_of_name(broker.broker_name) or _fault_of_addresses(broker.addresses.values())


def _fault_of_queues(queues: QueueData) -> str | None:
    for count in (queues.read_queues, queues.write_queues):
        if not 0 <= count <= TOLD_QUEUES_MAX:
            return f"it cannot have {count} queues"
    return _fault_of_name(queues.broker_name)


def _fault_of_name(name: str) -> str | None:
    """Names go to logs and terminals as they are."""
    if not 0 < len(name) <= TOLD_NAME_LENGTH_MAX:
        return f"a name of {len(name)} characters"
    return None if name.isprintable() else "a name with characters that cannot be printed"


def _fault_of_addresses(addresses: Iterable[str]) -> str | None:
    listed = list(addresses)
    if len(listed) > BROKER_ADDRESSES_MAX:
        return f"{len(listed)} addresses"
    for address in listed:
        try:
            parse_address(address)
        except ConfigError as error:
            return str(error)
        if fault := _fault_of_name(address):
            return f"{address[:TOLD_NAME_LENGTH_MAX]!r} is not an address: {fault}"
    return None
