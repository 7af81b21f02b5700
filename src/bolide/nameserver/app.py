"""NameServer: the running thing.  Builds its parts, listens, and forgets brokers that are gone.

Life of a registration: `Server` -> `Dispatcher` -> `handlers.brokers.register` -> `Changes` -> `RouteTable`.  It ends
with UNREGISTER_BROKER, with the connection that carried it (`on_close`), or by silence (`_scan`).
"""

import asyncio
import logging
import os
from collections.abc import Mapping

from bolide.machines.routes import RouteTable
from bolide.nameserver.config import NameServerConfig
from bolide.nameserver.kv import KvTable
from bolide.nameserver.registry import registry
from bolide.nameserver.state import NameServerState
from bolide.net.dispatch import Dispatcher
from bolide.net.link import Link
from bolide.net.server import Server
from bolide.net.surroundings import Surroundings
from bolide.store.disk import Disk
from bolide.store.disk_os import OsDisk
from bolide.wire.command import Command

log = logging.getLogger(__name__)


class NameServer:
    """`start`, then `port` tells where; `stop` closes everything."""

    def __init__(
        self,
        config: NameServerConfig | None = None,
        *,
        surroundings: Surroundings | None = None,
        disk: Disk | None = None,
    ) -> None:
        config = NameServerConfig() if config is None else config
        surroundings = surroundings or Surroundings()
        self._clock = surroundings.clock
        self._disk: Disk = OsDisk() if disk is None else disk
        self._scan_timer: asyncio.TimerHandle | None = None
        path = config.kv_config_path
        self._thread = surroundings.threads("bolide-settings")
        self._state = NameServerState(
            config=config,
            routes=RouteTable(),
            kv=KvTable(self._disk, os.path.abspath(path) if path else None, self._thread),
            clock=self._clock,
            started_ms=self._clock.monotonic_ms(),
        )
        self._dispatcher = Dispatcher(registry(self._state))
        self._server = Server(self, self._clock)
        self._stopping = False
        self.port = 0

    @property
    def config(self) -> NameServerConfig:
        """What it runs with now."""
        return self._state.config

    def change(self, settings: Mapping[str, str]) -> None:
        """Change live settings, as request 318 does."""
        self._state.config = self._state.config.changed(settings)

    async def start(self) -> None:
        """Listen; `ConfigError` says why not."""
        self.port = await self._server.start(self.config.host, self.config.port)
        self._state.started_ms = self._clock.monotonic_ms()
        self._arm_scan()
        log.info("the name server listens on %s:%d", self.config.host, self.port)

    async def stop(self) -> None:
        self._stopping = True
        if self._scan_timer is not None:
            self._scan_timer.cancel()
            self._scan_timer = None
        await self._server.close()
        await self._dispatcher.close()
        self._state.changes.close()
        self._state.tidying.close()
        self._thread.shutdown(wait=True)

    # ---- Service -------------------------------------------------------------------------------------------

    def on_open(self, link: Link) -> None:
        pass

    def on_request(self, link: Link, request: Command) -> None:
        self._dispatcher.on_request(link, request)

    def on_close(self, link: Link) -> None:
        names = self._state.routes.connection_lost(link)
        if not names or self._stopping:
            return
        self._state.tidying.go()
        for name in names:
            text = "broker %.255r is gone: its connection from %s closed"
            self._state.comings.say(log, logging.WARNING, link.remote, text, name, link.remote)

    # ---- silence -------------------------------------------------------------------------------------------

    def _arm_scan(self) -> None:
        delay = self.config.scan_interval_ms / 1000
        self._scan_timer = asyncio.get_running_loop().call_later(delay, self._scan)

    def _scan(self) -> None:
        self._arm_scan()
        for connection in self._state.routes.expire(self._clock.monotonic_ms()):
            assert isinstance(connection, Link)
            log.warning("the broker at the other end of %s has been silent for too long", connection.remote)
            connection.close()
        self._state.tidying.go()
