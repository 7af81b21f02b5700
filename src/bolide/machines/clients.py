"""ClientTable: who is connected to a broker, in which groups, and what each group subscribes to.

Clients say so in heartbeats and say nothing when they die, so what is not repeated within `LIFETIME_MS`, or whose
connection closes, is forgotten.  A machine: it never sends and never waits.  Time comes in as `now_ms`, a connection
as an opaque token, and what has to be done comes back as effects:

    NotifyGroup   tell these connections that their group has changed, so that they share the queues anew
    Disconnect    this connection has been silent for too long

A group has one set of subscriptions, not one per member: the newest heartbeat wins for all of them, as in the
original.  Unlike the original, an expired member is announced like any other that leaves.

Invariants: a client id is in a group at most once; a group exists exactly while it has members; `_held` lists for each
connection the groups that list it, and `_heard` all of these, the one longest silent first.  Start reading at
`heartbeat`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Generic, TypeVar

from bolide.model.topic import Subscription
from bolide.wire.bodies.group import ConsumeFrom, ConsumerData, ConsumeType, HeartbeatData, MessageModel

LIFETIME_MS = 120_000
"""How long a client counts as alive after its last heartbeat; clients send one every 30 s."""

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True, slots=True)
class NotifyGroup(Generic[C]):
    group: str
    connections: tuple[C, ...]


@dataclass(frozen=True, slots=True)
class Disconnect(Generic[C]):
    connection: C


Effects = list[NotifyGroup[C] | Disconnect[C]]


@dataclass(slots=True)
class Member(Generic[C]):
    """One client in one group."""

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


@dataclass(slots=True)
class _Held:
    """The groups in which one connection is."""

    consumers: set[str] = field(default_factory=set)
    producers: set[str] = field(default_factory=set)


_Seat = tuple[C, str, bool]
"""A connection in a group, of producers or not."""


class ClientTable(Generic[C]):
    """All connected clients.  `wants_notice` says whether a group's members want to hear of changes."""

    def __init__(self, wants_notice: Callable[[str], bool] = lambda group: True) -> None:
        self._wants_notice = wants_notice
        self._groups: dict[str, ConsumerGroup[C]] = {}
        self._producers: dict[str, dict[C, Member[C]]] = {}
        self._held: dict[C, _Held] = {}
        self._heard: dict[_Seat[C], int] = {}  # who was heard when, in that order
        self.revision = 0
        """Changes whenever a consumer group has: a member, a subscription or how it consumes."""

    # ---- what happens --------------------------------------------------------------------------------------

    def heartbeat(
        self, connection: C, data: HeartbeatData, now_ms: int, *, language: str = "OTHER", version: int = 0
    ) -> Effects[C]:
        """A client is there, with these groups.  The caller makes sure that the connection is still open."""
        effects: Effects[C] = []
        for consumer in data.consumers:
            member = Member(connection, data.client_id, language, version)
            self._hear((connection, consumer.group, False), now_ms)
            self._join(consumer, member, effects, keep_subscriptions=data.without_sub)
        for name in data.producers:
            producers = self._producers.setdefault(name, {})
            producers[connection] = Member(connection, data.client_id, language, version)
            self._hear((connection, name, True), now_ms)
            self._held.setdefault(connection, _Held()).producers.add(name)
        return effects

    def unregister(
        self, connection: C, *, producer_group: str | None = None, consumer_group: str | None = None
    ) -> Effects[C]:
        """A client says that it leaves these groups; its connection stays."""
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
            for group in sorted(held.producers):
                self._leave_producers(connection, group)
            self._leave([(connection, group) for group in sorted(held.consumers)], effects)
        return effects

    def expire(self, now_ms: int) -> Effects[C]:
        """Forget who has been silent for too long."""
        effects: Effects[C] = []
        seats = list(takewhile(lambda seat: now_ms - self._heard[seat] > LIFETIME_MS, self._heard))
        for connection, name, produces in seats:
            if produces:
                self._leave_producers(connection, name)
        silent = [(connection, name) for connection, name, produces in seats if not produces]
        self._leave(silent, effects)
        gone = dict.fromkeys(connection for connection, _, _ in seats)
        effects += [Disconnect(connection) for connection in gone if connection not in self._held]
        return effects

    # ---- what others ask -----------------------------------------------------------------------------------

    def group(self, name: str) -> ConsumerGroup[C] | None:
        """The group, while it has members."""
        return self._groups.get(name)

    def member_ids(self, group: str) -> list[str]:
        found = self._groups.get(group)
        return [] if found is None else [member.client_id for member in found.members.values()]

    def subscription(self, group: str, topic: str) -> Subscription | None:
        found = self._groups.get(group)
        return None if found is None else found.subscriptions.get(topic)

    def groups_of_topic(self, topic: str) -> list[str]:
        """Online groups that subscribe to the topic."""
        return [group.name for group in self._groups.values() if topic in group.subscriptions]

    def producers(self, group: str) -> list[Member[C]]:
        return list(self._producers.get(group, {}).values())

    # ---- membership ----------------------------------------------------------------------------------------

    def _hear(self, seat: _Seat[C], now_ms: int) -> None:
        self._heard.pop(seat, None)
        self._heard[seat] = now_ms

    def _join(
        self, data: ConsumerData, member: Member[C], effects: Effects[C], *, keep_subscriptions: bool
    ) -> None:
        group = self._groups.get(data.group)
        if group is None:
            group = self._groups[data.group] = ConsumerGroup(data.group)
        if group.message_model is not data.message_model:
            self.revision += 1
        group.consume_type = data.consume_type
        group.message_model = data.message_model
        group.consume_from = data.consume_from
        changed = self._seat(group, member, effects)
        if not keep_subscriptions:
            versions = {one.topic: one.version for one in group.subscriptions.values()}
            changed |= _update_subscriptions(group, data.subscriptions)
            if versions != {one.topic: one.version for one in group.subscriptions.values()}:
                self.revision += 1
        if changed:
            self.revision += 1
            self._announce(group, effects)

    def _seat(self, group: ConsumerGroup[C], member: Member[C], effects: Effects[C]) -> bool:
        """Put the member where its id belongs; tells whether anybody has to hear of it."""
        known = group.members.get(member.connection)
        if known is not None and known.client_id == member.client_id:
            return False
        for other in [one for one in group.members.values() if one.client_id == member.client_id]:
            # The client has connected anew before its old connection was seen to close.
            del group.members[other.connection]
            self._release(other.connection, consumer=group.name)
        group.members[member.connection] = member
        self._held.setdefault(member.connection, _Held()).consumers.add(group.name)
        return True

    def _leave(self, leaving: list[tuple[C, str]], effects: Effects[C]) -> None:
        """Take members out of their groups; each group hears of it once, when all have left."""
        changed: dict[str, ConsumerGroup[C]] = {}
        for connection, name in leaving:
            group = self._groups.get(name)
            member = None if group is None else group.members.pop(connection, None)
            if group is None or member is None:
                continue
            self._release(connection, consumer=name)
            changed[name] = group
            self.revision += 1
        for name, group in changed.items():
            if group.members:
                self._announce(group, effects)
            else:
                del self._groups[name]

    def _leave_producers(self, connection: C, name: str) -> None:
        producers = self._producers.get(name, {})
        if producers.pop(connection, None) is None:
            return
        self._release(connection, producer=name)
        if not producers:
            del self._producers[name]

    def _release(self, connection: C, *, consumer: str = "", producer: str = "") -> None:
        held = self._held[connection]
        if consumer:
            held.consumers.discard(consumer)
            self._heard.pop((connection, consumer, False), None)
        if producer:
            held.producers.discard(producer)
            self._heard.pop((connection, producer, True), None)
        if not held.consumers and not held.producers:
            del self._held[connection]

    def _announce(self, group: ConsumerGroup[C], effects: Effects[C]) -> None:
        """Members of a broadcasting group share nothing, so they need not know of each other."""
        if group.message_model is MessageModel.CLUSTERING and self._wants_notice(group.name):
            effects.append(NotifyGroup(group.name, tuple(group.members)))


def _update_subscriptions(group: ConsumerGroup[C], subscriptions: tuple[Subscription, ...]) -> bool:
    """Take over what is new or newer, drop what is no longer there; tells whether the set of topics changed."""
    known = group.subscriptions
    wanted = {one.topic for one in subscriptions}
    changed = not wanted <= known.keys() or not known.keys() <= wanted
    for topic in [topic for topic in known if topic not in wanted]:
        del known[topic]
    for one in subscriptions:
        old = known.get(one.topic)
        if old is None or one.version > old.version:
            known[one.topic] = one
    return changed
