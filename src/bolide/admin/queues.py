"""Queues: their bounds, offsets by time, the messages in them.  Reading here joins no group and moves no offset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bolide.admin.connection import AdminConnection
from bolide.admin.many import Silent, of_brokers, of_each
from bolide.admin.topics import master, masters_of
from bolide.model.errors import NothingFound, ProtocolError, RemoteError, RequestError
from bolide.model.names import TOOLS_GROUP
from bolide.model.offsets import MessageQueue
from bolide.record.decode import decode_messages
from bolide.record.stored import StoredMessage
from bolide.wire.bodies.topic import QueueBounds, decode_groups, decode_topic_stats
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.offset import (
    OffsetAnswer,
    QueryGroupOffset,
    QueueRequest,
    SearchOffset,
    TimestampAnswer,
)
from bolide.wire.headers.pull import PullAnswer, PullFlag, PullRequest
from bolide.wire.headers.topic import TopicRequest

_FOUND = (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)


@dataclass(frozen=True, slots=True)
class Place:
    """A queue, and where it can be asked about."""

    queue: MessageQueue
    address: str


@dataclass(frozen=True, slots=True)
class PlacedQueue:
    place: Place
    bounds: QueueBounds


async def queues_of(
    servers: AdminConnection,
    topic: str,
    *,
    broker: str | None = None,
    queue_id: int | None = None,
    silent: Silent | None = None,
) -> list[PlacedQueue]:
    """A topic's queues on its masters, or those of one broker or number; `NothingFound` when none is meant.

    Of brokers that do not tell: see `of_brokers`.
    """
    addresses = {one.broker_name: master(one) for one in await masters_of(servers, topic, broker)}

    async def stats(address: str) -> Mapping[MessageQueue, QueueBounds]:
        fields = TopicRequest(topic).encode()
        return decode_topic_stats((await servers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, fields)).body)

    queues: list[PlacedQueue] = []
    last = 0
    for name, told in (await of_brokers(addresses, stats, silent)).items():
        for queue, bounds in sorted(told.items()):
            last = max(last, queue.queue_id)
            if queue_id in (None, queue.queue_id):
                queues.append(PlacedQueue(Place(queue, addresses[name]), bounds))
    if not queues:
        raise NothingFound(f"the topic {topic} has no queue {queue_id}; its queues are 0 to {last}")
    return queues


async def offset_at(servers: AdminConnection, place: Place, moment_ms: int) -> int:
    """Of the first message stored at or after the moment; the end of the queue when there is none."""
    fields = SearchOffset(place.queue.topic, place.queue.queue_id, moment_ms).encode()
    answer = await servers.ask(place.address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields)
    return _offset(answer)


async def first_stored_ms(servers: AdminConnection, place: Place) -> int | None:
    """When the oldest message of a queue was stored; None when there is none."""
    fields = QueueRequest(place.queue.topic, place.queue.queue_id).encode()
    try:
        answer = await servers.ask(place.address, RequestCode.GET_EARLIEST_MSG_STORETIME, fields)
        moment_ms = TimestampAnswer.decode(answer.fields).timestamp
    except RequestError as error:
        raise ProtocolError(f"an answer of {place.address} that cannot be read: {error}") from error
    return moment_ms if moment_ms > 0 else None


async def group_offset(servers: AdminConnection, place: Place, group: str) -> int | None:
    """Where a group goes on in a queue; None when it has not begun there."""
    header = QueryGroupOffset(group, place.queue.topic, place.queue.queue_id, set_zero_if_not_found=False)
    try:
        answer = await servers.ask(place.address, RequestCode.QUERY_CONSUMER_OFFSET, header.encode())
    except RemoteError as error:
        if error.response_code != ResponseCode.QUERY_NOT_FOUND:
            raise
        return None
    offset = _offset(answer)
    return offset if offset >= 0 else None


async def offsets_in(servers: AdminConnection, place: Place) -> dict[str, int]:
    """Every group that has come somewhere in a queue, and where it goes on."""
    fields = TopicRequest(place.queue.topic).encode()
    answer = await servers.ask(place.address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, fields)
    groups = sorted(decode_groups(answer.body))
    offsets = await of_each(groups, lambda group: group_offset(servers, place, group))
    return {group: offset for group, offset in zip(groups, offsets, strict=True) if offset is not None}


async def messages_from(
    servers: AdminConnection, place: Place, offset: int, count: int
) -> Sequence[StoredMessage]:
    """Up to so many messages from an offset on; from the first that is still there, when that one has expired."""
    found: list[StoredMessage] = []
    while len(found) < count:
        header = PullRequest(
            consumer_group=TOOLS_GROUP,
            topic=place.queue.topic,
            queue_id=place.queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count - len(found),
            sys_flag=PullFlag.SUBSCRIPTION,
            subscription="*",
        )
        answer = await servers.exchange(place.address, RequestCode.PULL_MESSAGE, header.encode())
        if answer.code not in (*_FOUND, ResponseCode.PULL_OFFSET_MOVED):
            raise RemoteError(answer.code, f"{answer.remark or 'no reason given'} (said {place.address})")
        try:
            next_offset = PullAnswer.decode(answer.fields).next_begin_offset
        except RequestError as error:
            raise ProtocolError(f"an answer of {place.address} that cannot be read: {error}") from error
        if answer.code == ResponseCode.SUCCESS:
            found += decode_messages(answer.body, place.queue.broker_name)
        if next_offset <= offset:  # the end
            break
        offset = next_offset
    return found[:count]


async def message_at(servers: AdminConnection, place: Place, offset: int) -> StoredMessage:
    """The message at an offset; `NothingFound` when it has expired, or has not come yet."""
    found = await messages_from(servers, place, offset, 1)
    if not found or found[0].queue_offset != offset:
        there = f"; the next one there is at {found[0].queue_offset}" if found else ""
        raise NothingFound(f"{place.queue} has no message at offset {offset}{there}")
    return found[0]


def _offset(answer: Command) -> int:
    try:
        return OffsetAnswer.decode(answer.fields).offset
    except RequestError as error:
        raise ProtocolError(f"an offset that cannot be read: {error}") from error
