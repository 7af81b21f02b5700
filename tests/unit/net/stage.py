"""A server on a free port with handlers of a test's choice, and bare connections to it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from bolide.model.clock import Clock
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.net.clock import SystemClock
from bolide.net.dispatch import Dispatcher
from bolide.net.link import Link
from bolide.net.registry import Handler, Registry, Row
from bolide.net.server import Server
from bolide.net.service import HotService
from bolide.wire.codes import Need
from bolide.wire.command import Command, encode_frame
from bolide.wire.frame import FrameReader, Intake

DEADLINE_S = 10.0


class AnyCodes(Registry):
    """Takes handlers for numbers that no real request has."""

    def __init__(self, handlers: Mapping[int, Handler]) -> None:
        super().__init__()
        self._rows |= {code: Row(Need.NOTHING, handler) for code, handler in handlers.items()}


class Bench:
    """A service that writes down what happens to it and answers with a table of handlers."""

    def __init__(self, handlers: Mapping[int, Any]) -> None:
        self.dispatcher = Dispatcher(AnyCodes(handlers))
        self.opened: list[Link] = []
        self.closed: list[Link] = []

    def on_open(self, link: Link) -> None:
        self.opened.append(link)

    def on_request(self, link: Link, request: Command) -> None:
        self.dispatcher.on_request(link, request)

    def on_close(self, link: Link) -> None:
        self.closed.append(link)


@asynccontextmanager
async def serving(
    handlers: Mapping[int, Any],
    *,
    clock: Clock | None = None,
    hot: HotService | None = None,
    connections_max: int = 1000,
) -> AsyncIterator[tuple[Bench, Server, str]]:
    bench = Bench(handlers)
    server = Server(bench, clock or SystemClock(), hot=hot, connections_max=connections_max)
    port = await server.start("127.0.0.1", 0)
    try:
        yield bench, server, f"127.0.0.1:{port}"
    finally:
        await server.close()
        await bench.dispatcher.close()


class Wire:
    """One connection, spoken to in bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._frames = FrameReader(Intake(65536), header_bytes_max=FRAME_BYTES_MAX)
        self._items: list[Any] = []

    @classmethod
    async def connect(cls, address: str, *, by: str | None = None) -> "Wire":
        """`by` is the address that it comes from."""
        host, _, port = address.rpartition(":")
        local = None if by is None else (by, 0)
        return cls(*await asyncio.open_connection(host, int(port), local_addr=local))

    def send(self, *commands: Command | bytes) -> None:
        self.writer.write(b"".join(c if isinstance(c, bytes) else encode_frame(c) for c in commands))

    async def next(self) -> Command:
        async with asyncio.timeout(DEADLINE_S):
            while not self._items:
                data = await self.reader.read(1 << 20)
                if not data:
                    raise ConnectionError("closed by the other side")
                self._items += self._frames.feed(data)
        item: Command = self._items.pop(0)
        return item

    async def ask(self, command: Command) -> Command:
        self.send(command)
        return await self.next()

    async def closed(self) -> bool:
        """Whether the other side has closed the connection, after whatever it still sends."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                while await self.reader.read(1 << 20):
                    pass
            except ConnectionError:
                pass
            return True

    def close(self) -> None:
        self.writer.close()


async def eventually(check: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(DEADLINE_S):
        while not check():
            await pause()


async def pause(seconds: float = 0.005) -> None:
    """Give the loop and the kernel a moment."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_later(seconds, done.set_result, None)
    await done


async def next_turn() -> None:
    """Let the loop go round once."""
    await asyncio.sleep(0)  # noqa: TID251
