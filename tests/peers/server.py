"""What a test may do with any server, Apache's or ours: start, stop, kill and start again its parts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.peers import frames
from tests.peers.ports import free_broker_port, free_port
from tests.peers.process import ManagedProcess
from tests.peers.waiting import PATIENCE_SECONDS

CLUSTER = "DefaultCluster"
HOST = "127.0.0.1"
READY_SECONDS = PATIENCE_SECONDS


class ServerKind(ABC):
    """How to run one kind of server; everything else is the same for all kinds."""

    name: str

    @abstractmethod
    def launch_nameserver(self, home: Path, port: int) -> ManagedProcess: ...

    @abstractmethod
    def launch_broker(self, home: Path, config: Path, name: str) -> ManagedProcess: ...

    @abstractmethod
    def launch_together(
        self, home: Path, nameserver_port: int, broker_port: int, settings: Mapping[str, str]
    ) -> list[ManagedProcess]:
        """A name server and one broker, the shortest way this kind offers."""

    def broker_settings(self, store: Path) -> dict[str, str]:
        """Where this kind wants to be told its store directory."""
        return {"storePathRootDir": str(store)}


@dataclass
class NameServer:
    """One name server on a fixed port, which may be down."""

    kind: ServerKind
    home: Path
    port: int = field(default_factory=free_port)
    process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self) -> "NameServer":
        self.process = self.kind.launch_nameserver(self.home, self.port)
        self.process.wait_ready(lambda: frames.answers(self.address), READY_SECONDS)
        return self

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process = None


@dataclass
class Broker:
    """One broker with its own store, which survives stops, kills and starts."""

    kind: ServerKind
    home: Path
    name: str
    nameservers: Sequence[NameServer]
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_broker_port)
    process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def start(self) -> "Broker":
        """Start, and wait until every name server that is up knows this broker."""
        self.launch().wait_ready(self._registered, READY_SECONDS)
        return self

    def launch(self) -> ManagedProcess:
        """Start without waiting for anything."""
        config = self.home / "broker.conf"
        self.home.mkdir(parents=True, exist_ok=True)
        values = broker_config(self.name, self.port, [ns.address for ns in self.nameservers])
        values |= self.kind.broker_settings(self.home / "store") | dict(self.settings)
        config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        self.process = self.kind.launch_broker(self.home, config, self.name)
        return self.process

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process = None

    def _registered(self) -> bool:
        up = [ns.address for ns in self.nameservers if ns.process is not None]
        return frames.answers(self.address) and all(frames.knows_broker(address, self.name) for address in up)


@dataclass
class Together:
    """A name server and a broker as one thing, the way most tests and the benchmark want them."""

    kind: ServerKind
    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    nameserver_port: int = field(default_factory=free_port)
    broker_port: int = field(default_factory=free_broker_port)
    processes: list[ManagedProcess] = field(default_factory=list)

    @property
    def nameserver(self) -> str:
        return f"{HOST}:{self.nameserver_port}"

    @property
    def broker(self) -> str:
        return f"{HOST}:{self.broker_port}"

    def launch(self) -> "Together":
        """Start without waiting for anything."""
        self.processes = self.kind.launch_together(
            self.home, self.nameserver_port, self.broker_port, self.settings
        )
        return self

    def start(self) -> "Together":
        self.launch().processes[-1].wait_ready(
            lambda: frames.try_send(self.nameserver, self.broker, "started"), READY_SECONDS
        )
        return self

    def stop(self) -> None:
        while self.processes:
            self.processes.pop().stop()

    def kill(self) -> None:
        while self.processes:
            self.processes.pop().kill()

    def cpu_seconds(self) -> float:
        return sum(process.cpu_seconds() for process in self.processes)

    def rss_anon_bytes(self) -> int:
        return sum(process.rss_anon_bytes() for process in self.processes)


def broker_config(name: str, port: int, nameservers: Sequence[str]) -> dict[str, str]:
    """The original's broker.conf keys that every broker under test gets."""
    return {
        "brokerName": name,
        "brokerClusterName": CLUSTER,
        "brokerId": "0",
        "brokerIP1": HOST,
        "listenPort": str(port),
        "namesrvAddr": ";".join(nameservers),
        "flushDiskType": "ASYNC_FLUSH",
        "autoCreateTopicEnable": "true",
        "registerNameServerPeriod": "10000",
    }
