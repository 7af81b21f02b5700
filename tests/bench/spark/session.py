"""One Spark in a process of its own: asked line by line, and watched for the memory of its Python workers."""

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.bench.sides import Untrustworthy
from tests.bench.spark import job
from tests.peers.process import ManagedProcess

ANSWER_SECONDS = 1_800
"""Twenty million messages on a slow machine; only what hangs takes longer."""

WATCH_SECONDS = 0.1
WORKERS = (b"pyspark.daemon", b"pyspark.worker")


class SparkProcess:
    """`job.py` with an interpreter and settings of Spark's."""

    def __init__(self, python: Path, settings: Mapping[str, str], env: Mapping[str, str], home: Path) -> None:
        words: list[str | Path] = [python, str(job.__file__), json.dumps(dict(settings))]
        env = {**env, "PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}
        self._process = ManagedProcess("Spark", words, home / "spark.log", env=env, cwd=home, piped=True)
        self._watch = PeakMemory(self._process.pid)
        self._watch.start()
        self.version = str(self._answer()["spark"])

    @property
    def worker_peak_bytes(self) -> int:
        """The most that any one Python worker has had so far."""
        return self._watch.peak_bytes

    def ask(self, verb: str, **words: object) -> dict[str, float]:
        self._process.stdin.write(json.dumps({"verb": verb, **words}).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """It ends when it is asked nothing more."""
        self._watch.end()
        self._process.stdin.close()
        try:
            self._process.wait_exit()
        finally:
            self._process.kill()

    def _answer(self) -> dict[str, Any]:
        """One line; a process that takes too long is ended, which is the end of its answers."""
        overdue = threading.Timer(ANSWER_SECONDS, self._process.kill)
        overdue.start()
        try:
            line = self._process.stdout.readline()
        finally:
            overdue.cancel()
        if not line:
            raise Untrustworthy(f"Spark gave no answer\n{self._process.log_tail()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class PeakMemory(threading.Thread):
    """The largest resident size of a Python worker below a process; the kernel keeps each one's own peak."""

    def __init__(self, root: int) -> None:
        super().__init__(name="peak-memory", daemon=True)
        self._root = root
        self._ended = threading.Event()
        self.peak_bytes = 0

    def run(self) -> None:
        while not self._ended.wait(WATCH_SECONDS):
            self.peak_bytes = max([self.peak_bytes, *map(_peak_of, _workers_below(self._root))])

    def end(self) -> None:
        self._ended.set()
        self.join()


def _workers_below(root: int) -> Iterator[int]:
    parents = {int(entry.name): _parent_of(entry) for entry in Path("/proc").glob("[0-9]*")}
    for pid in parents:
        above: int | None = pid
        while above and above != root:
            above = parents.get(above)
        if above == root and any(word in _read(Path(f"/proc/{pid}/cmdline")) for word in WORKERS):
            yield pid


def _parent_of(entry: Path) -> int | None:
    fields = _read(entry / "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else None


def _peak_of(pid: int) -> int:
    lines = _read(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(b"VmHWM:")), 0)


def _read(path: Path) -> bytes:
    """Nothing of a process that is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
