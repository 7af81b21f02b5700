"""A broker without sockets: real tables, real store, real machines, and links that only remember."""

from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bolide.broker.cleaner import Cleaner
from bolide.broker.config import BrokerConfig
from bolide.broker.handlers import cleaning, group, offset, query, runtime, settings, topic
from bolide.machines.clients import ClientTable
from bolide.machines.locks import QueueLocks
from bolide.machines.traffic import Traffic
from bolide.model.data_version import DataVersion
from bolide.model.topic import Permission, TopicConfig
from bolide.net.link import Link
from bolide.rules.built_in_topics import built_in_topics
from bolide.store.disk_os import OsDisk
from bolide.store.store import MessageStore, NewMessage, StoreOptions
from bolide.store.tables import GroupTable, OffsetTable, TopicTable
from bolide.wire.command import Command

if TYPE_CHECKING:
    from bolide.broker.app import Broker

HANDLERS: dict[int, Any] = {
    int(code): handler
    for family in (cleaning, group, offset, query, runtime, settings, topic)
    for code, handler in cast(dict[Any, Any], family.HANDLERS).items()
}
HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


class SetClock:
    """Stands still until told otherwise."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


class QuietLink:
    """A connection that remembers what it was told."""

    def __init__(self, remote: str) -> None:
        self.remote = remote
        self.is_open = True
        self.is_congested = False
        self.notices: list[str] = []

    def notify(self, request: Command) -> None:
        assert request.code == 40
        self.notices.append(request.fields["consumerGroup"])

    def close(self) -> None:
        self.is_open = False


class Done:
    """What nobody has to wait for."""

    def __await__(self) -> Iterator[None]:
        return iter(())


class DirectRemover:
    """Deletes topics without a thread."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def delete(self, topic: str) -> Done:
        self._store.delete_topic(topic)
        return Done()


class Desk:
    """Ask it as a client would; `ask` gives the answer or raises what the dispatcher would turn into one."""

    def __init__(self, folder: Path) -> None:
        self.clock = SetClock()
        disk, config_folder = OsDisk(), folder / "config"
        options = StoreOptions(
            root=str(folder),
            store_host=HOST,
            properties_suffix=b"",
            body_bytes_max=1024,
            segment_bytes=1024 * 1024,
            queue_file_bytes=20 * 1000,
        )
        self.store = MessageStore(disk, options, self.clock)
        self.store.open()
        self.topic_remover = DirectRemover(self.store)
        self.config = BrokerConfig()
        self.recent_bytes = 1024 * 1024
        self.cleaner = Cleaner(
            self.store, disk, str(folder), lambda: self.config, self.clock, self._checkpoint
        )
        self.topics = TopicTable(disk, str(config_folder / "topics.json"), self.clock)
        self.groups = GroupTable(disk, str(config_folder / "subscriptionGroup.json"), self.clock)
        self.offsets = OffsetTable(disk, str(config_folder / "consumerOffset.json"), self.clock)
        self.topics.add_missing(built_in_topics("DefaultCluster", "broker-a", auto_create=True))
        self.groups.add_built_in()
        self.clients: ClientTable[Link] = ClientTable(self._wants_notice)
        self.locks = QueueLocks()
        self.traffic = Traffic()
        self.address = "127.0.0.1:10911"
        self.started_ms = self.clock.now_ms()
        self.config_version = DataVersion()
        self.registrations = 0
        self.links: dict[str, QuietLink] = {}

    @property
    def broker(self) -> "Broker":
        return cast("Broker", self)

    # ---- what handlers call

    def reconfigure(self, config: BrokerConfig) -> None:
        self.config = config

    async def registered(self) -> None:
        self.registrations += 1

    async def _checkpoint(self) -> None:
        pass

    def _wants_notice(self, group: str) -> bool:
        config = self.groups.get(group)
        return config is None or config.notify_consumer_ids_changed_enable

    # ---- what tests do

    def link(self, name: str) -> QuietLink:
        return self.links.setdefault(name, QuietLink(name))

    def ask(self, code: int, body: bytes = b"", *, by: str = "10.0.0.1:5000", **fields: object) -> Command:
        texts = {name: _text(value) for name, value in fields.items()}
        request = Command(code, texts, body, language="JAVA", version=493)
        outcome: Command | Awaitable[Command] = HANDLERS[code](self.broker, self.link(by), request)
        if isinstance(outcome, Command):
            return outcome
        return _result(outcome)

    def write(self, topic: str, queue_id: int, count: int = 1) -> list[int]:
        """Store messages; returns their places in the log."""
        message = NewMessage(topic, queue_id, b"body", b"", 0, 0, self.clock.ms, HOST)
        return [one.log_offset for _ in range(count) for one in self.store.append([message])]

    def topic(self, name: str, queues: int = 4, perm: int = Permission.READ_WRITE) -> None:
        self.topics.put(TopicConfig(name, queues, queues, perm))

    def close(self) -> None:
        self.store.close()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _result(outcome: Awaitable[Command]) -> Command:
    """Run a coroutine that waits for nothing to its end."""
    try:
        next(outcome.__await__())
    except StopIteration as stop:
        return cast(Command, stop.value)
    raise AssertionError("the handler waits for something")
