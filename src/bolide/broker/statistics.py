"""Statistics of a broker: `machines/statistics.py` under the original's names, with the store's own numbers.

How much went into a topic is how much its queues have grown since the start; nobody counts messages for it.
"""

from enum import StrEnum

from bolide.machines.statistics import SAMPLE_MS, Count, Figure, Statistics
from bolide.machines.traffic import Traffic
from bolide.model.clock import Clock
from bolide.model.limits import STATISTICS_MAX
from bolide.model.topic import TopicConfig
from bolide.net.ticks import ticks
from bolide.net.trouble import goes_on
from bolide.net.turns import next_turn
from bolide.store.append import QueueTail
from bolide.store.store import MessageStore

SAMPLED_PER_TURN = 256


class StatName(StrEnum):
    """What is counted (RocketMQ: Stats).  A key is a topic, `topic@group`, or the cluster's name."""

    TOPIC_PUT_NUMS = "TOPIC_PUT_NUMS"
    GROUP_GET_NUMS = "GROUP_GET_NUMS"
    GROUP_GET_SIZE = "GROUP_GET_SIZE"
    BROKER_PUT_NUMS = "BROKER_PUT_NUMS"
    BROKER_GET_NUMS = "BROKER_GET_NUMS"


class Given:
    """What a group got of a topic; added to once per pull."""

    __slots__ = ("bytes", "messages")

    def __init__(self, messages: Count, bytes: Count) -> None:
        self.messages = messages
        self.bytes = bytes

    def add(self, messages: int, bytes: int) -> None:
        count = self.messages  # no calls: this is on every pull's way
        count.total += messages
        count.times += 1
        count = self.bytes
        count.total += bytes
        count.times += 1


class BrokerStatistics:
    def __init__(self, store: MessageStore, traffic: Traffic, clock: Clock, cluster: str) -> None:
        self._store = store
        self._traffic = traffic
        self._clock = clock
        self._table = Statistics(STATISTICS_MAX)
        self._grown: dict[str, None] = {}  # topics that were written to since they were looked at
        self._seen = _totals(
            store
        )  # of each topic, when it was looked at last; at first what was there at the start
        self._broker_put = self.count(StatName.BROKER_PUT_NUMS, cluster)
        self._broker_get = self.count(StatName.BROKER_GET_NUMS, cluster)
        self._broker_base = store.messages_appended

    def count(self, name: StatName, key: str) -> Count:
        return self._table.count(name, key, self._clock.monotonic_ms())

    def given(self, topic: str, group: str) -> Given:
        """What pulls of a group add to.  Whoever keeps it drops it with the topic and the group."""
        key = f"{topic}@{group}"
        return Given(self.count(StatName.GROUP_GET_NUMS, key), self.count(StatName.GROUP_GET_SIZE, key))

    def arrived(self, tail: QueueTail) -> None:
        """A queue has grown."""
        self._grown[tail.key[0]] = None

    def topic_deleted(self, topic: TopicConfig) -> None:
        """One of that name begins at 0 again."""
        self._seen.pop(topic.name, None)
        self._grown.pop(topic.name, None)
        self._table.forget(StatName.TOPIC_PUT_NUMS, topic.name)

    def figures(self, name: str, key: str) -> tuple[Figure, ...] | None:
        """The last minute, hour and day."""
        if name == StatName.TOPIC_PUT_NUMS and key in self._grown:
            self._look_at(key)
        self._look_at_broker()
        return self._table.figures(name, key, self._clock.monotonic_ms())

    def rate_of_topic(self, topic: str) -> float:
        """Messages per second of the last minute that went into it."""
        return self._rate(StatName.TOPIC_PUT_NUMS, topic)

    def rate_of_group(self, topic: str, group: str) -> float:
        """Messages per second of the last minute that the group got of it."""
        return self._rate(StatName.GROUP_GET_NUMS, f"{topic}@{group}")

    @goes_on("counting for operators")
    async def run(self) -> None:
        """Take samples for ever."""
        async for _ in ticks(SAMPLE_MS / 1000):
            await self.sample()

    async def sample(self) -> None:
        for number, topic in enumerate(list(self._grown), 1):
            self._look_at(topic)
            if number % SAMPLED_PER_TURN == 0:
                await next_turn()
        self._look_at_broker()
        for _ in self._table.sampling(self._clock.monotonic_ms, SAMPLED_PER_TURN):
            await next_turn()

    def _rate(self, name: StatName, key: str) -> float:
        figures = self.figures(name, key)
        return 0.0 if figures is None else figures[0].per_second

    def _look_at(self, topic: str) -> None:
        self._grown.pop(topic, None)
        total = self._store.queues.grown_to(topic)
        more = total - self._seen.get(topic, 0)
        self._seen[topic] = total
        if more > 0:
            self.count(StatName.TOPIC_PUT_NUMS, topic).add(more)

    def _look_at_broker(self) -> None:
        appended = self._store.messages_appended - self._broker_base
        for count, total in ((self._broker_put, appended), (self._broker_get, self._traffic.transferred)):
            if total > count.total:
                count.add(total - count.total)


def _totals(store: MessageStore) -> dict[str, int]:
    """By topic: the sum of its queues' next offsets."""
    totals: dict[str, int] = {}
    for queue in store.queues:
        topic, _ = queue.tail.key
        totals[topic] = totals.get(topic, 0) + queue.tail.next_offset
    return totals
