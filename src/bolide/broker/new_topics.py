"""NewTopics: topics that are made, and those that topics.json does not hold yet.

There is no topic of a name that is leaving (`broker/topic_remover.py`): whoever makes one waits, a while and not
longer, until the one before it is gone.

A message of such a topic is not acknowledged before the file holds it: a broker killed in between would have messages
of a topic that nobody knows.  While the file cannot be written, its sender hears that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from bolide.broker.table_files import TableFiles
from bolide.broker.topic_remover import TopicRemover
from bolide.model.errors import TooBusy
from bolide.model.topic import TopicConfig
from bolide.net.registry import Outcome
from bolide.store.tables import TopicTable
from bolide.wire.command import Command

FREE_WAIT_S = 2.0
"""Less than clients wait for an answer."""


class NewTopics:
    def __init__(self, topics: TopicTable, files: TableFiles, remover: TopicRemover) -> None:
        self._topics = topics
        self._files = files
        self._remover = remover
        self._unwritten: dict[str, asyncio.Future[None]] = {}  # done when the file holds the topic

    def put(self, topic: TopicConfig) -> None:
        """Create the topic or change it; `TooBusy` while one of that name is leaving."""
        is_new = topic.name not in self._topics
        if is_new and self.is_leaving(topic.name):
            raise _still_leaving(topic.name)
        self._topics.put(topic)
        if is_new:
            written = self._unwritten[topic.name] = self._files.written(self._topics)
            written.add_done_callback(lambda _: self._known(topic.name, written))

    def is_leaving(self, topic: str) -> bool:
        """Whether there can be no topic of that name yet."""
        return self._remover.is_leaving(topic)

    async def free(self, topics: Iterable[str]) -> None:
        """Wait until none of these names is leaving; `TooBusy` when that takes too long."""
        leaving = [topic for topic in topics if self.is_leaving(topic)]
        with suppress(TimeoutError):
            async with asyncio.timeout(FREE_WAIT_S):
                for topic in leaving:
                    await self._remover.gone(topic)
        for topic in filter(self.is_leaving, leaving):
            raise _still_leaving(topic)

    async def when_free(self, topic: str, serve: Callable[[], Outcome | Awaitable[Outcome]]) -> Outcome:
        """Serve a request that may make the topic, when its name is free."""
        await self.free([topic])
        outcome = serve()
        return outcome if outcome is None or isinstance(outcome, Command) else await outcome

    def is_unwritten(self, topic: str) -> bool:
        return topic in self._unwritten

    async def known(self) -> None:
        """Wait until the file holds all topics of this moment; `StoreUnavailable` when it cannot be written now."""
        await self._files.saved(self._topics)

    def _known(self, topic: str, written: "asyncio.Future[None]") -> None:
        """The file holds it, unless it was deleted and made again meanwhile."""
        if self._unwritten.get(topic) is written:
            del self._unwritten[topic]


def _still_leaving(topic: str) -> TooBusy:
    return TooBusy(f"the topic {topic} is still being deleted; try again in a moment")
