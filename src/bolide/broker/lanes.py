"""Which topics may take the fast path, and through which queues.

A topic has a lane when a plain message to it needs no decision: it exists on disk, clients may write to it, and it is
not a retry or dead-letter topic.  Lanes are forgotten whenever the topic table or the broker's settings change.
"""

from collections.abc import Callable

from bolide.model.limits import LANES_QUEUES_MAX
from bolide.model.names import NO_SEND_TOPICS
from bolide.model.topic import TopicConfig
from bolide.net.guard import Passes
from bolide.net.link import Link
from bolide.store.append import TopicLane
from bolide.store.store import MessageStore
from bolide.store.tables import TopicTable


class Lanes:
    def __init__(
        self, topics: TopicTable, store: MessageStore, may_run: Callable[[TopicConfig], bool]
    ) -> None:
        self._topics = topics
        self._store = store
        self._may_run = may_run
        self._lanes: dict[bytes, TopicLane] = {}
        self._queues = 0

    def of(self, topics: list[bytes], link: Link, passes: Passes) -> list[TopicLane | None]:
        """A lane for each topic name, None for those that need the general path or that the guard gives no pass for.

        Few are made at once, because a run has few topics: each has a place for every queue of its topic.
        """
        lanes: list[TopicLane | None] = []
        for topic in topics:
            lane = self._lanes.get(topic)
            if lane is None:
                lane = self._find(topic)
            lanes.append(lane if lane is not None and passes.may_send(link, topic) else None)
        return lanes

    def forget(self) -> None:
        self._lanes.clear()
        self._queues = 0

    def _find(self, name: bytes) -> TopicLane | None:
        topic = self._topics.get(name.decode("utf-8", "replace"))
        if topic is None or topic.name.startswith("%") or topic.name in NO_SEND_TOPICS:
            return None
        if topic.write_queues < 1:  # a table of the original may hold such a topic
            return None
        if not self._may_run(topic):
            return None
        if self._queues + topic.queues > LANES_QUEUES_MAX:
            self.forget()
        self._queues += topic.queues
        lane = self._lanes[name] = self._store.lane(topic.name, topic.queues, topic.write_queues)
        return lane
