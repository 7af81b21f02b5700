"""Which topics and queues a read is about: a list, a pattern, single queues, what groups did not manage to consume."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bolide.model.errors import ConfigError
from bolide.model.names import DEAD_LETTER_PREFIX, check_group, check_topic, dead_letter_topic, retry_topic
from bolide.model.numbers import is_int32
from bolide.model.offsets import MessageQueue
from bolide.pipeline.bounds import ANY_BROKER, read_json
from bolide.pipeline.option_table import OptionTexts, named, quoted

WAYS = ("subscribe", "topic", "subscribePattern", "assign", "retryOf", "dlqOf")


@dataclass(frozen=True)
class Topics:
    """Names, or a pattern that is held against all names; `assigned` leaves only some queues of them."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: frozenset[MessageQueue] | None = None

    def matching(self, there: Iterable[str]) -> list[str]:
        """The topics of a cluster that the pattern means.  Dead letters are meant only when they are asked for."""
        assert self.pattern is not None
        wants_dead = self.pattern.startswith(DEAD_LETTER_PREFIX[0])
        return sorted(
            name
            for name in there
            if re.fullmatch(self.pattern, name) and (wants_dead or not name.startswith(DEAD_LETTER_PREFIX))
        )

    def has(self, queue: MessageQueue) -> bool:
        if self.assigned is None:
            return True
        return (
            queue in self.assigned or MessageQueue(queue.topic, ANY_BROKER, queue.queue_id) in self.assigned
        )

    def absent(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Assigned queues that nobody has."""
        there = set(queues)
        there |= {MessageQueue(queue.topic, ANY_BROKER, queue.queue_id) for queue in there}
        return sorted((self.assigned or frozenset()) - there)

    def check_named(self, name: str, queues: Iterable[MessageQueue]) -> None:
        """Offsets for a topic that is not read are a mistake; of a pattern only the cluster knows."""
        for queue in queues:
            if self.names and queue.topic not in self.names:
                raise ConfigError(f"{name} names the topic {quoted(queue.topic)}, which is not read here")


def read_topics(options: OptionTexts) -> Topics:
    way = options.one_of(WAYS, "topic")
    text = options.required(way, "topic")
    if way == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigError(
                f"subscribePattern: {quoted(text)} is no regular expression: {error}"
            ) from error
        return Topics(pattern=text)
    if way == "assign":
        assigned = _assigned(text)
        return Topics(tuple(sorted({queue.topic for queue in assigned})), assigned=assigned)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ConfigError(f"{way}: {quoted(text)} names no {'group' if way.endswith('Of') else 'topic'}")
    if way == "retryOf":
        names = [retry_topic(named(way, check_group, name)) for name in names]
    elif way == "dlqOf":
        names = [dead_letter_topic(named(way, check_group, name)) for name in names]
    return Topics(tuple(dict.fromkeys(named(way, check_topic, name) for name in names)))


def _assigned(text: str) -> frozenset[MessageQueue]:
    shape = '{"topic": {"broker": [queue, …]}} or, on all brokers, {"topic": [queue, …]}'
    found: set[MessageQueue] = set()
    for topic, inner in read_json("assign", text, shape).items():
        named("assign", check_topic, topic)
        brokers = inner if isinstance(inner, dict) else {ANY_BROKER: inner}
        for broker, ids in brokers.items():
            if not isinstance(ids, list) or not all(is_int32(one) and one >= 0 for one in ids):
                raise ConfigError(f"assign is {shape}; this cannot be read: {quoted(text)}")
            found |= {MessageQueue(topic, broker, one) for one in ids}
    if not found:
        raise ConfigError(f"assign: {quoted(text)} names no queue")
    return frozenset(found)
