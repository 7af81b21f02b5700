"""Making a topic smaller without losing sight of messages: which queues go, who has not read them, when it is over.

A queue that is no longer among the read queues keeps its messages, but no consumer gets them.  So the write queues go
first; the read queues follow when no producer writes to the others any more and every group has consumed them.  Between
the two the topic is sound: it may stay like that, and the same change goes on from there.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bolide.admin.connection import AdminConnection
from bolide.admin.topics import TopicDescription
from bolide.model.errors import RemoteError
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.net.ticks import pause
from bolide.wire.bodies.offset import decode_consume_stats
from bolide.wire.bodies.topic import QueueBounds, decode_groups, decode_topic_stats
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.headers.group import ConsumeStatsRequest, GroupRequest
from bolide.wire.headers.topic import TopicRequest

LOOK_S = 1.0

Going = Mapping[str, range]
"""By broker name, the queues that will not be read any more."""


@dataclass(frozen=True, slots=True)
class Rest:
    """What lies in the queues that go."""

    bounds: Mapping[MessageQueue, QueueBounds]
    behind: Mapping[str, int]
    """For each group that reads the topic, or has: how many messages of these queues it has not consumed."""
    absent: frozenset[str] = frozenset()
    """Those of them that are behind and have no member connected: nobody may ever consume that."""

    @property
    def messages(self) -> int:
        return sum(bounds.offset_max - bounds.offset_min for bounds in self.bounds.values())

    @property
    def is_consumed(self) -> bool:
        return not any(self.behind.values())


def queues_that_go(before: Mapping[str, TopicConfig], after: Mapping[str, TopicConfig]) -> dict[str, range]:
    """The read queues that a change takes away, by broker."""
    return {
        name: range(config.read_queues, before[name].read_queues)
        for name, config in after.items()
        if config.read_queues < before[name].read_queues
    }


async def look(servers: AdminConnection, topic: TopicDescription, going: Going) -> Rest:
    """How things stand now, by the brokers' own account."""
    bounds: dict[MessageQueue, QueueBounds] = {}
    behind: Counter[str] = Counter()
    absent: set[str] = set()
    for name, queue_ids in going.items():
        address = topic.addresses[name]
        asked = TopicRequest(topic.name).encode()
        stats = await servers.ask(address, RequestCode.GET_TOPIC_STATS_INFO, asked)
        here = {
            queue: state
            for queue, state in decode_topic_stats(stats.body).items()
            if queue.queue_id in queue_ids
        }
        bounds |= here
        groups = await servers.ask(address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, asked)
        for group in decode_groups(groups.body):
            left = await _behind(servers, address, topic.name, group, here)
            behind[group] += left
            if left and await _is_absent(servers, address, group):
                absent.add(group)
    return Rest(bounds, behind, frozenset(absent))


async def until_consumed(
    servers: AdminConnection,
    topic: TopicDescription,
    going: Going,
    *,
    quiet_ms: int,
    wait_for_groups: bool,
    on_look: Callable[[Rest, int], None],
) -> None:
    """Return when nothing has come into the queues for `quiet_ms` and, if they count, every group has consumed them.

    `on_look` hears how things stand, and for how many milliseconds more the queues must stay quiet.
    """
    rest = await look(servers, topic, going)
    quiet_since_ms = servers.clock.monotonic_ms()
    while True:
        left_ms = max(0, quiet_since_ms + quiet_ms - servers.clock.monotonic_ms())
        on_look(rest, left_ms)
        if left_ms == 0 and (rest.is_consumed or not wait_for_groups):
            return
        await pause(LOOK_S)
        newer = await look(servers, topic, going)
        if _ends(newer) != _ends(rest):
            quiet_since_ms = servers.clock.monotonic_ms()
        rest = newer


async def _behind(
    servers: AdminConnection, address: str, topic: str, group: str, bounds: Mapping[MessageQueue, QueueBounds]
) -> int:
    """Messages that the group has before it and can still get: what has expired is no reason to wait."""
    asked = ConsumeStatsRequest(group, topic).encode()
    answer = await servers.ask(address, RequestCode.GET_CONSUME_STATS, asked)
    return sum(
        max(0, bounds[queue].offset_max - max(bounds[queue].offset_min, progress.group_offset))
        for queue, progress in decode_consume_stats(answer.body).items()
        if queue in bounds
    )


async def _is_absent(servers: AdminConnection, address: str, group: str) -> bool:
    try:
        await servers.ask(address, RequestCode.GET_CONSUMER_CONNECTION_LIST, GroupRequest(group).encode())
    except RemoteError as error:
        if error.response_code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        return True
    return False


def _ends(rest: Rest) -> dict[MessageQueue, int]:
    return {queue: bounds.offset_max for queue, bounds in rest.bounds.items()}
