"""A broker that is asked without sockets: everything is real but the clock and the connections, which only remember."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar, cast

from bolide.broker.app import Broker
from bolide.broker.config import BrokerConfig
from bolide.broker.handlers.client import Clients
from bolide.broker.part import Part
from bolide.model.topic import Permission, TopicConfig
from bolide.net.budget import Budget
from bolide.net.link import Link
from bolide.net.surroundings import Surroundings
from bolide.store.new_message import NewMessage
from bolide.wire.command import Command
from tests.unit.net.stage import eventually

HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"

P = TypeVar("P", bound=Part)
T = TypeVar("T")


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
        self.waited_ms = 0
        self.account = Budget().open(cast(Link, self))
        self.notices: list[str] = []

    def notify(self, request: Command) -> None:
        assert request.code == 40
        self.notices.append(request.fields["consumerGroup"])

    def close(self) -> None:
        self.is_open = False


class Desk:
    """Ask it as a client would; `ask` gives the answer or raises what the dispatcher would turn into one."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self.clock = SetClock()
        settings = {
            "storePathRootDir": str(folder),
            "listenPort": "0",
            "bindAddress": "127.0.0.1",
            "maxMessageSize": "1024",
            "mappedFileSizeCommitLog": str(1024 * 1024),
            "mappedFileSizeConsumeQueue": str(20 * 1000),
            "maxHashSlotNum": "1000",
            "maxIndexNum": "4000",
        }
        surroundings = Surroundings(self.clock, memory_bytes=4 * 1024 * 1024)
        self.broker = Broker(BrokerConfig.from_settings(settings), surroundings)
        self.run(self.broker.start())
        self.state = self.broker.state
        self.topics, self.groups, self.offsets = self.state.topics, self.state.groups, self.state.offsets
        self.clients, self.traffic, self.store = self.state.clients, self.state.traffic, self.state.store
        self.links: dict[str, QuietLink] = {}
        self.registrations = 0
        self.state.membership.settled = self._count_registration  # type: ignore[method-assign]

    @property
    def config(self) -> BrokerConfig:
        return self.state.settings.now

    def part(self, kind: type[P]) -> P:
        return self.broker.part(kind)

    def link(self, name: str) -> QuietLink:
        return self.links.setdefault(name, QuietLink(name))

    def lose(self, name: str) -> None:
        """The connection closes."""
        self.broker.on_close(cast(Link, self.link(name)))

    def settle(self) -> None:
        """Until everybody was told what has happened."""
        notices = self.part(Clients)._notices
        self.run(eventually(lambda: notices._next_round is None))

    def change(self, **settings: str) -> None:
        self.state.settings.change(settings)

    def ask(self, code: int, body: bytes = b"", *, by: str = "10.0.0.1:5000", **fields: object) -> Command:
        return self.run(self.asked(code, body, by=by, **fields))

    async def asked(
        self, code: int, body: bytes = b"", *, by: str = "10.0.0.1:5000", **fields: object
    ) -> Command:
        """`ask`, for who is on the loop already."""
        texts = {name: _text(value) for name, value in fields.items()}
        request = Command(code, texts, body, language="JAVA", version=493)
        return await self._ask(self.link(by), request)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    def write(self, topic: str, queue_id: int, count: int = 1) -> list[int]:
        """Store messages; returns their places in the log."""
        message = NewMessage(topic, queue_id, b"body", b"", 0, 0, self.clock.ms, HOST)
        return [one.log_offset for _ in range(count) for one in self.store.append([message])]

    def topic(self, name: str, queues: int = 4, perm: int = Permission.READ_WRITE) -> None:
        self.topics.put(TopicConfig(name, queues, queues, perm))

    def close(self) -> None:
        self.run(self.broker.stop())
        self._loop.close()

    async def _ask(self, link: QuietLink, request: Command) -> Command:
        row = self.broker.registry.find(request.code)
        assert row is not None
        outcome = row.handler(cast(Link, link), request)
        answer = outcome if isinstance(outcome, Command) or outcome is None else await outcome
        assert answer is not None
        return answer

    async def _count_registration(self) -> None:
        self.registrations += 1


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
