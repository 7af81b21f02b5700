"""Kafka: one server in KRaft mode, a JVM with a home directory of its own, and what Spark needs to talk to it.

Everything lands in `.cache/peers`: the server's jars, the connector's jars, and a Python with the PySpark that the
connector is made for.  Fetched once each, when first asked for.
"""

import socket
import subprocess
from pathlib import Path

from tests.peers import built, java
from tests.peers.ports import free_port
from tests.peers.process import ManagedProcess
from tests.peers.server import HOST, READY_SECONDS

VERSION = "4.3.1"
SPARK_VERSION = "4.0.0"
"""Of the connector, and of the PySpark that goes with it."""

PARTITIONS = 4
FORMAT_SECONDS = 120
PROBE_SECONDS = 1

_POMS = Path(__file__).resolve().parent / "kafka"
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
# What the original's own scripts give a server.
_SERVER_FLAGS = (
    *("-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
)


class Kafka:
    """Broker and controller in one process; a topic that is written to comes into being with four partitions."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._port, self._controller_port = free_port(), free_port()
        self._process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    def start(self) -> "Kafka":
        self.home.mkdir(parents=True, exist_ok=True)
        config = self.home / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._settings().items()))
        storage = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(config)]
        subprocess.run(
            [java.java_command(), "-cp", _class_path(), *storage],
            check=True,
            capture_output=True,
            timeout=FORMAT_SECONDS,
        )
        self._process = ManagedProcess(
            f"Kafka {VERSION}",
            [java.java_command(), *_SERVER_FLAGS, "-cp", _class_path(), "kafka.Kafka", config],
            self.home / "stdout.log",
        )
        self._process.wait_ready(self._listens, READY_SECONDS)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def cpu_seconds(self) -> float:
        return 0.0 if self._process is None else self._process.cpu_seconds()

    def _listens(self) -> bool:
        try:
            socket.create_connection((HOST, self._port), PROBE_SECONDS).close()
        except OSError:
            return False
        return True

    def _settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self._controller_port}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{HOST}:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.home / "log"),
            "num.partitions": str(PARTITIONS),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }


def connector_jars() -> list[Path]:
    """What goes into `spark.jars`."""
    place = built.jars(f"spark-kafka-{SPARK_VERSION}", _POMS / "spark" / "pom.xml", "spark", SPARK_VERSION)
    return sorted(Path(place).parent.glob("*.jar"))


def spark_python() -> Path:
    """An interpreter with the PySpark of the connector and nothing else."""
    return built.python(f"pyspark-{SPARK_VERSION}", [f"pyspark=={SPARK_VERSION}"])


def _class_path() -> str:
    return built.jars(f"kafka-{VERSION}", _POMS / "server" / "pom.xml", "kafka", VERSION)
