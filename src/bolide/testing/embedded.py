"""EmbeddedServer: the name server and broker of `bolide up`, on free ports, inside the process of a test.

    with EmbeddedServer() as server:
        with Producer(server.nameserver, group="tests") as producer:
            producer.send(Message("orders", b"..."))

Nothing is simulated: real sockets, real files, small segments so that starting and disk cost little.  The blocking one
runs on an event loop in a thread of its own, so tests may be blocking or bring a loop of their own.
"""

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from bolide.cli.standalone import LOOPBACK, Standalone
from bolide.model.errors import BolideError
from bolide.net.clock import SystemClock
from bolide.store.progress import Interruptible, LoggedProgress

T = TypeVar("T")

TEST_SETTINGS: Mapping[str, str] = {
    "mappedFileSizeCommitLog": str(16 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": str(20 * 10_000),
    "maxHashSlotNum": "50000",
    "maxIndexNum": "200000",
    "flushConsumerOffsetInterval": "500",
    "diskMaxUsedSpaceRatio": "95",
    "diskSpaceWarningLevelRatio": "100",
    "cleanFileForciblyEnable": "false",
}
"""Small files, offsets written often, and no care for how full a developer's disk is; `settings` given to a server
win over these."""

CALL_SECONDS = 60


class AsyncEmbeddedServer:
    """The same on the caller's event loop: `async with AsyncEmbeddedServer() as server`.

    Args:
        settings: broker settings under the original's keys, for example `{"autoCreateTopicEnable": False}`.
        data_dir: where messages are kept; a directory that is removed at the end unless one is given.
        nameserver_port, broker_port: free ones unless given.

    `stop` and `start` keep the ports and the data, so that clients find the server again after a restart.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str | int] | None = None,
        data_dir: str | Path | None = None,
        nameserver_port: int = 0,
        broker_port: int = 0,
    ) -> None:
        given = {key: str(value) for key, value in (settings or {}).items()}
        self._settings = {**TEST_SETTINGS, **given}
        self._ports = (nameserver_port, broker_port)
        self._own = tempfile.TemporaryDirectory(prefix="bolide-") if data_dir is None else None
        self.data_dir = Path(self._own.name if self._own is not None else str(data_dir))
        self._server: Standalone | None = None
        self._addresses = ("", "")
        self._recovery: Interruptible | None = None

    @property
    def nameserver(self) -> str:
        """What clients want: `127.0.0.1:port`."""
        return self._addresses[0]

    @property
    def broker(self) -> str:
        """The broker's own address."""
        return self._addresses[1]

    @property
    def is_running(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        """Returns when the server serves."""
        if self._server is not None:
            raise BolideError("the embedded server is running already")
        nameserver_port, broker_port = self._ports
        self._recovery = Interruptible(LoggedProgress(SystemClock()))
        server = Standalone(
            data=self.data_dir,
            host=LOOPBACK,
            nameserver_port=nameserver_port,
            broker_port=broker_port,
            settings=self._settings,
            progress=self._recovery,
        )
        await server.start()
        self._server = server
        self._addresses = (server.nameserver, server.broker)
        self._ports = (_port_of(server.nameserver), _port_of(server.broker))

    def interrupt(self) -> None:
        """End a `start` that is still recovering, from another thread: it raises `RecoveryInterrupted`."""
        if self._recovery is not None:
            self._recovery.interrupt()

    async def stop(self) -> None:
        """Stop in order, as `bolide up` does on Ctrl-C.  Stopping twice is fine."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    async def close(self) -> None:
        """Stop, and remove the data unless its directory was given."""
        try:
            await self.stop()
        finally:
            if self._own is not None:
                self._own.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class EmbeddedServer:
    """`with EmbeddedServer() as server`, then `server.nameserver` is the address for clients.

    Takes what `AsyncEmbeddedServer` takes.  Without `with`: `start()` and, in the end, `close()`.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str | int] | None = None,
        data_dir: str | Path | None = None,
        nameserver_port: int = 0,
        broker_port: int = 0,
    ) -> None:
        self._inner = AsyncEmbeddedServer(
            settings=settings, data_dir=data_dir, nameserver_port=nameserver_port, broker_port=broker_port
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def nameserver(self) -> str:
        """What clients want: `127.0.0.1:port`."""
        return self._inner.nameserver

    @property
    def broker(self) -> str:
        """The broker's own address."""
        return self._inner.broker

    @property
    def data_dir(self) -> Path:
        return self._inner.data_dir

    @property
    def is_running(self) -> bool:
        return self._inner.is_running

    def start(self) -> None:
        """Returns when the server serves.  After `stop` it comes back on the same ports with the same data."""
        self._call(self._inner.start())

    def stop(self) -> None:
        """Stop in order, as `bolide up` does on Ctrl-C.  Stopping twice is fine."""
        if self._inner.is_running:
            self._call(self._inner.stop())

    def close(self) -> None:
        """Stop, end the thread, and remove the data unless its directory was given."""
        loop, thread = self._loop, self._thread
        self._inner.interrupt()  # nobody waits for a start any more
        try:
            self._call(self._inner.close())
        finally:
            self._loop = self._thread = None
            if loop is not None and thread is not None:
                loop.call_soon_threadsafe(loop.stop)
                thread.join(CALL_SECONDS)
                loop.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the server's loop and wait; errors come out here."""
        if self._loop is None:
            self._loop = _new_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="bolide-server", daemon=True)
            self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_SECONDS)


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])
