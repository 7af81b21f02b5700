"""Offsets: a group's progress, the bounds of queues, offsets by time."""

from collections.abc import Awaitable, Iterable, Iterator

from bolide.broker.own_offsets import check_offsets_change
from bolide.broker.part import Part
from bolide.broker.state import BrokerState
from bolide.model.errors import InvalidRequest, NothingFound
from bolide.model.limits import TOPICS_ASKED_MAX
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.net.link import Link
from bolide.net.registry import Handler, bound
from bolide.wire.bodies.offset import QueueProgress, consume_stats_pieces
from bolide.wire.bodies.route import topic_list_pieces
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

NO_TIME = -1
"""The store time of a queue without messages."""


# ---- a group's progress ------------------------------------------------------------------------------------------


def query_group_offset(state: BrokerState, link: Link, request: Command) -> Command:
    """14: where a group goes on in a queue.

    "None stored" makes a client begin at the end of the queue, for which it asks next.  While the queue is young, its
    first message not yet deleted and still in memory, the answer is 0 instead: a group that is a moment late would lose
    the first messages of a new topic.  So would one that hears "none" of a queue without messages, if one came before
    its next question; the original leaves it to that.  A client may forbid it with `setZeroIfNotFound=false`.
    """
    header = QueryGroupOffset.decode(request.fields)
    offset = state.offsets.query(header.consumer_group, header.topic, header.queue_id)
    if offset is None and header.set_zero_if_not_found is not False and _is_young(state, header):
        offset = GroupOffset(0)
    if offset is None:
        raise NothingFound("the group has no offset in this queue yet")
    return request.answer(fields=OffsetAnswer(offset).encode())


def commit_group_offset(state: BrokerState, link: Link, request: Command) -> Command:
    """15: store where a group goes on; see `commit` for what is taken.

    Members that have not heard of a reset commit where they were, and that is passed over.  When there are no members,
    it is somebody who sets the offset by hand.
    """
    header = UpdateGroupOffset.decode(request.fields)
    state.groups.require(header.consumer_group)
    if state.clients.group(header.consumer_group) is None:
        state.offsets.end_reset(header.consumer_group, header.topic, header.queue_id)
    commit(state, header.consumer_group, header.topic, header.queue_id, header.commit_offset)
    return request.answer()


def commit(state: BrokerState, group: str, topic: str, queue_id: int, offset: int) -> None:
    """Store a group's progress, whether it comes by itself or with a pull.

    Backwards is allowed: resetting works by it.  A queue beyond the topic's number is taken while it exists: after a
    topic was shrunk, its consumers still commit what they finished.  Other queue numbers are refused, since each would
    stay in the table for ever.
    """
    check_offsets_change(group)
    config = state.topics.require(topic)
    _, end = _bounds(state, topic, queue_id)
    if offset >= 0 and end == 0 and not 0 <= queue_id < config.queues:
        raise InvalidRequest(f"the topic {topic} has no queue {queue_id}")
    state.offsets.commit(group, topic, queue_id, offset, end)


def all_group_offsets(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """43: the whole table, for slaves and tools."""
    return state.large_answers.make(link, request, state.offsets.answer_pieces)


def group_progress(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """208: how far a group is in each queue that it reads, each as it is when its turn comes."""
    header = ConsumeStatsRequest.decode(request.fields)

    def pieces() -> Iterator[bytes]:
        group = header.consumer_group
        rate = 0.0

        def topics() -> Iterator[str]:
            nonlocal rate
            for topic in list(_topics_asked_for(state, header)):
                rate += state.statistics.rate_of_group(topic, group)
                yield topic

        return consume_stats_pieces(progress_of(state, group, topics()), lambda: rate)

    return state.large_answers.make(link, request, pieces)


def topics_of_group(state: BrokerState, link: Link, request: Command) -> Awaitable[Command | None]:
    """343: the topics in which a group has made progress."""
    group = GroupConfigRequest.decode(request.fields).group

    def pieces() -> Iterator[bytes]:
        return topic_list_pieces(state.offsets.topics_of(group), state.identity.address)

    return state.large_answers.make(link, request, pieces)


def _is_young(state: BrokerState, header: QueryGroupOffset) -> bool:
    topic, queue_id = header.topic, header.queue_id
    config = state.topics.get(topic)
    if config is None:
        return False
    start, end = _bounds(state, topic, queue_id)
    if end == 0:
        return 0 <= queue_id < config.queues
    return start == 0 and state.store.reader.first_is_recent(topic, queue_id, state.recent_bytes)


def _topics_asked_for(state: BrokerState, header: ConsumeStatsRequest) -> Iterable[str]:
    """Those named, or all in which the group has an offset; of an online group only what it subscribes to."""
    if header.topic_list:
        named = header.topic_list.split(";", TOPICS_ASKED_MAX)
        if len(named) > TOPICS_ASKED_MAX:
            raise InvalidRequest(f"more than {TOPICS_ASKED_MAX} topics are named; ask for fewer at once")
        return dict.fromkeys(filter(None, named))
    group = header.consumer_group
    topics = [header.topic] if header.topic else state.offsets.topics_of(group)
    online = state.clients.group(group)
    if online is None or not online.subscriptions:
        return topics
    return (topic for topic in topics if topic in online.subscriptions)


def progress_of(
    state: BrokerState, group: str, topics: Iterable[str]
) -> Iterator[tuple[MessageQueue, QueueProgress]]:
    """How far the group is in each queue of these topics, each as it is when its turn comes."""
    for topic in topics:
        config = state.topics.get(topic)
        for queue_id in range(0 if config is None else config.read_queues):
            queue = MessageQueue(topic, state.identity.name, queue_id)
            yield queue, _progress(state, group, queue)


def _progress(state: BrokerState, group: str, queue: MessageQueue) -> QueueProgress:
    topic, queue_id = queue.topic, queue.queue_id
    offset = state.offsets.query(group, topic, queue_id) or GroupOffset(0)
    pulled = state.offsets.last_pull(group, topic, queue_id) or GroupOffset(0)
    _, end = _bounds(state, topic, queue_id)
    finished_ms = state.store.reader.store_time(topic, queue_id, QueueOffset(offset - 1)) if offset else None
    return QueueProgress(
        broker_offset=end,
        group_offset=offset,
        pull_offset=max(offset, pulled),
        last_consumed_ms=finished_ms or 0,
    )


# ---- queues ------------------------------------------------------------------------------------------------------


def max_offset(state: BrokerState, link: Link, request: Command) -> Command:
    """30: the offset that the next message will get; 0 for a queue that nobody has written to."""
    header = QueueRequest.decode(request.fields)
    _, end = _bounds(state, header.topic, header.queue_id)
    return request.answer(fields=OffsetAnswer(end).encode())


def min_offset(state: BrokerState, link: Link, request: Command) -> Command:
    """31: the offset of the oldest message that is still there."""
    header = QueueRequest.decode(request.fields)
    start, _ = _bounds(state, header.topic, header.queue_id)
    return request.answer(fields=OffsetAnswer(start).encode())


def earliest_store_time(state: BrokerState, link: Link, request: Command) -> Command:
    """32."""
    header = QueueRequest.decode(request.fields)
    time_ms = NO_TIME
    if header.topic in state.topics:
        time_ms = state.store.reader.earliest_store_time(header.topic, header.queue_id)
    return request.answer(fields=TimestampAnswer(time_ms).encode())


def search_offset(state: BrokerState, link: Link, request: Command) -> Command:
    """29: the first message at or after a time; with the boundary UPPER the last one at or before it."""
    header = SearchOffset.decode(request.fields)
    offset = QueueOffset(0)
    if header.topic in state.topics:
        upper = (header.boundary_type or "").upper() == "UPPER"
        offset = state.store.reader.search_offset(
            header.topic, header.queue_id, header.timestamp, upper=upper
        )
    return request.answer(fields=OffsetAnswer(offset).encode())


def _bounds(state: BrokerState, topic: str, queue_id: int) -> tuple[QueueOffset, QueueOffset]:
    """A queue's first and next offset.  Names that are not in the table never reach the store."""
    if topic not in state.topics or queue_id < 0:
        return QueueOffset(0), QueueOffset(0)
    return state.store.reader.queue_range(topic, queue_id)


class Offsets(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def handlers(self) -> dict[RequestCode, Handler]:
        return bound(
            self._state,
            {
                RequestCode.QUERY_CONSUMER_OFFSET: query_group_offset,
                RequestCode.UPDATE_CONSUMER_OFFSET: commit_group_offset,
                RequestCode.GET_ALL_CONSUMER_OFFSET: all_group_offsets,
                RequestCode.GET_CONSUME_STATS: group_progress,
                RequestCode.QUERY_TOPICS_BY_CONSUMER: topics_of_group,
                RequestCode.GET_MAX_OFFSET: max_offset,
                RequestCode.GET_MIN_OFFSET: min_offset,
                RequestCode.GET_EARLIEST_MSG_STORETIME: earliest_store_time,
                RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: search_offset,
            },
        )
