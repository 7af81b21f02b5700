"""The table of clients against a slow and obvious model of it, for any order of events."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from bolide.machines.clients import LIFETIME_MS, SEAT_BYTES, ClientTable, Effects, NotifyGroup
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import ConsumerData, HeartbeatData

CONNECTIONS = st.sampled_from(["A", "B", "C", "D"])
CLIENTS = st.sampled_from(["a", "b", "c"])
GROUPS = st.sampled_from(["g", "h"])
TOPIC = (Subscription.parse("t", "A || B", 1),)


class Clients(RuleBasedStateMachine):
    """The model is a flat set of (group, connection, client) with the time each was heard."""

    def __init__(self) -> None:
        super().__init__()
        self.table: ClientTable[str] = ClientTable()
        self.heard: dict[tuple[str, str], tuple[str, int]] = {}
        self.now_ms = 0

    @rule(connection=CONNECTIONS, client=CLIENTS, groups=st.sets(GROUPS))
    def heartbeat(self, connection: str, client: str, groups: set[str]) -> None:
        before = self.members()
        consumers = tuple(ConsumerData(group, subscriptions=TOPIC) for group in sorted(groups))
        data = HeartbeatData(client, (), consumers)
        effects = self.table.heartbeat(connection, data, self.now_ms)
        for group in groups:
            taken = [key for key, (who, _) in self.heard.items() if key[0] == group and who == client]
            for key in taken:
                del self.heard[key]
            self.heard[group, connection] = (client, self.now_ms)
        self.check_notices(before, effects)

    @rule(connection=CONNECTIONS, group=GROUPS)
    def unregister(self, connection: str, group: str) -> None:
        before = self.members()
        effects = self.table.unregister(connection, consumer_group=group)
        self.heard.pop((group, connection), None)
        self.check_notices(before, effects)

    @rule(connection=CONNECTIONS)
    def lose(self, connection: str) -> None:
        before = self.members()
        effects = self.table.connection_lost(connection)
        self.heard = {key: value for key, value in self.heard.items() if key[1] != connection}
        self.check_notices(before, effects)

    @rule(passed_ms=st.integers(1, LIFETIME_MS))
    def wait(self, passed_ms: int) -> None:
        before = self.members()
        self.now_ms += passed_ms
        effects = self.table.expire(self.now_ms)
        self.heard = {
            key: value for key, value in self.heard.items() if self.now_ms - value[1] <= LIFETIME_MS
        }
        self.check_notices(before, effects)

    def members(self) -> dict[str, set[tuple[str, str]]]:
        """Group to (connection, client)."""
        groups: dict[str, set[tuple[str, str]]] = {}
        for (group, connection), (client, _) in self.heard.items():
            groups.setdefault(group, set()).add((connection, client))
        return groups

    def check_notices(self, before: dict[str, set[tuple[str, str]]], effects: Effects[str]) -> None:
        """Each changed group that still has members is told once, and all its members are."""
        told: dict[str, Any] = {}
        for effect in effects:
            if isinstance(effect, NotifyGroup):
                assert effect.group not in told
                told[effect.group] = set(effect.connections)
        after = self.members()
        changed = {group for group in after if after[group] != before.get(group)}
        assert told == {group: {connection for connection, _ in after[group]} for group in changed}

    @invariant()
    def table_and_model_agree(self) -> None:
        members = self.members()
        for group in ("g", "h"):
            wanted = sorted(client for _, client in members.get(group, ()))
            assert sorted(self.table.member_ids(group)) == wanted
            assert (self.table.group(group) is None) == (not wanted)

    @invariant()
    def nothing_is_remembered_of_connections_without_groups(self) -> None:
        held: dict[str, set[str]] = {}
        for group, connection in self.heard:
            held.setdefault(connection, set()).add(group)
        assert {connection: set(one.consumers) for connection, one in self.table._held.items()} == held

    @invariant()
    def what_is_counted_is_what_is_there(self) -> None:
        seats = sum(SEAT_BYTES + 4 * len(group) for group, _ in self.heard)
        groups = [self.table.group(group) for group in ("g", "h")]
        brought = sum(group.subscriptions_bytes for group in groups if group is not None)
        assert self.table.bytes_kept == seats + brought
        assert brought == sum(
            one.kept_bytes for group in groups if group is not None for one in group.subscriptions.values()
        )


TestClients = Clients.TestCase
TestClients.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
