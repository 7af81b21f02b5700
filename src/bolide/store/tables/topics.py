"""TopicTable: which topics exist, with how many queues and which permission; `config/topics.json`.

Every change gives a new data version, marks the file behind and is told to who listens: the broker registers at once.
Built-in topics are there from the start and give no version of their own, as in the original.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bolide.model import names
from bolide.model.clock import Clock
from bolide.model.config_json import topic_as_json, topic_bytes, topic_from_json
from bolide.model.errors import InvalidRequest, TableFull, TopicNotFound
from bolide.model.json_pieces import Entries
from bolide.model.limits import TOPIC_QUEUES_MAX, TOPIC_TABLE_BYTES_MAX, TOPICS_MAX
from bolide.model.topic import TopicConfig
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, entries_of, read_entries, with_more

RESERVED = 16
"""One part in so many of the table is for topics that the broker needs itself: without its retry topic a group could
not fail."""


class TopicTable(PersistedTable):
    """Topics by name."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._topics: dict[str, TopicConfig] = {}
        self._bytes = 0
        self._lives: dict[str, int] = {}  # of those that somebody has asked about
        self._lives_told = 0
        self._is_needed: Callable[[str], bool] = lambda topic: False
        self._listeners: list[Callable[[], None]] = []
        self._mourners: list[Callable[[TopicConfig], None]] = []

    def __contains__(self, topic: object) -> bool:
        return topic in self._topics

    def __iter__(self) -> Iterator[TopicConfig]:
        return iter(self._topics.values())

    def __len__(self) -> int:
        return len(self._topics)

    def get(self, topic: str) -> TopicConfig | None:
        return self._topics.get(topic)

    def require(self, topic: str) -> TopicConfig:
        """The topic; `TopicNotFound` when there is none."""
        config = self._topics.get(topic)
        if config is None:
            raise TopicNotFound(f"the topic {topic[:255]!r} does not exist on this broker")
        return config

    def life_of(self, topic: str) -> int | None:
        """A number that a topic keeps whatever becomes of its settings; one that is made again has another."""
        if topic in self._topics and topic not in self._lives:
            self._lives_told += 1
            self._lives[topic] = self._lives_told
        return self._lives.get(topic)

    def queue_now(self, topic: str, queue_id: int) -> int:
        """Where a message goes that was meant for this queue: the topic may have fewer by now."""
        config = self._topics.get(topic)
        return queue_id % config.queues if config is not None and queue_id >= config.queues > 0 else queue_id

    def put(self, config: TopicConfig) -> None:
        """Create the topic or change it; the name is checked, and nothing happens when nothing would change."""
        self.check(config)
        if config == self._topics.get(config.name):
            return
        if config.name not in self._topics and len(self._topics) >= self._share(config.name, TOPICS_MAX):
            raise TableFull(f"there are {len(self._topics)} topics, and no more are kept: delete some first")
        self._keep(config)
        self.touch()

    def keep_room_for(self, is_needed: Callable[[str], bool]) -> None:
        """The last of the room is for topics of which this is true."""
        self._is_needed = is_needed

    @staticmethod
    def check(config: TopicConfig) -> None:
        """`InvalidRequest` when it could not be put."""
        names.check_topic(config.name)
        if (
            not 1 <= config.read_queues <= TOPIC_QUEUES_MAX
            or not 1 <= config.write_queues <= TOPIC_QUEUES_MAX
        ):
            raise InvalidRequest(f"a topic has 1 to {TOPIC_QUEUES_MAX} queues to read and to write")

    def delete(self, topic: str) -> bool:
        """Forget the topic; tells whether it was there."""
        config = self._topics.pop(topic, None)
        if config is None:
            return False
        self._lives.pop(topic, None)
        self._bytes -= topic_bytes(config)
        self.touch()
        for listener in self._mourners:
            listener(config)
        return True

    def touch(self) -> None:
        """A new version although no topic changed: the broker's own permission, which masks them all, did."""
        self._changed()
        for listener in self._listeners:
            listener()

    def on_delete(self, listener: Callable[[TopicConfig], None]) -> None:
        """Be told of every topic that is deleted, as it was."""
        self._mourners.append(listener)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Be called after every change."""
        self._listeners.append(listener)

    def add_missing(self, built_in: Iterable[TopicConfig]) -> None:
        """Add those of a broker's built-in topics that are not here.  What the file says of the others stays."""
        for config in built_in:
            if config.name not in self._topics:
                self._topics[config.name] = config
                self._bytes += topic_bytes(config)
                self.mark_dirty()

    def widen(self, built_in: str, queues: int) -> None:
        """Let a built-in topic have so many queues, if the file says that it has fewer."""
        known = self._topics[built_in]
        read, write = max(known.read_queues, queues), max(known.write_queues, queues)
        if (read, write) != (known.read_queues, known.write_queues):
            wider = replace(known, read_queues=read, write_queues=write)
            self._bytes += topic_bytes(wider) - topic_bytes(known)
            self._topics[built_in] = wider
            self.mark_dirty()

    def members(self) -> dict[str, Any]:
        return {
            "dataVersion": self.version.as_json(),
            "topicConfigTable": Entries(
                (name, topic_as_json(config)) for name, config in entries_of(self._topics)
            ),
        }

    def _take(self, members: Mapping[str, Any]) -> None:
        found = read_entries(members, "topicConfigTable", topic_from_json)
        for name, config in found.items():  # from it come the folders of its queues
            if config.name != name:
                raise InvalidRequest(f"the topic {name[:255]!r} is called {config.name[:255]!r} inside")
            names.check_topic(name)
        self._topics |= found
        self._bytes = sum(map(topic_bytes, self._topics.values()))

    def _keep(self, config: TopicConfig) -> None:
        """What the table holds must fit into a registration: see the limit."""
        known = self._topics.get(config.name)
        more = topic_bytes(config) - (0 if known is None else topic_bytes(known))
        self._bytes = with_more(self._bytes, more, self._share(config.name, TOPIC_TABLE_BYTES_MAX), "topics")
        self._topics[config.name] = config

    def _share(self, topic: str, all_: int) -> int:
        """How much of the table may be taken before this topic has no room."""
        return all_ if self._is_needed(topic) else all_ - all_ // RESERVED
