"""NewTopics: topics that topics.json does not hold yet.

A message of such a topic is not acknowledged before the file holds it: a broker killed in between would have messages
of a topic that nobody knows.
"""

import asyncio

from bolide.broker.table_files import TableFiles
from bolide.model.topic import TopicConfig
from bolide.store.tables import TopicTable


class NewTopics:
    def __init__(self, topics: TopicTable, files: TableFiles) -> None:
        self._topics = topics
        self._files = files
        self._unwritten: dict[str, asyncio.Future[None]] = {}

    def put(self, topic: TopicConfig) -> None:
        """Create the topic or change it."""
        is_new = topic.name not in self._topics
        self._topics.put(topic)
        if is_new:
            written = self._unwritten[topic.name] = self._files.written(self._topics)
            written.add_done_callback(lambda _: self._known(topic.name, written))

    def unwritten(self, topic: str) -> "asyncio.Future[None] | None":
        """What to wait for before a message of this topic may be acknowledged; None for a topic that is on disk."""
        return self._unwritten.get(topic)

    def _known(self, topic: str, written: "asyncio.Future[None]") -> None:
        """The file holds it, unless it was deleted and made again meanwhile."""
        if self._unwritten.get(topic) is written:
            del self._unwritten[topic]
