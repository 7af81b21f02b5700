"""Who has consumed a message, by the offsets of all groups that read its topic; and giving it to one of them now."""

from dataclasses import dataclass
from enum import StrEnum

from bolide.admin.brokers import master_address
from bolide.admin.connection import AdminConnection
from bolide.admin.groups import GroupMembers, group_configs, group_members
from bolide.admin.many import of_each
from bolide.admin.queues import Place, group_offset
from bolide.model.errors import ConsumerNotOnline, NothingFound, OperationIllegal, RemoteError
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TAG
from bolide.record.stored import StoredMessage
from bolide.wire.bodies.group import MessageModel
from bolide.wire.bodies.running import DirectResult, decode_direct_result
from bolide.wire.bodies.topic import decode_groups
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.admin import ConsumeDirectly
from bolide.wire.headers.topic import TopicRequest

PATIENCE_MS = 15_000
"""A broker waits ten seconds for a listener."""

ABLE = ("java", "python")
"""Consumers in these languages can be handed one message."""


class TrackState(StrEnum):
    CONSUMED = "consumed"
    FILTERED = "not wanted"
    """The group is past it, and does not subscribe to its tag."""
    PASSED = "past it"
    """Whether it was wanted is not known: nobody is online to say, or an SQL expression decides."""
    WAITING = "not yet"
    NOT_BEGUN = "not begun"
    BROADCAST = "unknown: every member keeps its own offsets"


@dataclass(frozen=True, slots=True)
class Track:
    """One group and one message."""

    group: str
    state: TrackState
    members: int
    before: int
    """Messages that the group consumes first."""


async def track(servers: AdminConnection, message: StoredMessage) -> list[Track]:
    """Of every group that reads the topic, whether it is past this message."""
    address = await master_address(servers, message.broker_name)
    place = Place(MessageQueue(message.topic, message.broker_name, message.queue_id), address)
    fields = TopicRequest(message.topic).encode()
    answer = await servers.ask(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, fields)

    async def one(group: str) -> Track:
        members = await group_members(servers, group)
        offset = await group_offset(servers, place, group)
        return Track(
            group,
            _state(message, members, offset),
            len(members.members),
            max(0, message.queue_offset - offset) if offset is not None else 0,
        )

    return await of_each(sorted(decode_groups(answer.body)), one)


async def consume_directly(
    servers: AdminConnection, message: StoredMessage, group: str, client_id: str | None = None
) -> tuple[str, DirectResult]:
    """Give a message to a member, or to any, whatever the group's offsets say; returns who got it and how it went."""
    await group_configs(servers, group)
    members = await group_members(servers, group)
    there = {
        member.connection.client_id: member.connection.language.lower()
        for member in members.members
        if message.broker_name in member.brokers
    }
    if not there:
        raise ConsumerNotOnline(
            f"no member of {group} is connected to {message.broker_name}, where the message is: start one"
        )
    if client_id is not None and client_id not in there:
        raise NothingFound(
            f"{group} has no member {client_id!r} on {message.broker_name}; `bolide group members {group}` shows them"
        )
    chosen = client_id or min(there, key=lambda one: there[one] not in ABLE)
    header = ConsumeDirectly(
        group, chosen, message.offset_message_id, broker_name=message.broker_name, topic=message.topic
    )
    address = await master_address(servers, message.broker_name)
    try:
        answer = await servers.ask(
            address, RequestCode.CONSUME_MESSAGE_DIRECTLY, header.encode(), timeout_ms=PATIENCE_MS
        )
    except RemoteError as error:
        if error.response_code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        raise OperationIllegal(
            f"the member {chosen} ({there[chosen]}) cannot be asked to consume one message; Java and Python consumers"
            " can. `bolide message resend` sends a copy to every group of the topic"
        ) from error
    return chosen, decode_direct_result(answer.body)


def _state(message: StoredMessage, members: GroupMembers, offset: int | None) -> TrackState:
    consuming = members.consuming
    if consuming is not None and consuming.message_model is MessageModel.BROADCASTING:
        return TrackState.BROADCAST
    if offset is None:
        return TrackState.NOT_BEGUN
    if offset <= message.queue_offset:
        return TrackState.WAITING
    wanted = members.subscriptions.get(message.topic)
    if wanted is None or wanted.expression_type != TAG:
        return TrackState.PASSED
    return TrackState.FILTERED if wanted.tags and message.tags not in wanted.tags else TrackState.CONSUMED
