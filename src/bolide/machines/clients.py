"""ClientTable: who is connected to a broker, in which groups, and what each group subscribes to.

Clients say so in heartbeats and say nothing when they die, so what is not repeated within `LIFETIME_MS`, or whose
connection closes, is forgotten.  A machine: it never sends and never waits.  Time comes in as `now_ms`, a connection
as an opaque token, and what has to be done comes back as effects:

    NotifyGroup   tell these connections that their group has changed, so that they share the queues anew
    Disconnect    this connection has been silent for too long
    Refused       this connection is not in this group, or not with all it subscribes to: there is no room for that
    Differs       this member subscribes to something else than others of its group (`variants.py`)

A group has one set of subscriptions, not one per member: the newest heartbeat wins for all of them, as in the
original.  Unlike the original, an expired member is announced like any other that leaves.

What a connection brings is counted in bytes, and bounded for each and for all.  When there is no room left, whoever
takes most of it gives up a group for whoever takes less (`fair_shares.py`).

Invariants: a client id is in a group at most once; a group exists exactly while it has members; `_held` lists for each
connection the groups that list it, and `_heard` all of these, the one longest silent first.  Start reading at
`heartbeat`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Generic, TypeVar

from bolide.machines.fair_shares import FairShares
from bolide.machines.variants import Variant, Variants
from bolide.model.errors import ConsumerNotOnline
from bolide.model.limits import CLIENTS_BYTES_MAX, CONNECTION_CLIENT_BYTES_MAX, CONNECTION_GROUPS_MAX
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import ConsumeFrom, ConsumerData, ConsumeType, HeartbeatData, MessageModel

LIFETIME_MS = 120_000
"""How long a client counts as alive after its last heartbeat; clients send one every 30 s."""

SEAT_BYTES = 1024
"""What a connection in a group takes, with a group of its own around it; its name and subscriptions come on top."""

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True, slots=True)
class NotifyGroup(Generic[C]):
    group: str
    connections: tuple[C, ...]


@dataclass(frozen=True, slots=True)
class Disconnect(Generic[C]):
    connection: C


@dataclass(frozen=True, slots=True)
class Refused:
    group: str


@dataclass(frozen=True, slots=True)
class Differs:
    group: str
    client_id: str


Effects = list[NotifyGroup[C] | Disconnect[C] | Refused | Differs]


@dataclass(slots=True)
class Member(Generic[C]):
    """One client in the groups of one heartbeat."""

    connection: C
    client_id: str
    language: str
    version: int


@dataclass(slots=True)
class ConsumerGroup(Generic[C]):
    """An online consumer group.  For reading; only the table changes it."""

    name: str
    consume_type: ConsumeType = ConsumeType.PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    members: dict[C, Member[C]] = field(default_factory=dict)
    connection_of: dict[str, C] = field(default_factory=dict)
    """By client id."""
    subscriptions_bytes: int = 0
    brought_by: C | None = None
    """Whose share the subscriptions are counted in."""


@dataclass(slots=True)
class _Held:
    """The groups in which one connection is, in the order in which it came there."""

    consumers: dict[str, None] = field(default_factory=dict)
    producers: dict[str, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.consumers) + len(self.producers)


_Seat = tuple[C, str, bool]
"""A connection in a group, of producers or not."""


class ClientTable(Generic[C]):
    """All connected clients.  `wants_notice` says whether a group's members want to hear of changes."""

    def __init__(self, wants_notice: Callable[[str], bool] = lambda group: True) -> None:
        self._wants_notice = wants_notice
        self._groups: dict[str, ConsumerGroup[C]] = {}
        self._producers: dict[str, dict[C, Member[C]]] = {}
        self._producing: dict[
            str, dict[tuple[C, str], None]
        ] = {}  # by client id: connection and group, newest last
        self._held: dict[C, _Held] = {}
        self._heard: dict[_Seat[C], int] = {}  # who was heard when, in that order
        self._shares: FairShares[C] = FairShares(CLIENTS_BYTES_MAX, CONNECTION_CLIENT_BYTES_MAX)
        self._variants = Variants()
        self.version = 0
        """Another one whenever a group is gone, or consumes in another way or other messages."""

    @property
    def bytes_kept(self) -> int:
        """About what all clients take."""
        return self._shares.total

    def producer_groups(self) -> list[str]:
        """The names of all groups that have producers."""
        return list(self._producers)

    def heard_ms(self, connection: C, producer_group: str) -> int | None:
        """When the producer was heard last."""
        return self._heard.get((connection, producer_group, True))

    # ---- what happens --------------------------------------------------------------------------------------

    def heartbeat(
        self, connection: C, data: HeartbeatData, now_ms: int, *, language: str = "OTHER", version: int = 0
    ) -> Effects[C]:
        """A client is there, with these groups.  The caller makes sure that the connection is still open."""
        effects: Effects[C] = []
        member = Member(connection, data.client_id, language, version)
        for consumer in data.consumers:
            if self._take_seat((connection, consumer.group, False), now_ms, effects):
                self._join(consumer, member, effects, keep_subscriptions=data.without_sub)
        for name in data.producers:
            if self._take_seat((connection, name, True), now_ms, effects):
                self._seat_producer(name, member)
        return effects

    def unregister(
        self, connection: C, *, producer_group: str | None = None, consumer_group: str | None = None
    ) -> Effects[C]:
        """A client says that it leaves these groups; its connection stays, and so do all others."""
        effects: Effects[C] = []
        if producer_group is not None:
            self._leave_producers(connection, producer_group)
        if consumer_group is not None:
            self._leave([(connection, consumer_group)], effects)
        return effects

    def connection_lost(self, connection: C) -> Effects[C]:
        """Everything that was known by this connection is gone."""
        effects: Effects[C] = []
        held = self._held.get(connection)
        if held is not None:
            for group in list(held.producers):
                self._leave_producers(connection, group)
            self._leave([(connection, group) for group in held.consumers], effects)
        return effects

    def expire(self, now_ms: int, count_max: int | None = None) -> Effects[C]:
        """Forget who has been silent for too long, or so many of them."""
        effects: Effects[C] = []
        silent_for_long = takewhile(lambda seat: now_ms - self._heard[seat] > LIFETIME_MS, self._heard)
        seats = list(islice(silent_for_long, count_max))
        for connection, name, produces in seats:
            if produces:
                self._leave_producers(connection, name)
        silent = [(connection, name) for connection, name, produces in seats if not produces]
        self._leave(silent, effects)
        gone = dict.fromkeys(connection for connection, _, _ in seats)
        effects += [Disconnect(connection) for connection in gone if connection not in self._held]
        return effects

    def is_anybody_late(self, now_ms: int) -> bool:
        """Whether somebody has been silent for too long and was not forgotten yet."""
        return now_ms - next(iter(self._heard.values()), now_ms) > LIFETIME_MS

    # ---- what others ask -----------------------------------------------------------------------------------

    def group(self, name: str) -> ConsumerGroup[C] | None:
        """The group, while it has members."""
        return self._groups.get(name)

    def require(self, name: str) -> ConsumerGroup[C]:
        """The group; `ConsumerNotOnline` when it has no members."""
        group = self._groups.get(name)
        if group is None:
            raise ConsumerNotOnline(f"no consumer of the group {name[:255]!r} is connected")
        return group

    def member_ids(self, group: str) -> list[str]:
        found = self._groups.get(group)
        return [] if found is None else [member.client_id for member in found.members.values()]

    def connection_of(self, group: str, client_id: str) -> C | None:
        """The connection of a member."""
        found = self._groups.get(group)
        return None if found is None else found.connection_of.get(client_id)

    def producer_connection(self, client_id: str) -> C | None:
        """The connection of a client that produces, the newest if there are several."""
        seats = self._producing.get(client_id)
        return None if seats is None else next(reversed(seats))[0]

    def variants(self, group: str) -> list[Variant]:
        """What its members want, if that is not the same; nothing where it is."""
        variants = self._variants.of(group)
        return variants if len(variants) > 1 else []

    def subscription(self, group: str, topic: str) -> Subscription | None:
        found = self._groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def groups_of_topic(self, topic: str) -> list[str]:
        """Online groups that subscribe to the topic."""
        return [group.name for group in self._groups.values() if topic in group.subscriptions]

    def has_producers(self, group: str) -> bool:
        return bool(self._producers.get(group))

    def producers(self, group: str) -> list[Member[C]]:
        return list(self._producers.get(group, {}).values())

    # ---- room ----------------------------------------------------------------------------------------------

    def _take_seat(self, seat: _Seat[C], now_ms: int, effects: Effects[C]) -> bool:
        """The connection is in the group from now on, and was heard; False when there is no room for it."""
        connection, name, produces = seat
        if self._heard.pop(seat, None) is None:
            held = self._held.get(connection)
            if (held is not None and len(held) >= CONNECTION_GROUPS_MAX) or not self._take(
                connection, _seat_bytes(name), effects
            ):
                effects.append(Refused(name))
                return False
            held = self._held.setdefault(connection, _Held())
            (held.producers if produces else held.consumers)[name] = None
        self._heard[seat] = now_ms
        return True

    def _take(self, connection: C, size: int, effects: Effects[C]) -> bool:
        """Count so many bytes in the connection's share; others may have to give up groups for that."""
        return self._shares.take(connection, size, lambda rival: self._give_up_one(rival, effects))

    def _give_up_one(self, connection: C, effects: Effects[C]) -> None:
        """The connection leaves the group in which it has been longest."""
        held = self._held[connection]
        if held.producers:
            self._leave_producers(connection, next(iter(held.producers)))
        else:
            self._leave([(connection, next(iter(held.consumers)))], effects)

    # ---- membership ----------------------------------------------------------------------------------------

    def _join(
        self, data: ConsumerData, member: Member[C], effects: Effects[C], *, keep_subscriptions: bool
    ) -> None:
        group = self._groups.get(data.group)
        if group is None:
            group = self._groups[data.group] = ConsumerGroup(data.group)
        if group.message_model is not data.message_model:
            self.version += 1
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from = data.consume_from
        changed = self._seat(group, member)
        if not keep_subscriptions:
            if self._variants.heard(group.name, member.client_id, data.subscriptions):
                effects.append(Differs(group.name, member.client_id))
            changed |= self._subscribe(group, member.connection, data.subscriptions, effects)
        if changed:
            self._announce(group, effects)

    def _seat(self, group: ConsumerGroup[C], member: Member[C]) -> bool:
        """Put the member where its id belongs; tells whether anybody has to hear of it."""
        known = group.members.get(member.connection)
        if known is not None and known.client_id == member.client_id:
            return False
        if known is not None:
            del group.connection_of[known.client_id]
            self._variants.left(group.name, known.client_id)
        other = group.connection_of.get(member.client_id)
        if other is not None:  # the client has connected anew before its old connection was seen to close
            del group.members[other]
            self._release(other, consumer=group.name)
        group.members[member.connection] = member
        group.connection_of[member.client_id] = member.connection
        if other is not None and group.brought_by == other:
            self._recharge(group)
        return True

    def _subscribe(
        self,
        group: ConsumerGroup[C],
        connection: C,
        subscriptions: tuple[Subscription, ...],
        effects: Effects[C],
    ) -> bool:
        """Take over what is new or newer, drop what is no longer there; tells whether the set of topics changed."""
        known = group.subscriptions
        wanted = {one.topic: one for one in subscriptions}
        for topic, old in known.items():
            if topic in wanted and wanted[topic].version <= old.version:
                wanted[topic] = old
        if wanted == known:
            return False
        size = sum(one.kept_bytes for one in wanted.values())
        bringer, group.brought_by = group.brought_by, None  # the new ones take the place of the old ones
        if bringer is not None:
            self._shares.give_back(bringer, group.subscriptions_bytes)
        if not self._take(connection, size, effects):
            if bringer is not None:
                group.brought_by = (
                    bringer if bringer in group.members else connection
                )  # it may have had to leave
                self._shares.burden(group.brought_by, group.subscriptions_bytes)
            effects.append(Refused(group.name))
            return False
        group.brought_by, group.subscriptions_bytes, group.subscriptions = connection, size, wanted
        self.version += 1
        return wanted.keys() != known.keys()

    def _recharge(self, group: ConsumerGroup[C]) -> None:
        """Who brought the subscriptions has left; they count for another member now, however much it has."""
        if group.brought_by is not None:
            self._shares.give_back(group.brought_by, group.subscriptions_bytes)
        group.brought_by = next(iter(group.members), None)
        if group.brought_by is not None:
            self._shares.burden(group.brought_by, group.subscriptions_bytes)

    def _leave(self, leaving: list[tuple[C, str]], effects: Effects[C]) -> None:
        """Take members out of their groups; each group hears of it once, when all have left."""
        changed: dict[str, ConsumerGroup[C]] = {}
        for connection, name in leaving:
            group = self._groups.get(name)
            member = None if group is None else group.members.pop(connection, None)
            if group is None or member is None:
                continue
            del group.connection_of[member.client_id]
            self._variants.left(name, member.client_id)
            if group.brought_by == connection:
                self._recharge(group)
            self._release(connection, consumer=name)
            changed[name] = group
        for name, group in changed.items():
            if group.members:
                self._announce(group, effects)
            else:
                del self._groups[name]
                self.version += 1

    def _seat_producer(self, name: str, member: Member[C]) -> None:
        producers = self._producers.setdefault(name, {})
        known = producers.get(member.connection)
        if known is not None and known.client_id != member.client_id:
            self._forget_producing(known, name)
        producers[member.connection] = member
        self._producing.setdefault(member.client_id, {})[member.connection, name] = None

    def _forget_producing(self, member: Member[C], name: str) -> None:
        seats = self._producing[member.client_id]
        del seats[member.connection, name]
        if not seats:
            del self._producing[member.client_id]

    def _leave_producers(self, connection: C, name: str) -> None:
        producers = self._producers.get(name, {})
        member = producers.pop(connection, None)
        if member is None:
            return
        self._forget_producing(member, name)
        self._release(connection, producer=name)
        if not producers:
            del self._producers[name]

    def _release(self, connection: C, *, consumer: str = "", producer: str = "") -> None:
        held = self._held[connection]
        if consumer:
            del held.consumers[consumer]
            del self._heard[connection, consumer, False]
        if producer:
            del held.producers[producer]
            del self._heard[connection, producer, True]
        self._shares.give_back(connection, _seat_bytes(consumer or producer))
        if not held:
            del self._held[connection]

    def _announce(self, group: ConsumerGroup[C], effects: Effects[C]) -> None:
        """Members of a broadcasting group share nothing, so they need not know of each other."""
        if group.message_model is MessageModel.CLUSTERING and self._wants_notice(group.name):
            effects.append(NotifyGroup(group.name, tuple(group.members)))


def _seat_bytes(name: str) -> int:
    return SEAT_BYTES + 4 * len(name)  # a character may take as much
