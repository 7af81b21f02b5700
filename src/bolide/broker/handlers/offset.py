"""Offsets: a group's progress, the bounds of queues, offsets by time."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bolide.model import java_json
from bolide.model.errors import GroupNotFound, InvalidRequest, NothingFound
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.net.link import Link
from bolide.wire.bodies.offset import QueueProgress, encode_consume_stats
from bolide.wire.bodies.route import TopicList
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.group import ConsumeStatsRequest, GroupConfigRequest
from bolide.wire.headers.offset import (
    OffsetAnswer,
    QueryGroupOffset,
    QueueRequest,
    SearchOffset,
    TimestampAnswer,
    UpdateGroupOffset,
)

if TYPE_CHECKING:
    from bolide.broker.app import Broker

NO_TIME = -1
"""The store time of a queue without messages."""


# ---- a group's progress ------------------------------------------------------------------------------------------


def query_group_offset(broker: "Broker", link: Link, request: Command) -> Command:
    """14: where a group goes on in a queue.

    "None stored" makes a client begin at the end of the queue.  While the queue is young, its first message not yet
    deleted and still in memory, the answer is 0 instead: a group that is a moment late would lose the first messages
    of a new topic.  A client may forbid that with `setZeroIfNotFound=false`.
    """
    header = QueryGroupOffset.decode(request.fields)
    offset = broker.offsets.query(header.consumer_group, header.topic, header.queue_id)
    if offset is None and header.set_zero_if_not_found is not False and _is_young(broker, header):
        offset = GroupOffset(0)
    if offset is None:
        raise NothingFound("the group has no offset in this queue yet")
    return request.answer(fields=OffsetAnswer(offset).encode())


def commit_group_offset(broker: "Broker", link: Link, request: Command) -> Command:
    """15: store where a group goes on; see `commit` for what is taken."""
    header = UpdateGroupOffset.decode(request.fields)
    if header.consumer_group not in broker.groups:
        raise GroupNotFound(f"the group {header.consumer_group[:255]!r} does not exist on this broker")
    commit(broker, header.consumer_group, header.topic, header.queue_id, header.commit_offset)
    return request.answer()


def commit(broker: "Broker", group: str, topic: str, queue_id: int, offset: int) -> None:
    """Store a group's progress, whether it comes by itself or with a pull.

    Backwards is allowed: resetting works by it.  Negative means that the client has nothing to say, and nothing is
    stored.  Past the end of the queue is stored as the end: the original keeps any number, and a group that stands
    beyond the end skips everything until the queue has grown there, or is thrown back by its next pull.

    A queue beyond the topic's number is taken while it exists: after a topic was shrunk, its consumers still commit
    what they finished.  Other queue numbers are refused, since each would stay in the table for ever.
    """
    config = broker.topics.require(topic)
    if offset < 0:
        return
    _, end = _bounds(broker, topic, queue_id)
    if not 0 <= queue_id < config.queues and end == 0:
        raise InvalidRequest(f"the topic {topic} has no queue {queue_id}")
    broker.offsets.commit(group, topic, queue_id, GroupOffset(min(offset, end)))


def all_group_offsets(broker: "Broker", link: Link, request: Command) -> Command:
    """43: the whole table, for slaves and tools."""
    return request.answer(body=java_json.dumps(broker.offsets.as_json()))


def group_progress(broker: "Broker", link: Link, request: Command) -> Command:
    """208: how far a group is in each queue that it reads."""
    header = ConsumeStatsRequest.decode(request.fields)
    group = header.consumer_group
    queues: dict[MessageQueue, QueueProgress] = {}
    for topic in dict.fromkeys(_topics_asked_for(broker, header)):
        config = broker.topics.get(topic)
        for queue_id in range(0 if config is None else config.read_queues):
            queue = MessageQueue(topic, broker.config.broker_name, queue_id)
            queues[queue] = _progress(broker, group, queue)
    return request.answer(body=encode_consume_stats(queues))


def topics_of_group(broker: "Broker", link: Link, request: Command) -> Command:
    """343: the topics in which a group has made progress."""
    group = GroupConfigRequest.decode(request.fields).group
    topics = TopicList(tuple(broker.offsets.topics_of(group)), broker.address)
    return request.answer(body=topics.encode())


def _is_young(broker: "Broker", header: QueryGroupOffset) -> bool:
    start, _ = _bounds(broker, header.topic, header.queue_id)
    return (
        start == 0
        and header.topic in broker.topics
        and broker.store.reader.first_is_recent(header.topic, header.queue_id, broker.recent_bytes)
    )


def _topics_asked_for(broker: "Broker", header: ConsumeStatsRequest) -> Iterable[str]:
    """Those named, or all in which the group has an offset; of an online group only what it subscribes to."""
    if header.topic_list:
        return [topic for topic in header.topic_list.split(";") if topic]
    group = header.consumer_group
    topics = [header.topic] if header.topic else broker.offsets.topics_of(group)
    online = broker.clients.group(group)
    if online is None or not online.subscriptions:
        return topics
    return [topic for topic in topics if topic in online.subscriptions]


def _progress(broker: "Broker", group: str, queue: MessageQueue) -> QueueProgress:
    topic, queue_id = queue.topic, queue.queue_id
    offset = broker.offsets.query(group, topic, queue_id) or GroupOffset(0)
    pulled = broker.offsets.last_pull(group, topic, queue_id) or GroupOffset(0)
    _, end = _bounds(broker, topic, queue_id)
    finished_ms = broker.store.reader.store_time(topic, queue_id, QueueOffset(offset - 1)) if offset else None
    return QueueProgress(
        broker_offset=end,
        group_offset=offset,
        pull_offset=max(offset, pulled),
        last_consumed_ms=finished_ms or 0,
    )


# ---- queues ------------------------------------------------------------------------------------------------------


def max_offset(broker: "Broker", link: Link, request: Command) -> Command:
    """30: the offset that the next message will get; 0 for a queue that nobody has written to."""
    header = QueueRequest.decode(request.fields)
    _, end = _bounds(broker, header.topic, header.queue_id)
    return request.answer(fields=OffsetAnswer(end).encode())


def min_offset(broker: "Broker", link: Link, request: Command) -> Command:
    """31: the offset of the oldest message that is still there."""
    header = QueueRequest.decode(request.fields)
    start, _ = _bounds(broker, header.topic, header.queue_id)
    return request.answer(fields=OffsetAnswer(start).encode())


def earliest_store_time(broker: "Broker", link: Link, request: Command) -> Command:
    """32."""
    header = QueueRequest.decode(request.fields)
    time_ms = NO_TIME
    if header.topic in broker.topics:
        time_ms = broker.store.reader.earliest_store_time(header.topic, header.queue_id)
    return request.answer(fields=TimestampAnswer(time_ms).encode())


def search_offset(broker: "Broker", link: Link, request: Command) -> Command:
    """29: the first message at or after a time; with the boundary UPPER the last one at or before it."""
    header = SearchOffset.decode(request.fields)
    offset = QueueOffset(0)
    if header.topic in broker.topics:
        upper = (header.boundary_type or "").upper() == "UPPER"
        offset = broker.store.reader.search_offset(
            header.topic, header.queue_id, header.timestamp, upper=upper
        )
    return request.answer(fields=OffsetAnswer(offset).encode())


def _bounds(broker: "Broker", topic: str, queue_id: int) -> tuple[QueueOffset, QueueOffset]:
    """A queue's first and next offset.  Names that are not in the table never reach the store."""
    if topic not in broker.topics or queue_id < 0:
        return QueueOffset(0), QueueOffset(0)
    return broker.store.reader.queue_range(topic, queue_id)


HANDLERS: dict[RequestCode, Callable[["Broker", Link, Command], Command]] = {
    RequestCode.QUERY_CONSUMER_OFFSET: query_group_offset,
    RequestCode.UPDATE_CONSUMER_OFFSET: commit_group_offset,
    RequestCode.GET_ALL_CONSUMER_OFFSET: all_group_offsets,
    RequestCode.GET_CONSUME_STATS: group_progress,
    RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
    RequestCode.GET_MAX_OFFSET: max_offset,
    RequestCode.GET_MIN_OFFSET: min_offset,
    RequestCode.GET_EARLIEST_MSG_STORETIME: earliest_store_time,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: search_offset,
}
