"""The scene in which callbacks are measured: the tables that a broker finds when it starts.

Every group reads a topic of its own and the topic `shared`; the group `reads-all` reads every topic.
"""

from dataclasses import dataclass
from pathlib import Path

from bolide.model.topic import GroupConfig, TopicConfig
from bolide.net.clock import SystemClock
from bolide.store.disk_os import OsDisk
from bolide.store.tables import GroupTable, OffsetTable, TopicTable

QUEUES = 4
SHARED, QUIET, BUSY, WIDE, DOOMED = "shared", "quiet", "busy", "wide", "doomed"
WIDE_QUEUES = 1024
READS_ALL = "reads-all"
SEGMENT_BYTES = 64 * 1024**2

SETTINGS = {
    "mappedFileSizeCommitLog": str(SEGMENT_BYTES),
    "flushConsumerOffsetInterval": "200",  # so that a change is written while its own kind of work is measured
    "registerNameServerPeriod": "60000",
    "waitTimeMillsInSendQueue": "60000",  # all of them send at once, and a busy machine refuses nobody here
    "cleanResourceInterval": "1000",
    "diskMaxUsedSpaceRatio": "95",
    "diskSpaceWarningLevelRatio": "100",
    "cleanFileForciblyEnable": "false",
}


@dataclass(frozen=True)
class Scene:
    topics: int
    groups: int
    held_pulls: int

    @property
    def topic_names(self) -> list[str]:
        return [f"topic-{number:05}" for number in range(self.topics)]

    @property
    def group_names(self) -> list[str]:
        return [f"group-{number:05}" for number in range(self.groups)]

    def write(self, data: Path) -> None:
        """The files of the tables, as a broker leaves them behind."""
        disk, clock, folder = OsDisk(), SystemClock(), data / "config"
        folder.mkdir(parents=True)
        topics = TopicTable(disk, str(folder / "topics.json"), clock)
        for name in [*self.topic_names, SHARED, QUIET, BUSY]:
            topics.put(TopicConfig(name, QUEUES, QUEUES))
        for name in (WIDE, DOOMED):
            topics.put(TopicConfig(name, WIDE_QUEUES, WIDE_QUEUES))
        groups = GroupTable(disk, str(folder / "subscriptionGroup.json"), clock)
        offsets = OffsetTable(disk, str(folder / "consumerOffset.json"), clock)
        for number, name in enumerate([*self.group_names, READS_ALL]):
            groups.put(GroupConfig(name))
            offsets.commit(name, SHARED, 0, 0, 0)
            for queue in range(QUEUES):
                offsets.commit(name, f"topic-{number % self.topics:05}", queue, 0, 0)
        for name in self.topic_names:
            for queue in range(QUEUES):
                offsets.commit(READS_ALL, name, queue, 0, 0)
        for table in (topics, groups, offsets):
            table.persist()
