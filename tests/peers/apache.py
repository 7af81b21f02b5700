"""Real Apache RocketMQ servers of one version, each a JVM with a home directory of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.peers import frames, java
from tests.peers.process import ManagedProcess
from tests.peers.server import HOST, READY_SECONDS, ServerKind, broker_config

NAMESRV_MAIN = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER_MAIN = "org.apache.rocketmq.broker.BrokerStartup"

TEST_FLAGS = ("-Xms256m", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", *java.QUICK_START)
BENCH_FLAGS = (
    *("-Xms2g", "-Xmx2g", "-XX:MaxDirectMemorySize=4g", "-XX:+UseG1GC"),
    *("-XX:G1HeapRegionSize=16m", "-XX:G1ReservePercent=25"),
    *("-XX:InitiatingHeapOccupancyPercent=30", "-XX:-OmitStackTraceInFastThrow"),
)
PATIENT = {
    "waitTimeMillsInSendQueue": "60000",
    "waitTimeMillsInPullQueue": "60000",
    "waitTimeMillsInHeartbeatQueue": "60000",
    "osPageCacheBusyTimeOutMills": "60000",
}
"""On a busy machine a broker under test answers late instead of refusing (SYSTEM_BUSY); a measured one may refuse."""
CAPABLE = {"enablePropertyFilter": "true"}
"""What the original leaves to its operator and bolide has from the start."""


@dataclass(frozen=True)
class Apache(ServerKind):
    """How to run the original."""

    version: str = java.LATEST
    flags: Sequence[str] = TEST_FLAGS
    name: str = "apache"

    def launch_nameserver(self, home: Path, port: int) -> ManagedProcess:
        home.mkdir(parents=True, exist_ok=True)
        config = home / "namesrv.conf"
        config.write_text(f"listenPort={port}\n")
        return self._launch("name server", NAMESRV_MAIN, home, config)

    def launch_broker(self, home: Path, config: Path, name: str) -> ManagedProcess:
        return self._launch(f"broker {name}", BROKER_MAIN, home, config)

    def launch_together(
        self, home: Path, nameserver_port: int, broker_port: int, settings: Mapping[str, str]
    ) -> list[ManagedProcess]:
        nameserver = self.launch_nameserver(home / "namesrv", nameserver_port)
        address = f"{HOST}:{nameserver_port}"
        nameserver.wait_ready(lambda: frames.answers(address), READY_SECONDS)
        broker_home = home / "broker"
        broker_home.mkdir(parents=True, exist_ok=True)
        values = broker_config("broker-a", broker_port, [address])
        values |= self.broker_settings(broker_home / "store") | dict(settings)
        config = broker_home / "broker.conf"
        config.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return [nameserver, self.launch_broker(broker_home, config, "broker-a")]

    def broker_settings(self, store: Path) -> dict[str, str]:
        """4.x does not derive the commit log's place from the root directory."""
        places = {"storePathRootDir": str(store), "storePathCommitLog": str(store / "commitlog")}
        return places | PATIENT | CAPABLE if self.flags == TEST_FLAGS else places

    def _launch(self, what: str, main: str, home: Path, config: Path) -> ManagedProcess:
        java.write_logging_files(home)
        return ManagedProcess(
            f"Apache {self.version} {what}",
            [
                *(java.java_command(), *self.flags, *java.OPEN_MODULES),
                *(f"-Duser.home={home}", f"-Drocketmq.home.dir={home}", f"-Djava.io.tmpdir={home}"),
                *("-cp", java.class_path(self.version), main, "-c", config),
            ],
            home / "stdout.log",
            env={"ROCKETMQ_HOME": str(home)},
        )
