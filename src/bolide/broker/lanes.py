"""Which topics may take the fast path, and through which queues.

A topic has a lane when a plain message to it needs no decision: it exists on disk, clients may write to it, and it is
not a retry or dead-letter topic.  Lanes are forgotten whenever the topic table or the broker's settings change.
"""

from collections.abc import Callable

from bolide.model.names import NO_SEND_TOPICS
from bolide.model.topic import TopicConfig
from bolide.net.guard import Passes
from bolide.net.link import Link
from bolide.store.append import TopicLane
from bolide.store.store import MessageStore
from bolide.store.tables import TopicTable

MADE_AT_ONCE_MAX = 64


class Lanes:
    def __init__(
        self, topics: TopicTable, store: MessageStore, may_run: Callable[[TopicConfig], bool]
    ) -> None:
        self._topics = topics
        self._store = store
        self._may_run = may_run
        self._lanes: dict[bytes, TopicLane] = {}

    def of(self, topics: list[bytes], link: Link, passes: Passes) -> list[TopicLane | None]:
        """A lane for each topic name, None for those that need the general path or that the guard gives no pass for.

        Few are made at once: each has an object for every queue of its topic.
        """
        lanes: list[TopicLane | None] = []
        made = 0
        for topic in topics:
            lane = None
            if passes.may_send(link, topic):
                lane = self._lanes.get(topic)
                if lane is None and made < MADE_AT_ONCE_MAX:
                    lane = self._find(topic)
                    made += 1
            lanes.append(lane)
        return lanes

    def of_topic(self, topic: TopicConfig) -> TopicLane:
        """The lane of a known topic, whether plain messages may use it or not."""
        return self._store.lane(topic.name, topic.queues, topic.write_queues)

    def forget(self) -> None:
        self._lanes.clear()

    def _find(self, name: bytes) -> TopicLane | None:
        topic = self._topics.get(name.decode("utf-8", "replace"))
        if topic is None or topic.name.startswith("%") or topic.name in NO_SEND_TOPICS:
            return None
        if topic.write_queues < 1:  # a table of the original may hold such a topic
            return None
        if not self._may_run(topic):
            return None
        lane = self.of_topic(topic)
        self._lanes[name] = lane
        return lane
