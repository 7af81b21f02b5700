"""The original's proxy: what clients that speak gRPC need in front of a broker."""

import json
import socket
from pathlib import Path

from tests.peers import built, java
from tests.peers.ports import free_port
from tests.peers.process import ManagedProcess
from tests.peers.server import CLUSTER, HOST, READY_SECONDS

MAIN = "org.apache.rocketmq.proxy.ProxyStartup"
FLAGS = ("-Xms1g", "-Xmx1g", "-XX:MaxDirectMemorySize=1g", "-XX:+UseG1GC")
PROBE_SECONDS = 1

_POM = Path(__file__).resolve().parent / "proxy" / "pom.xml"
_LOGBACK = """<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %p %m%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="console"/></root>
</configuration>
"""


class Proxy:
    """A JVM of its own that serves one cluster."""

    def __init__(self, home: Path, nameserver: str) -> None:
        self.home = home
        self._nameserver = nameserver
        self._port, self._remoting_port = free_port(), free_port()
        self._process: ManagedProcess | None = None

    @property
    def address(self) -> str:
        return f"{HOST}:{self._port}"

    def start(self) -> "Proxy":
        java.write_logging_files(self.home)
        (self.home / "conf" / "rmq.proxy.logback.xml").write_text(_LOGBACK)
        config = self.home / "conf" / "rmq-proxy.json"
        config.write_text(json.dumps(self._settings()))
        self._process = ManagedProcess(
            f"Apache {java.LATEST} proxy",
            [
                *(java.java_command(), *FLAGS, *java.OPEN_MODULES),
                *(f"-Duser.home={self.home}", f"-Drocketmq.home.dir={self.home}"),
                *("-cp", built.jars(f"proxy-{java.LATEST}", _POM, "rocketmq", java.LATEST)),
                *(MAIN, "-n", self._nameserver, "-pm", "cluster", "-pc", config),
            ],
            self.home / "stdout.log",
            env={"ROCKETMQ_HOME": str(self.home)},
        )
        self._process.wait_ready(self._listens, READY_SECONDS)
        return self

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _listens(self) -> bool:
        try:
            socket.create_connection((HOST, self._port), PROBE_SECONDS).close()
        except OSError:
            return False
        return True

    def _settings(self) -> dict[str, object]:
        return {
            "rocketMQClusterName": CLUSTER,
            "grpcServerPort": self._port,
            "remotingListenPort": self._remoting_port,
            "enableTopicMessageTypeCheck": False,  # a topic need not say what its messages are
        }
