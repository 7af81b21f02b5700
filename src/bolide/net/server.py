"""Server: listening sockets, and the links that came in through them."""

import asyncio
import errno
import logging
import resource
import sys
from collections import deque

from bolide.model.clock import Clock
from bolide.model.errors import ConfigError
from bolide.model.limits import CONNECTIONS_MAX, IDLE_MS_MAX
from bolide.net.commons import Commons
from bolide.net.link import Link
from bolide.net.service import HotService, Service
from bolide.net.turns import Slices
from bolide.wire.command import Command

log = logging.getLogger(__name__)

SWEEP_MS = 10_000
BACKLOG = 1024
LOOKED_AT_PER_TURN = 1024
CLOSED_PER_TURN = 64

DESCRIPTORS_KEPT = 768
"""Descriptors that no connection takes: without one to open a file with, a store can neither be written nor synced."""


class Server:
    """Accepts connections for a service.  Closes those that bring nothing, or do not read, for two minutes."""

    def __init__(
        self,
        service: Service,
        clock: Clock,
        *,
        hot: HotService | None = None,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._service = service
        self._clock = clock
        self._hot = hot
        self._connections_max = connections_max
        self._commons = Commons(clock, serves=True)
        self._listeners: list[asyncio.Server] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._swept: deque[Link] = deque()  # connections that this sweep has yet to look at
        self._sweeping = Slices(self._look_at_some)
        self._descriptors_max = 0
        self._refuses = False
        self.links: dict[Link, None] = {}  # in the order in which they came

    async def start(self, host: str, port: int) -> int:
        """Listen on one more port (0 takes a free one); returns the port."""
        loop = asyncio.get_running_loop()
        self._descriptors_max = _descriptors_for_connections()
        try:
            listener = await loop.create_server(self._accept, host, port, backlog=BACKLOG)
        except OSError as error:
            raise ConfigError(_cannot_listen(host, port, error)) from error
        self._listeners.append(listener)
        if self._sweep is None:
            self._sweep = loop.call_later(SWEEP_MS / 1000, self._close_idle)
        bound: int = listener.sockets[0].getsockname()[1]
        return bound

    @property
    def kept_bytes(self) -> int:
        """What is kept for all connections together: beginnings of frames, unread answers, waiting requests."""
        return self._commons.kept_bytes

    def figures(self) -> dict[str, str]:
        """For operators."""
        return {"connections": str(len(self.links)), "connectionsKeptBytes": str(self.kept_bytes)}

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweeping.close()
        self._commons.large_frames.close()
        for listener in self._listeners:
            listener.close()
        for link in list(self.links):
            link.close()

    def _accept(self) -> Link:
        return Link(self._commons, self, hot=self._hot)

    def _close_idle(self) -> None:
        self._swept = deque(self.links)
        self._sweeping.go()
        self._sweep = asyncio.get_running_loop().call_later(SWEEP_MS / 1000, self._close_idle)

    def _look_at_some(self) -> bool:
        now_ms = self._clock.monotonic_ms()
        closed = 0
        for _ in range(min(LOOKED_AT_PER_TURN, len(self._swept))):
            link = self._swept.popleft()
            if link.is_open and link.idle_ms(now_ms) > IDLE_MS_MAX:
                self._commons.provoked.say(
                    log, logging.INFO, link.remote, "closing the idle connection of %s", link.remote
                )
                link.abort()  # who does not read lets nothing through, and would stay for ever
                closed += 1
                if closed == CLOSED_PER_TURN:
                    break
        return bool(self._swept)

    # ---- Service: the server stands between its links and the service to know them all ---------------------

    def on_open(self, link: Link) -> None:
        if not link.remote_host:  # reset before it was accepted; a message of it would come from nowhere
            link.abort()
            return
        if len(self.links) >= self._connections_max or link.descriptor >= self._descriptors_max:
            if not self._refuses:  # said when it begins: who is refused may try again all the time
                log.warning("refusing %s and others: %d connections are open", link.remote, len(self.links))
            self._refuses = True
            link.close()
            return
        self._refuses = False
        self.links[link] = None
        self._service.on_open(link)

    def on_request(self, link: Link, request: Command) -> None:
        self._service.on_request(link, request)

    def on_close(self, link: Link) -> None:
        if link in self.links:
            del self.links[link]
            self._service.on_close(link)


def _descriptors_for_connections() -> int:
    """The system gives the lowest descriptor that is free, so a low one says that there are many more."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit - min(DESCRIPTORS_KEPT, limit // 2)


def _cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} on {host or 'all addresses'} is already in use;"
            " stop what uses it (another bolide?) or choose another port"
        )
    if error.errno == errno.EACCES:
        return f"port {port} may not be used by this user; choose one above 1023"
    return f"cannot listen on {host}:{port}: {error.strerror or error}"
