"""TopicTable: which topics exist, with how many queues and which permission; `config/topics.json`.

Every change gives a new data version, marks the file behind and calls `on_change`, by which the broker registers at
once.  Built-in topics are there from the start and give no version of their own, as in the original.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bolide.model import names
from bolide.model.clock import Clock
from bolide.model.config_json import topic_as_json, topic_from_json
from bolide.model.errors import InvalidRequest, TableFull, TopicNotFound
from bolide.model.topic import Permission, TopicConfig
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, member_table

QUEUES_MAX = 16_384
"""Queues of one topic; each costs a folder once it is written to."""

TOPICS_MAX = 100_000
"""Clients create topics by sending to them, so there must be an end to it."""

UNIT_SUBSCRIPTION = 2
"""Bit of a retry topic's sysFlag: its group has members in unit mode."""

SCHEDULE_QUEUES = 18
BENCHMARK_QUEUES = 1024
CLUSTER_QUEUES = 16
DEFAULT_QUEUES = 8
REVIVE_QUEUES = 8


class TopicTable(PersistedTable):
    """Topics by name."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._topics: dict[str, TopicConfig] = {}
        self.on_change: Callable[[], None] = _nobody_listens

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

    def put(self, config: TopicConfig) -> None:
        """Create the topic or change it; the name is checked, and nothing happens when nothing would change."""
        names.check_topic(config.name)
        if not 1 <= config.read_queues <= QUEUES_MAX or not 1 <= config.write_queues <= QUEUES_MAX:
            raise InvalidRequest(f"a topic has 1 to {QUEUES_MAX} queues to read and to write")
        if config == self._topics.get(config.name):
            return
        if config.name not in self._topics and len(self._topics) >= TOPICS_MAX:
            raise TableFull(f"there are {TOPICS_MAX} topics, and no more are kept")
        self._topics[config.name] = config
        self.touch()

    def delete(self, topic: str) -> bool:
        """Forget the topic; tells whether it was there."""
        if self._topics.pop(topic, None) is None:
            return False
        self.touch()
        return True

    def touch(self) -> None:
        """A new version although no topic changed: the broker's own permission, which masks them all, did."""
        self._changed()
        self.on_change()

    def create_for_send(
        self, topic: str, default_topic: str, queues: int, *, auto_create: bool, sys_flag: int = 0
    ) -> TopicConfig:
        """The topic for a send to it, created when it is missing and may be.

        A topic inherits from the default topic that the producer names (`TBW102` unless it says otherwise) if
        that has the inherit bit; with automatic creation off, `TBW102` lends nothing.  A retry topic is created
        in any case: a failed message must not be lost because its group has no member on this broker.
        """
        config = self._topics.get(topic)
        if config is not None:
            return config
        names.check_topic(topic)
        template = self._topics.get(default_topic)
        may_inherit = default_topic != names.DEFAULT_TOPIC or auto_create
        if template is not None and template.inherited and may_inherit:
            count = max(1, min(queues, template.write_queues))
            perm = template.perm & ~int(Permission.INHERIT)  # an IntFlag would drop bits it does not know
            config = TopicConfig(topic, count, count, perm, template.filter_type, sys_flag)
        elif topic.startswith(names.RETRY_PREFIX):
            config = TopicConfig(topic, 1, 1, sys_flag=sys_flag)
        else:
            raise TopicNotFound(
                f"the topic {topic!r} does not exist on this broker and is not created on demand; create it first"
            )
        self.put(config)
        return config

    def create_for_retry(
        self, group: str, queues: int, *, order: bool = False, unit_mode: bool = False
    ) -> TopicConfig:
        """The group's retry topic, created when it is missing."""
        topic = names.retry_topic(group)
        config = self._topics.get(topic)
        if config is None:
            count = max(1, min(queues, QUEUES_MAX))
            sys_flag = UNIT_SUBSCRIPTION if unit_mode else 0
            config = TopicConfig(topic, count, count, sys_flag=sys_flag, order=order)
            self.put(config)
        elif config.order != order:
            config = replace(config, order=order)
            self.put(config)
        return config

    def add_built_in(self, cluster: str, broker_name: str, *, auto_create: bool) -> None:
        """Add what every broker has and this table lacks.  What the file says of them stays."""
        for config in built_in_topics(cluster, broker_name, auto_create=auto_create):
            if config.name not in self._topics:
                self._topics[config.name] = config
                self.mark_dirty()

    def as_json(self) -> dict[str, Any]:
        return {
            "dataVersion": self.version.as_json(),
            "topicConfigTable": {name: topic_as_json(config) for name, config in self._topics.items()},
        }

    def _take(self, members: Mapping[str, Any]) -> None:
        table = member_table(members, "topicConfigTable")
        self._topics |= {name: topic_from_json(value) for name, value in table.items()}


def built_in_topics(cluster: str, broker_name: str, *, auto_create: bool) -> list[TopicConfig]:
    """The topics of a new broker.  With fewer than two a name server refuses its first registration."""
    template = Permission.READ_WRITE | Permission.INHERIT
    topics = [
        _topic(names.SELF_TEST_TOPIC, 1),
        _topic(names.BENCHMARK_TOPIC, BENCHMARK_QUEUES),
        _topic(cluster, CLUSTER_QUEUES, template),
        _topic(broker_name, 1, template),
        _topic(names.OFFSET_MOVED_TOPIC, 1),
        _topic(names.SCHEDULE_TOPIC, SCHEDULE_QUEUES),
        _topic(names.reply_topic(cluster), 1),
        _topic(names.HALF_TOPIC, 1),
        _topic(names.OP_HALF_TOPIC, 1),
        _topic(names.TIMER_TOPIC, 1),
        _topic(f"{names.SYSTEM_TOPIC_PREFIX}REVIVE_LOG_{cluster}", REVIVE_QUEUES),
        _topic(f"{names.SYSTEM_TOPIC_PREFIX}SYNC_BROKER_MEMBER_{broker_name}", 1, Permission.INHERIT),
    ]
    if auto_create:
        topics.append(_topic(names.DEFAULT_TOPIC, DEFAULT_QUEUES, template))
    return topics


def _topic(name: str, queues: int, perm: int = Permission.READ_WRITE) -> TopicConfig:
    return TopicConfig(name, queues, queues, perm)


def _nobody_listens() -> None:
    """Until the broker asks to be told."""
