"""A cluster's topics, groups and offsets as one value: to keep, to compare, to make again elsewhere.

Messages are not among them.  An import makes what is missing and leaves what is there as it is.  Offsets are taken over
where the queue is so long, which is so when the store has moved along, and the group has none and no member connected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bolide.admin.brokers import topics_on
from bolide.admin.cluster import brokers_there, known, listed
from bolide.admin.connection import AdminConnection
from bolide.admin.groups import create_group, group_members, group_tables, masters_there
from bolide.admin.queues import group_offset, queues_of
from bolide.admin.reset import Move, move_offsets
from bolide.admin.topics import create_topic
from bolide.model.config_json import group_as_json, group_from_json, topic_as_json, topic_from_json
from bolide.model.errors import ConfigError, RequestError, RouteNotFound
from bolide.model.names import RETRY_PREFIX, is_system_group, is_system_topic
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.wire.bodies.group_table import decode_offset_table
from bolide.wire.codes import RequestCode

VERSION = 1
MARK = "bolide_metadata"

Offsets = dict[tuple[str, str], dict[int, int]]
"""By topic and group, the offset in each queue."""


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """What one broker has."""

    cluster: str
    topics: Mapping[str, TopicConfig]
    groups: Mapping[str, GroupConfig]
    offsets: Offsets

    def as_json(self) -> dict[str, Any]:
        offsets: dict[str, dict[str, dict[str, int]]] = {}
        for (topic, group), queues in sorted(self.offsets.items()):
            told = {str(queue_id): offset for queue_id, offset in sorted(queues.items())}
            offsets.setdefault(group, {})[topic] = told
        return {
            "cluster": self.cluster,
            "topics": {name: topic_as_json(self.topics[name]) for name in sorted(self.topics)},
            "groups": {name: group_as_json(self.groups[name]) for name in sorted(self.groups)},
            "offsets": offsets,
        }

    @classmethod
    def from_json(cls, members: Any) -> "BrokerMetadata":
        """What was written; an error of any kind says that it was not."""
        topics = {name: topic_from_json(value) for name, value in members["topics"].items()}
        groups = {name: group_from_json(value) for name, value in members["groups"].items()}
        offsets = {
            (topic, group): {int(queue_id): int(offset) for queue_id, offset in queues.items()}
            for group, by_topic in members["offsets"].items()
            for topic, queues in by_topic.items()
        }
        return cls(str(members["cluster"]), topics, groups, offsets)


Metadata = Mapping[str, BrokerMetadata]
"""By broker name."""


@dataclass(slots=True)
class Plan:
    """What an import would do."""

    topics: list[tuple[str, TopicConfig]] = field(default_factory=list)
    """By broker, what is to be made."""
    groups: list[tuple[str, GroupConfig]] = field(default_factory=list)
    moves: dict[str, list[Move]] = field(default_factory=dict)
    """By group."""
    left: list[tuple[str, str, str]] = field(default_factory=list)
    """Broker, name, and why it stays as it is."""

    @property
    def is_empty(self) -> bool:
        return not self.topics and not self.groups and not self.moves


def metadata_as_json(metadata: Metadata) -> dict[str, Any]:
    return {MARK: VERSION, "brokers": {name: metadata[name].as_json() for name in sorted(metadata)}}


def metadata_from_json(members: Any) -> dict[str, BrokerMetadata]:
    """What `metadata_as_json` gave; `ConfigError` for anything else."""
    if not isinstance(members, dict) or members.get(MARK) != VERSION:
        raise ConfigError(f"this is no export of `bolide cluster export`: {MARK} is not {VERSION}")
    try:
        return {name: BrokerMetadata.from_json(value) for name, value in members["brokers"].items()}
    except (RequestError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"the export cannot be read: {type(error).__name__}: {error}") from error


async def export_metadata(servers: AdminConnection, cluster: str | None = None) -> dict[str, BrokerMetadata]:
    """Topics, groups and offsets of every master, without what RocketMQ makes for itself."""
    info = await brokers_there(servers)
    names = info.clusters[known("cluster", cluster, info.clusters)] if cluster else info.brokers
    addresses = {name: address for name, address in (await masters_there(servers)).items() if name in names}
    topics = await topics_on(servers, addresses)
    groups = await group_tables(servers, addresses)
    exported: dict[str, BrokerMetadata] = {}
    for name, address in addresses.items():
        answer = await servers.ask(address, RequestCode.GET_ALL_CONSUMER_OFFSET)
        exported[name] = BrokerMetadata(
            info.brokers[name].cluster,
            topics[name],
            {group: config for group, config in groups[name].items() if not is_system_group(group)},
            {
                (topic, group): queues
                for (topic, group), queues in decode_offset_table(answer.body).items()
                if not is_system_topic(topic)
                and not topic.startswith(RETRY_PREFIX)
                and not is_system_group(group)
            },
        )
    return exported


async def plan_import(
    servers: AdminConnection, metadata: Metadata, renamed: Mapping[str, str], *, with_offsets: bool
) -> Plan:
    """What is missing, and what stays as it is; brokers may have other names here."""
    there = await masters_there(servers)
    wanted = {renamed.get(name, name): part for name, part in metadata.items()}
    missing = sorted(set(wanted) - set(there))
    if missing:
        raise RouteNotFound(
            f"there is no broker {listed(missing)} here, but {listed(there)}: say with --map OLD=NEW which is meant"
        )
    topics, groups = await topics_on(servers, wanted), await group_tables(servers, wanted)
    plan = Plan()
    for broker, part in wanted.items():
        for topic in part.topics.values():
            if topic.name not in topics[broker]:
                plan.topics.append((broker, topic))
            elif topics[broker][topic.name] != topic:
                plan.left.append((broker, topic.name, "the topic has other settings there"))
        for group in part.groups.values():
            if group.name not in groups[broker]:
                plan.groups.append((broker, group))
            elif groups[broker][group.name] != group:
                plan.left.append((broker, group.name, "the group has other settings there"))
        if with_offsets:
            await _plan_offsets(servers, broker, part, topics[broker], plan)
    return plan


async def carry_out(servers: AdminConnection, plan: Plan) -> None:
    """Make what is missing, then move the offsets."""
    for broker, topic in plan.topics:
        await create_topic(servers, topic, broker=broker, if_not_exists=True)
    for broker, group in plan.groups:
        await create_group(servers, group, broker=broker, if_not_exists=True)
    for group_name, moves in plan.moves.items():
        await move_offsets(servers, group_name, moves)


async def _plan_offsets(
    servers: AdminConnection,
    broker: str,
    part: BrokerMetadata,
    topics: Mapping[str, TopicConfig],
    plan: Plan,
) -> None:
    online: dict[str, bool] = {}
    for (topic, group), queues in part.offsets.items():
        if topic not in topics:
            plan.left.append((broker, group, f"no messages of {topic} are there, so no offsets"))
            continue
        if group not in online:
            online[group] = (await group_members(servers, group)).is_online
        if online[group]:
            plan.left.append((broker, group, "members are connected, so its offsets stay"))
            continue
        here = {queue.place.queue.queue_id: queue for queue in await queues_of(servers, topic, broker=broker)}
        for queue_id, offset in queues.items():
            queue = here.get(queue_id)
            if queue is None or not 0 <= offset <= queue.bounds.offset_max:
                plan.left.append(
                    (broker, group, f"queue {queue_id} of {topic} is not so long as offset {offset}")
                )
                continue
            old = await group_offset(servers, queue.place, group)
            if old is None:
                move = Move(queue.place, None, offset, queue.bounds.offset_min, queue.bounds.offset_max)
                plan.moves.setdefault(group, []).append(move)
            elif old != offset:
                plan.left.append((broker, group, f"it is at {old} in queue {queue_id} of {topic} already"))
