"""NewTopics: topics that topics.json does not hold yet.

A message of such a topic is not acknowledged before the file holds it: a broker killed in between would have messages
of a topic that nobody knows.  While the file cannot be written, its sender hears that.
"""

import asyncio

from bolide.broker.table_files import TableFiles
from bolide.model.topic import TopicConfig
from bolide.store.tables import TopicTable


class NewTopics:
    def __init__(self, topics: TopicTable, files: TableFiles) -> None:
        self._topics = topics
        self._files = files
        self._unwritten: dict[str, asyncio.Future[None]] = {}  # done when the file holds the topic

    def put(self, topic: TopicConfig) -> None:
        """Create the topic or change it."""
        is_new = topic.name not in self._topics
        self._topics.put(topic)
        if is_new:
            written = self._unwritten[topic.name] = self._files.written(self._topics)
            written.add_done_callback(lambda _: self._known(topic.name, written))

    def is_unwritten(self, topic: str) -> bool:
        return topic in self._unwritten

    async def known(self) -> None:
        """Wait until the file holds all topics of this moment; `StoreUnavailable` when it cannot be written now."""
        await self._files.saved(self._topics)

    def _known(self, topic: str, written: "asyncio.Future[None]") -> None:
        """The file holds it, unless it was deleted and made again meanwhile."""
        if self._unwritten.get(topic) is written:
            del self._unwritten[topic]
