"""How far groups have come: in messages, and in time.

Behind by messages is how many lie between a group's offset and the end of its queue, whatever their tags.  Behind by
time is how long the oldest of these has been waiting: the store time of the message at the group's offset.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bolide.admin.connection import AdminConnection
from bolide.admin.groups import masters_there
from bolide.admin.many import UNTOLD, Silent, of_brokers, of_each
from bolide.admin.queues import Place, messages_from
from bolide.model.errors import RemoteError
from bolide.model.offsets import MessageQueue
from bolide.model.response_code import ResponseCode
from bolide.wire.bodies.offset import QueueProgress, decode_consume_stats
from bolide.wire.codes import RequestCode
from bolide.wire.headers.group import ConsumeStatsRequest


@dataclass(frozen=True, slots=True)
class QueueLag:
    """One group in one queue."""

    queue: MessageQueue
    offset: int
    """Where it goes on."""
    end: int
    """The offset of the next message that comes."""
    behind: int
    """Messages that it has before it; what has expired is not among them."""
    waits_since_ms: int | None
    """When the first of them was stored; None when there is none, or its broker does not tell."""

    def waits_ms(self, now_ms: int) -> int:
        return 0 if self.waits_since_ms is None else max(0, now_ms - self.waits_since_ms)


@dataclass(frozen=True, slots=True)
class TopicLag:
    """One group in one topic."""

    group: str
    topic: str
    queues: tuple[QueueLag, ...]

    @property
    def behind(self) -> int:
        return sum(queue.behind for queue in self.queues)

    def waits_ms(self, now_ms: int) -> int:
        """How long the oldest message has been waiting that the group has not consumed."""
        return max((queue.waits_ms(now_ms) for queue in self.queues), default=0)


async def group_lag(
    servers: AdminConnection, group: str, topic: str | None = None, silent: Silent | None = None
) -> list[TopicLag]:
    """By topic, how far a group is behind in each queue: in the topics that it subscribes to while it has members, else
    in all in which it has come somewhere.  See `of_brokers`."""
    progress = await group_progress(servers, group, topic, silent)

    async def one(item: tuple[Place, QueueProgress]) -> QueueLag:
        place, state = item
        try:
            return await queue_lag(servers, place, state.group_offset, state.broker_offset)
        except UNTOLD as error:
            if silent is None:
                raise
            silent[place.queue.broker_name] = error
            return QueueLag(place.queue, state.group_offset, state.broker_offset, max(0, state.behind), None)

    lags = await of_each(progress.items(), one)
    topics = sorted({lag.queue.topic for lag in lags})
    return [TopicLag(group, name, _of_topic(lags, name)) for name in topics]


async def group_progress(
    servers: AdminConnection, group: str, topic: str | None = None, silent: Silent | None = None
) -> Mapping[Place, QueueProgress]:
    """What the brokers say, queue by queue, in order; see `of_brokers`."""
    addresses = await masters_there(servers)

    async def one(address: str) -> dict[Place, QueueProgress]:
        try:
            fields = ConsumeStatsRequest(group, topic).encode()
            answer = await servers.ask(address, RequestCode.GET_CONSUME_STATS, fields)
        except RemoteError as error:
            if error.response_code not in (
                ResponseCode.TOPIC_NOT_EXIST,
                ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            ):
                raise
            return {}
        told = decode_consume_stats(answer.body)
        return {Place(queue, address): told[queue] for queue in sorted(told)}

    answers = await of_brokers(addresses, one, silent)
    return {place: progress for answer in answers.values() for place, progress in answer.items()}


async def queue_lag(servers: AdminConnection, place: Place, offset: int, end: int) -> QueueLag:
    """How far somebody who goes on at `offset` is behind in a queue that ends at `end`."""
    if end <= offset:
        return QueueLag(place.queue, offset, end, 0, None)
    first = next(iter(await messages_from(servers, place, offset, 1)), None)
    if first is None:  # consumed or expired since
        return QueueLag(place.queue, offset, end, 0, None)
    behind = max(0, end - max(offset, first.queue_offset))
    return QueueLag(place.queue, offset, end, behind, first.store_timestamp_ms)


def _of_topic(lags: Iterable[QueueLag], topic: str) -> tuple[QueueLag, ...]:
    return tuple(sorted((lag for lag in lags if lag.queue.topic == topic), key=lambda lag: lag.queue))
