"""NewTopics: topics that clients make by sending to them.

A message of a new topic is not acknowledged before topics.json holds the topic: a broker killed in between would have
messages of a topic that nobody knows.
"""

import asyncio

from bolide.broker.state import BrokerState
from bolide.model.topic import TopicConfig
from bolide.rules.topic_creation import topic_for_send
from bolide.wire.headers.send import SendRequest


class NewTopics:
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self._unwritten: dict[str, asyncio.Future[None]] = {}

    def find_or_make(self, header: SendRequest) -> TopicConfig:
        """The topic of a send, made on demand where that is allowed."""
        state = self._state
        known = state.topics.get(header.topic)
        if known is not None:
            return known
        topic = topic_for_send(
            header.topic,
            state.topics.get(header.default_topic),
            header.default_topic_queues,
            auto_create=state.settings.now.auto_create_topic,
        )
        state.topics.put(topic)
        future = self._unwritten[topic.name] = state.files.written(state.topics)
        future.add_done_callback(lambda _: self._unwritten.pop(topic.name, None))
        return topic

    def unwritten(self, topic: str) -> "asyncio.Future[None] | None":
        """What to wait for before a message of this topic may be acknowledged; None for a topic that is on disk."""
        return self._unwritten.get(topic)
