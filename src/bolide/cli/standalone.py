"""Standalone: a name server and a broker in one process, on one event loop.  What `bolide up` runs.

The data directory is the broker's store directory, laid out as the original lays it out, so that `--data` may point at
the store of an Apache broker; the name server keeps its small file in `namesrv/` beside it.
"""

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from bolide.broker.app import Broker
from bolide.broker.config import BrokerConfig
from bolide.model.errors import ConfigError
from bolide.nameserver.app import NameServer
from bolide.nameserver.config import NameServerConfig
from bolide.net.surroundings import Surroundings
from bolide.store.progress import Progress

LOOPBACK = "127.0.0.1"
ELSEWHERE = "choose another place (--data, storePathRootDir)"
LOCAL_OF_ALL = {"0.0.0.0": LOOPBACK, "": LOOPBACK, "::": "::1"}
"""How a server that listens on all addresses is reached from its own machine."""

STARTING_S_MAX = 86_400
"""A recovery may take long, and the name server waits for its broker."""

REGISTERED_MS_MAX = 30_000
"""For the broker to register with the name server beside it."""


class Standalone:
    """`start`, then `nameserver` and `broker` are addresses; `failed` returns when the disk can't be trusted."""

    def __init__(
        self,
        *,
        data: Path,
        host: str = LOOPBACK,
        nameserver_port: int = 9876,
        broker_port: int = 10911,
        settings: Mapping[str, str] | None = None,
        surroundings: Surroundings | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Raises `ConfigError` for settings that are wrong; ports may be 0 for free ones."""
        self._surroundings = surroundings or Surroundings()
        self._progress = progress
        self._host = host
        given = {"storePathRootDir": str(data), "bindAddress": host, "listenPort": str(broker_port)}
        self._config = BrokerConfig.from_settings(given | dict(settings or {}))
        self.data = Path(self._config.root).expanduser()
        self._nameserver_port = nameserver_port
        self._nameserver: NameServer | None = None
        self._broker: Broker | None = None
        self.nameserver = ""
        self.broker = ""

    async def start(self) -> None:
        """Returns when a client that knows `nameserver` can send; stops what did start when the rest does not.

        Until then the name server tells nobody that there is no such topic: it only has not heard of it yet.
        """
        config = NameServerConfig(
            host=self._host,
            port=self._nameserver_port,
            kv_config_path=str(self.data / "namesrv" / "kvConfig.json"),
            need_wait_for_service=True,
            wait_seconds_for_service=STARTING_S_MAX,
        )
        self._nameserver = names = NameServer(config, surroundings=self._surroundings)
        await names.start()
        try:
            own = join_address(LOCAL_OF_ALL.get(self._host, self._host), names.port)
            nameservers = ";".join(filter(None, (own, self._config.nameservers)))
            self._broker = Broker(
                dataclasses.replace(self._config, nameservers=nameservers),
                surroundings=self._surroundings,
                progress=self._progress,
            )
            await self._broker.start()
            try:
                await self._broker.state.membership.registered_with(own, REGISTERED_MS_MAX)
            except BaseException:
                await self._broker.stop()
                raise
        except BaseException:
            await names.stop()
            raise
        usual = NameServerConfig().as_settings()
        names.change({key: usual[key] for key in ("needWaitForService", "waitSecondsForService")})
        self.broker = self._broker.address
        self.nameserver = join_address(self._broker.host, names.port)

    async def stop(self) -> None:
        try:
            if self._broker is not None:
                await self._broker.stop()
        finally:
            if self._nameserver is not None:
                await self._nameserver.stop()

    async def failed(self) -> BaseException:
        """The reason why the store can no longer be trusted; does not return while all is well."""
        assert self._broker is not None
        return await self._broker.failed()


def join_address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_directory(data: Path) -> Path:
    """`ConfigError` says why data cannot be kept there.  It is made by the store, when that is sure to start.

    Returns the directory itself, or the nearest one above it that is there already.
    """
    there = next(place for place in (data.absolute(), *data.absolute().parents) if os.path.lexists(place))
    if there.exists() and not there.is_dir():
        raise ConfigError(f"cannot use {data} for data: {there} is a file; {ELSEWHERE}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"cannot use {data} for data: {there} is not writable by this user; {ELSEWHERE}")
    return there
