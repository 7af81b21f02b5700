"""Shares by machine rooms: whoever is near a broker reads its queues."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bolide.model.errors import ConfigError, StrategyFailed
from bolide.model.offsets import MessageQueue
from bolide.rules.allocate import AVERAGELY, Strategy, java_order, strategy

SEPARATOR = "@"

T = TypeVar("T")


class MachineRoomStrategy:
    """Reads only brokers of some machine rooms, which their names tell: `room@broker` (RocketMQ: MACHINE_ROOM).

    The members share the queues of these rooms.  Queues of all other brokers are read by nobody, unless the group has
    other members for them.  A broker of bolide's cannot have an `@` in its name: there, `MachineRoomNearbyStrategy`
    knows rooms by whatever you tell it.

    Example::

        consumer = PushConsumer(
            "127.0.0.1:9876", group="billing", listener=handle, strategy=MachineRoomStrategy({"berlin", "paris"})
        )

    Args:
        rooms: what stands before the `@` in the names of the brokers to read; the same for all members.
    """

    def __init__(self, rooms: Iterable[str]) -> None:
        self._rooms = _named_rooms(rooms)

    def __repr__(self) -> str:
        return f"MachineRoomStrategy({sorted(self._rooms)})"

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], me: str
    ) -> Sequence[MessageQueue]:
        near = [queue for queue in queues if _named_room(queue) in self._rooms]
        rank = members.index(me)
        share, extra = divmod(len(near), len(members))
        mine = near[rank * share : (rank + 1) * share]
        return [*mine, near[share * len(members) + rank]] if rank < extra else mine


class MachineRoomNearbyStrategy:
    """The members in a broker's machine room share its queues; where there are none, all members do.

    Where brokers and members are is for you to tell.  Every member must come to the same answer.  RocketMQ's name for
    it is MACHINE_ROOM_NEARBY.

    Example::

        nearby = MachineRoomNearbyStrategy(
            broker_room=lambda queue: queue.broker_name.partition("-")[0],  # "berlin-1"
            member_room=lambda member: "berlin" if member.startswith("10.1.") else "paris",  # "10.1.0.7@4711#..."
        )
        consumer = PushConsumer("127.0.0.1:9876", group="billing", listener=handle, strategy=nearby)

    Args:
        broker_room: tells the room of a queue's broker.
        member_room: tells the room of a member by its client id, which begins with its address and an `@`.
        inner: how the members of a room share its queues: the name of a strategy, or one.
    """

    def __init__(
        self,
        broker_room: Callable[[MessageQueue], str],
        member_room: Callable[[str], str],
        inner: str | Strategy = AVERAGELY,
    ) -> None:
        for name, told in (("broker_room", broker_room), ("member_room", member_room)):
            _check_tells_rooms(name, told)
        self._broker_room = broker_room
        self._member_room = member_room
        self._inner = strategy(inner)

    def __repr__(self) -> str:
        return f"MachineRoomNearbyStrategy(inner={self._inner!r})"

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], me: str
    ) -> Sequence[MessageQueue]:
        queues_in = dict(_by_room(queues, self._broker_room, "broker_room"))
        members_in = _by_room(members, self._member_room, "member_room")
        (own,) = (room for room, some in members_in.items() if me in some)
        mine = list(self._inner(queues_in.pop(own, []), members_in[own], me))
        for room in sorted(queues_in, key=java_order):
            if room not in members_in:
                mine += self._inner(queues_in[room], members, me)
        return mine


def _named_rooms(rooms: object) -> frozenset[str]:
    listed = list(rooms) if isinstance(rooms, Iterable) and not isinstance(rooms, str) else []
    if not listed or not all(isinstance(room, str) and room for room in listed):
        raise ConfigError(
            "rooms is a set of names, the part before the @ in the names of brokers, as in {'berlin', 'paris'}, not"
            f" {rooms!r:.64}"
        )
    return frozenset(listed)


def _check_tells_rooms(name: str, told: object) -> None:
    if not callable(told):
        raise ConfigError(f"{name} is a function that gives the name of a room, not {told!r:.64}")


def _by_room(things: Sequence[T], room_of: Callable[[T], str], name: str) -> dict[str, list[T]]:
    rooms: defaultdict[str, list[T]] = defaultdict(list)
    for thing in things:
        room: object = room_of(thing)
        if not isinstance(room, str) or not room:
            raise StrategyFailed(f"{name} gives the name of a room, and gave {room!r:.64} for {thing}")
        rooms[room].append(thing)
    return rooms


def _named_room(queue: MessageQueue) -> str | None:
    """What stands before the only @; Java's split does not see those at the end."""
    parts = queue.broker_name.rstrip(SEPARATOR).split(SEPARATOR)
    return parts[0] if len(parts) == 2 else None
