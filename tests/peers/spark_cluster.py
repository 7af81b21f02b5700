"""A standalone cluster of Spark on this machine: a master and workers, each a process of its own.

Everything comes with the installed PySpark.  Executors are processes of the workers: `executor_of` finds the one that a
Python worker belongs to.
"""

import json
import signal
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tests.peers.ports import free_port
from tests.peers.process import ManagedProcess
from tests.peers.server import HOST, READY_SECONDS

SPARK_HOME = Path(pyspark.__file__).parent
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
EXECUTOR = b"CoarseGrainedExecutorBackend"
ANSWER_SECONDS = 10

BARE = {
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": HOST,
    "SPARK_DAEMON_MEMORY": "256m",
    "PYTHONPATH": "",
    "PYSPARK_PYTHON": "",
}
"""Nothing of the environment that runs the tests reaches the machines of a cluster."""


class SparkCluster:
    """`start`, then `master` is the address for drivers; every worker has one core."""

    def __init__(self, home: Path, workers: int) -> None:
        self._home = home
        self._workers = workers
        self._port, self._web_port = free_port(), free_port()
        self._processes: list[ManagedProcess] = []

    @property
    def master(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def start(self) -> "SparkCluster":
        ports = ["--port", str(self._port), "--webui-port", str(self._web_port)]
        self._launch("master", MASTER, "--host", HOST, *ports)
        for number in range(self._workers):
            folder = self._home / f"worker-{number}"
            room = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder)]
            ports = ["--port", str(free_port()), "--webui-port", str(free_port())]
            self._launch(f"worker-{number}", WORKER, "--host", HOST, *ports, *room, self.master)
        self._processes[0].wait_ready(self._has_all, READY_SECONDS)
        return self

    def stop(self) -> None:
        """All at once; each worker ends its executors."""
        for process in self._processes:
            process.signal(signal.SIGTERM)
        while self._processes:
            self._processes.pop().stop()

    def _launch(self, name: str, main: str, *words: str) -> None:
        env = {**BARE, "SPARK_LOCAL_DIRS": str(self._home / "local")}
        command = [str(SPARK_HOME / "bin" / "spark-class"), main, *words]
        self._home.mkdir(parents=True, exist_ok=True)
        self._processes.append(
            ManagedProcess(f"Spark {name}", command, self._home / f"{name}.log", env=env, cwd=self._home)
        )

    def _has_all(self) -> bool:
        try:
            with urllib.request.urlopen(
                f"http://{HOST}:{self._web_port}/json/", timeout=ANSWER_SECONDS
            ) as page:
                return int(json.load(page)["aliveworkers"]) == self._workers
        except (OSError, json.JSONDecodeError):  # its first pages are for people, whatever one asks for
            return False


def submit(
    name: str, folder: Path, program: Path, settings: Mapping[str, str], env: Mapping[str, str], *words: str
) -> ManagedProcess:
    """`spark-submit` in a folder; the process is the driver's JVM, its Python is a child of that."""
    command = [str(SPARK_HOME / "bin" / "spark-submit")]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    return ManagedProcess(
        name, [*command, program, *words], folder / f"{name}.log", env={**BARE, **env}, cwd=folder
    )


def executor_of(worker: int) -> int:
    """The JVM above a Python worker."""
    pid = worker
    while EXECUTOR not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid
