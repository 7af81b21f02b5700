"""Clients and groups: heartbeats, member lists, queue locks, connections, and the table of groups.

Who is connected is decided by `machines.clients`; here requests go in and effects are carried out.  A heartbeat is
in force before the next frame of its connection is looked at, because handlers are plain calls.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bolide.machines.clients import Disconnect, Effects, Member, MemberGone, NotifyGroup
from bolide.model import java_json
from bolide.model.config_json import group_as_json, group_from_json
from bolide.model.errors import (
    ConsumerNotOnline,
    GroupNotFound,
    InvalidRequest,
    RequestError,
    StoreRefusal,
)
from bolide.model.names import check_group, retry_topic
from bolide.model.topic import TOPIC_QUEUES_MAX
from bolide.net.link import Link
from bolide.rules.topic_creation import topic_for_retry
from bolide.wire.bodies.connection import ClientConnection, GroupConnections, encode_producer_connections
from bolide.wire.bodies.group import ClientCheck, ConsumerData, HeartbeatData, encode_member_ids
from bolide.wire.bodies.lock import LockRequest, encode_locked
from bolide.wire.bodies.members import parse_object
from bolide.wire.bodies.topic import alter_attributes
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.group import (
    DeleteGroup,
    GroupConfigRequest,
    GroupRequest,
    ProducerGroupRequest,
    UnregisterClient,
)

if TYPE_CHECKING:
    from bolide.broker.app import Broker

log = logging.getLogger(__name__)


# ---- clients come and go -----------------------------------------------------------------------------------------


def heartbeat(broker: "Broker", link: Link, request: Command) -> Command:
    """34: register the client's groups.

    A group that does not exist and may not be created is left out, as in the original; its pulls are refused with
    the reason.  A heartbeat that is handled after its connection closed registers nothing: it would leave a member
    that nobody can reach.
    """
    data = HeartbeatData.decode(request.body)
    if link.is_open:
        admitted = tuple(consumer for consumer in data.consumers if _admit(broker, link, consumer))
        effects = broker.clients.heartbeat(
            link,
            replace(data, consumers=admitted),
            broker.clock.monotonic_ms(),
            language=request.language,
            version=request.version,
        )
        carry_out(broker, effects)
    return request.answer()


def unregister_client(broker: "Broker", link: Link, request: Command) -> Command:
    """35: a client leaves its groups in good order."""
    header = UnregisterClient.decode(request.fields)
    effects = broker.clients.unregister(
        link, producer_group=header.producer_group, consumer_group=header.consumer_group
    )
    carry_out(broker, effects)
    return request.answer()


def client_gone(broker: "Broker", link: Link) -> None:
    """The connection has closed: what it held is free, and its groups hear of it at once."""
    carry_out(broker, broker.clients.connection_lost(link))


def expire_clients(broker: "Broker") -> None:
    """Forget clients and locks that have been silent for too long; the broker calls this every few seconds."""
    now_ms = broker.clock.monotonic_ms()
    carry_out(broker, broker.clients.expire(now_ms))
    broker.locks.expire(now_ms)


def carry_out(broker: "Broker", effects: Effects[Link]) -> None:
    """Do what the table of clients found necessary."""
    for effect in effects:
        match effect:
            case NotifyGroup(group, links):
                fields = GroupRequest(group).encode()
                for link in links:
                    if not link.is_congested:  # it looks for itself every 20 s; notices would only pile up
                        link.notify(Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, fields))
            case MemberGone(group, client_id):
                broker.locks.release(group, client_id)
            case Disconnect(link):
                log.info("closing the connection of %s: no heartbeat for two minutes", link.remote)
                link.close()


def check_client(broker: "Broker", link: Link, request: Command) -> Command:
    """46: any answer but success keeps a consumer from starting, so it learns here what it would miss later."""
    check = ClientCheck.decode(request.body)
    if check.subscription is not None and check.subscription.expression_type != "TAG":
        raise RequestError(
            f"this broker filters by tag only, not by {check.subscription.expression_type[:32]}"
        )
    return request.answer()


def _admit(broker: "Broker", link: Link, consumer: ConsumerData) -> bool:
    """Whether the group may have members here; creates it and its retry topic where that is needed."""
    try:
        group = broker.groups.find(consumer.group, auto_create=broker.config.auto_create_group)
        topics = [broker.topics.get(one.topic) for one in consumer.subscriptions]
        broker.topics.put(
            topic_for_retry(
                group.name,
                broker.topics.get(retry_topic(group.name)),
                group.retry_queues,
                order=any(topic is not None and topic.order for topic in topics),
                unit_mode=consumer.unit_mode,
            )
        )
    except (RequestError, StoreRefusal) as error:
        log.warning("%s does not join the group %.255r: %s", link.remote, consumer.group, error)
        return False
    return True


# ---- who is there ------------------------------------------------------------------------------------------------


def list_members(broker: "Broker", link: Link, request: Command) -> Command:
    """38: the client ids among which members share the queues."""
    group = GroupRequest.decode(request.fields).consumer_group
    client_ids = broker.clients.member_ids(group)
    if not client_ids:
        raise RequestError(f"no consumer of the group {group[:255]!r} is connected")
    return request.answer(body=encode_member_ids(client_ids))


def consumer_connections(broker: "Broker", link: Link, request: Command) -> Command:
    """203."""
    name = GroupRequest.decode(request.fields).consumer_group
    group = broker.clients.group(name)
    if group is None:
        raise ConsumerNotOnline(f"no consumer of the group {name[:255]!r} is connected")
    described = ConsumerData(
        name,
        group.consume_type,
        group.message_model,
        group.consume_from,
        tuple(group.subscriptions.values()),
    )
    connections = tuple(map(_connection, group.members.values()))
    return request.answer(body=GroupConnections(connections, described).encode())


def producer_connections(broker: "Broker", link: Link, request: Command) -> Command:
    """204."""
    group = ProducerGroupRequest.decode(request.fields).producer_group
    producers = broker.clients.producers(group)
    if not producers:
        raise RequestError(f"no producer of the group {group[:255]!r} is connected")
    return request.answer(body=encode_producer_connections(tuple(map(_connection, producers))))


def _connection(member: Member[Link]) -> ClientConnection:
    return ClientConnection(member.client_id, member.connection.remote, member.language, member.version)


# ---- locks for ordered consumption -------------------------------------------------------------------------------


def lock_queues(broker: "Broker", link: Link, request: Command) -> Command:
    """41: the answer lists what the client now holds; what it could not get is simply not in it."""
    asked = _lock_request(request)
    known = [
        queue
        for queue in asked.queues
        if (topic := broker.topics.get(queue.topic)) is not None and 0 <= queue.queue_id < topic.queues
    ]
    held = broker.locks.lock(asked.group, asked.client_id, known, broker.clock.monotonic_ms())
    return request.answer(body=encode_locked(held))


def unlock_queues(broker: "Broker", link: Link, request: Command) -> Command:
    """42."""
    asked = _lock_request(request)
    broker.locks.unlock(asked.group, asked.client_id, asked.queues)
    return request.answer()


def _lock_request(request: Command) -> LockRequest:
    asked = LockRequest.decode(request.body)
    check_group(asked.group)
    if not asked.client_id:
        raise InvalidRequest("the lock request names no client")
    return asked


# ---- the table of groups -----------------------------------------------------------------------------------------


def update_group(broker: "Broker", link: Link, request: Command) -> Command:
    """200: create or change a group.  Attributes come as changes to those it has: `+key` sets, `-key` removes."""
    config = group_from_json(parse_object(request.body, "the group"))
    if not 0 <= config.retry_queues <= TOPIC_QUEUES_MAX:
        raise InvalidRequest(f"retryQueueNums is {config.retry_queues}; 0 to {TOPIC_QUEUES_MAX} are allowed")
    known = broker.groups.get(config.name)
    attributes = alter_attributes({} if known is None else known.attributes, config.attributes)
    broker.groups.put(replace(config, attributes=attributes))
    return request.answer()


def all_groups(broker: "Broker", link: Link, request: Command) -> Command:
    """201: in one piece, also to clients that would take it in parts."""
    return request.answer(body=java_json.dumps(broker.groups.as_json()))


def one_group(broker: "Broker", link: Link, request: Command) -> Command:
    """352.  Asking for a group does not create it, other than in the original."""
    name = GroupConfigRequest.decode(request.fields).group
    config = broker.groups.get(name)
    if config is None:
        raise GroupNotFound(f"the group {name[:255]!r} does not exist on this broker")
    return request.answer(body=java_json.dumps(group_as_json(config)))


def delete_group(broker: "Broker", link: Link, request: Command) -> Command:
    """207: forget the group, and its offsets when asked to.  A group that is not there is no error."""
    header = DeleteGroup.decode(request.fields)
    broker.groups.delete(header.group_name)
    if header.clean_offset:
        broker.offsets.drop_group(header.group_name)
    return request.answer()


HANDLERS: dict[RequestCode, Callable[["Broker", Link, Command], Command]] = {
    RequestCode.HEART_BEAT: heartbeat,
    RequestCode.UNREGISTER_CLIENT: unregister_client,
    RequestCode.CHECK_CLIENT_CONFIG: check_client,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: list_members,
    RequestCode.GET_CONSUMER_CONNECTION_LIST: consumer_connections,
    RequestCode.GET_PRODUCER_CONNECTION_LIST: producer_connections,
    RequestCode.LOCK_BATCH_MQ: lock_queues,
    RequestCode.UNLOCK_BATCH_MQ: unlock_queues,
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: update_group,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: all_groups,
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: one_group,
    RequestCode.DELETE_SUBSCRIPTIONGROUP: delete_group,
}
