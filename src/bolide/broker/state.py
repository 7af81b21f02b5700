"""What the parts of a broker share: who it is, what it runs with, its tables, its store, and the way into its log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bolide.broker.checkpointer import Checkpointer
from bolide.broker.diversions import Diversions
from bolide.broker.door import Door
from bolide.broker.identity import Identity
from bolide.broker.live_settings import LiveSettings
from bolide.broker.membership import Membership
from bolide.broker.new_topics import NewTopics
from bolide.broker.statistics import BrokerStatistics
from bolide.broker.table_files import TableFiles
from bolide.broker.topic_remover import TopicRemover
from bolide.broker.waited_for import WaitedFor
from bolide.machines.clients import ClientTable
from bolide.machines.locks import QueueLocks
from bolide.machines.traffic import Traffic
from bolide.machines.writers import Writers
from bolide.model.clock import Clock
from bolide.net.dispatch import Dispatcher
from bolide.net.guard import Passes
from bolide.net.large_answers import LargeAnswers
from bolide.net.link import Link
from bolide.net.surroundings import Surroundings
from bolide.record.message_id import UniqueIds
from bolide.store.disk import Disk
from bolide.store.store import MessageStore
from bolide.store.tables import GroupTable, OffsetTable, TopicTable


@dataclass
class BrokerState:
    identity: Identity
    settings: LiveSettings
    surroundings: Surroundings
    disk: Disk
    root: str
    store: MessageStore
    door: Door
    waited_for: WaitedFor
    checkpointer: Checkpointer
    remover: TopicRemover
    topics: TopicTable
    groups: GroupTable
    offsets: OffsetTable
    files: TableFiles
    new_topics: NewTopics
    clients: ClientTable[Link]
    membership: Membership
    dispatcher: Dispatcher
    passes: Passes
    traffic: Traffic
    statistics: BrokerStatistics
    started_ms: int
    unique_ids: UniqueIds
    diversions: Diversions = field(default_factory=Diversions)
    locks: QueueLocks = field(default_factory=QueueLocks)
    writers: Writers[Link] = field(default_factory=Writers)
    large_answers: LargeAnswers = field(default_factory=LargeAnswers)
    kept_from: list[Callable[[], int | None]] = field(default_factory=list)
    """Where in the log each part has its oldest message that still waits for something: none goes for its age."""
    figures: list[Callable[[], Mapping[str, str]]] = field(default_factory=list)
    """What each part tells operators."""

    @property
    def clock(self) -> Clock:
        return self.surroundings.clock

    def may_wait_for(self, topic: str) -> bool:
        """Whether a message may wait for its time, and then go to this topic."""
        places = [place for oldest_waiting in self.kept_from if (place := oldest_waiting()) is not None]
        return self.waited_for.has(topic, min(places, default=None))

    @property
    def recent_bytes(self) -> int:
        """So much of the log's end counts as being in memory."""
        return self.surroundings.memory_bytes * self.settings.now.memory_ratio // 100

    async def known_everywhere(self) -> None:
        """Wait until topics.json and the name servers that work know our topics as they are now.

        `StoreUnavailable` when the file cannot be written: the topics are served as they are, and told of."""
        try:
            await self.files.saved(self.topics)
        finally:
            await self.membership.settled()
