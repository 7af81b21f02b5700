"""Consumer groups: list, describe, create, change and delete them, and who is connected.

A group's settings and offsets lie on every broker that it reads from, so each master is asked, and a change goes to all
of them or to one.  Brokers make a group when it comes: what is created here has its settings from the first message on.
"""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bolide.admin.cluster import brokers_there, listed, masters
from bolide.admin.connection import AdminConnection
from bolide.admin.many import Silent, of_brokers
from bolide.model import java_json
from bolide.model.config_json import group_as_json
from bolide.model.errors import GroupExists, GroupNotFound, RemoteError, RouteNotFound
from bolide.model.names import check_group, is_system_group
from bolide.model.printable import printable
from bolide.model.topic import GroupConfig, Subscription
from bolide.wire.bodies.connection import ClientConnection, GroupConnections, SubscriptionDifference
from bolide.wire.bodies.group import ConsumerData
from bolide.wire.bodies.group_table import decode_group_table
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.group import DeleteGroup, GroupRequest

CLOSE = 0.8
"""How alike two names are when one may be the other, misspelled."""

GroupTable = Mapping[str, Mapping[str, GroupConfig]]
"""By broker name, then by group."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A connected client and the brokers that know it."""

    connection: ClientConnection
    brokers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupMembers:
    members: tuple[GroupMember, ...]
    views: Mapping[str, ConsumerData]
    """What each broker says of how the group consumes; of brokers that know no member, nothing."""
    differences: tuple[SubscriptionDifference, ...] = ()
    """Members that do not want the same, as brokers tell it that compare them."""

    @property
    def is_online(self) -> bool:
        return bool(self.members)

    @property
    def consuming(self) -> ConsumerData | None:
        """How the group consumes, by the first broker that tells."""
        return next(iter(self.views.values()), None)

    @property
    def subscriptions(self) -> dict[str, Subscription]:
        """By topic, from all brokers."""
        return {one.topic: one for view in self.views.values() for one in view.subscriptions}


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What an update changes; None leaves it as it is."""

    consume_enable: bool | None = None
    consume_broadcast_enable: bool | None = None
    consume_message_orderly: bool | None = None
    retry_max_times: int | None = None
    retry_queues: int | None = None
    consume_timeout_minute: int | None = None

    def applied(self, config: GroupConfig) -> GroupConfig:
        given: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return replace(config, **{name: value for name, value in given.items() if value is not None})


async def masters_there(servers: AdminConnection) -> dict[str, str]:
    """The address of every master, by broker name."""
    info = await brokers_there(servers)
    found = {name: info.brokers[name].master for name in sorted(info.brokers)}
    there = {name: address for name, address in found.items() if address is not None}
    if not there:
        raise RouteNotFound(f"of {listed(found)} no master is registered with the name server")
    return there


async def group_tables(
    servers: AdminConnection, brokers: Collection[str] | None = None, silent: Silent | None = None
) -> GroupTable:
    """Every group that every master knows, or those of some brokers; see `of_brokers`."""
    there = await masters_there(servers)
    addresses = {name: address for name, address in there.items() if brokers is None or name in brokers}

    async def one(address: str) -> dict[str, GroupConfig]:
        answer = await servers.ask(address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        return decode_group_table(answer.body)

    return await of_brokers(addresses, one, silent)


async def list_groups(
    servers: AdminConnection, *, system: bool = False, silent: Silent | None = None
) -> list[str]:
    """Group names in order; those that RocketMQ makes for itself only on request."""
    tables = await group_tables(servers, silent=silent)
    names = {name for groups in tables.values() for name in groups}
    return sorted(name for name in names if system or not is_system_group(name))


async def group_configs(
    servers: AdminConnection, group: str, silent: Silent | None = None
) -> dict[str, GroupConfig]:
    """A group's settings by broker; `GroupNotFound` names the group that may be meant.

    The whole table is asked for: to ask the original for one group makes that group.  See `of_brokers`.
    """
    check_group(group)
    tables = await group_tables(servers, silent=silent)
    found = {broker: groups[group] for broker, groups in tables.items() if group in groups}
    if not found:
        names = {name for groups in tables.values() for name in groups if not is_system_group(name)}
        near = difflib.get_close_matches(group, sorted(names), n=1, cutoff=CLOSE)
        meant = f"did you mean {printable(near[0])}? If not," if near else "see `bolide group list`, or"
        raise GroupNotFound(
            f"no broker that is up ({listed(tables)}) has a group {group!r}: {meant} create it with"
            f" `bolide group create {group}`; a first consumer makes it too"
        )
    return found


async def group_members(servers: AdminConnection, group: str, silent: Silent | None = None) -> GroupMembers:
    """Who is connected to which broker, and what for; see `of_brokers`."""
    addresses = await masters_there(servers)

    async def one(address: str) -> GroupConnections | None:
        try:
            fields = GroupRequest(group).encode()
            answer = await servers.ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, fields)
        except RemoteError as error:
            if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            return None
        return GroupConnections.decode(group, answer.body)

    told = await of_brokers(addresses, one, silent)
    known = {broker: said for broker, said in told.items() if said is not None}
    clients: dict[str, GroupMember] = {}
    for broker, said in known.items():
        for connection in said.connections:
            earlier = clients.get(connection.client_id)
            brokers = (*(earlier.brokers if earlier else ()), broker)
            clients[connection.client_id] = GroupMember(
                earlier.connection if earlier else connection, brokers
            )
    return GroupMembers(
        tuple(clients[name] for name in sorted(clients)),
        {broker: said.group for broker, said in known.items()},
        next((said.differences for said in known.values() if said.differences), ()),
    )


async def create_group(
    servers: AdminConnection,
    config: GroupConfig,
    *,
    cluster: str | None = None,
    broker: str | None = None,
    if_not_exists: bool = False,
) -> list[str]:
    """Create it; returns the names of the brokers where that was done.

    `GroupExists` where one has it, and then it is made nowhere; with `if_not_exists` it is made only where it is not.
    """
    check_group(config.name)
    targets = await masters(servers, cluster=cluster, broker=broker)
    tables = await group_tables(servers)
    there = [one.broker_name for one in targets if config.name in tables.get(one.broker_name, {})]
    if there and not if_not_exists:
        raise GroupExists(
            f"the group {config.name!r} exists on {listed(there)} and was left as it is:"
            f" `bolide group update {config.name}` changes it, --if-not-exists is content with it"
        )
    made = [one for one in targets if one.broker_name not in there]
    added = {f"+{name}": value for name, value in config.attributes.items()}
    for one in made:
        await _put(servers, str(one.master), replace(config, attributes=added))
    return [one.broker_name for one in made]


async def update_group(
    servers: AdminConnection, group: str, change: GroupChange, *, broker: str | None = None
) -> dict[str, GroupConfig]:
    """Change some settings of a group that exists, on every master that has it or on one."""
    found = await group_configs(servers, group)
    if broker is not None and broker not in found:
        raise RouteNotFound(
            f"the broker {broker!r} does not have the group {group!r}; {listed(found)} has it"
        )
    changed = {
        name: change.applied(config) for name, config in found.items() if broker in (None, name)
    }  # all of them are possible before the first is touched
    addresses = await masters_there(servers)
    for name, config in changed.items():
        await _put(servers, addresses[name], replace(config, attributes={}))  # attributes travel as changes
    return changed


async def delete_group(servers: AdminConnection, group: str, *, with_offsets: bool) -> list[str]:
    """Delete it on every master that has it; returns their names."""
    found = await group_configs(servers, group)
    addresses = await masters_there(servers)
    for name in found:
        header = DeleteGroup(group, clean_offset=with_offsets)
        await servers.ask(addresses[name], RequestCode.DELETE_SUBSCRIPTIONGROUP, header.encode())
    return list(found)


async def _put(servers: AdminConnection, address: str, config: GroupConfig) -> None:
    body = java_json.dumps(group_as_json(config))
    await servers.ask(address, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
