"""The processes of a benchmark: started together, listened to, and ended whatever happens.

They do not hear Ctrl-C, which is for us alone; they stop when we say so, and when we are gone.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from bolide.cli.bench_figures import Report
from bolide.cli.bench_work import DONE, FAILED, GO, READY, STOP, Task, work
from bolide.model.errors import BolideError, CallTimeout

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

START_S = 60.0
STOP_S = 15.0
"""A send may take ten seconds before it is given up."""

LOOK_S = 0.25


class BenchFailed(BolideError):
    """A process of the benchmark could not go on."""


class Crew:
    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tasks
        self.reports = [Report() for _ in tasks]
        self.failures: list[str] = []
        self._processes: list[SpawnProcess] = []
        self._links: list[Connection] = []
        self._open: dict[Connection, int] = {}
        self._ready: set[int] = set()

    def __enter__(self) -> "Crew":
        context = multiprocessing.get_context("spawn")
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # they inherit it
        try:
            for number, task in enumerate(self.tasks):
                ours, theirs = context.Pipe()
                process = context.Process(target=work, args=(task, theirs), daemon=True)
                process.start()
                theirs.close()
                self._processes.append(process)
                self._links.append(ours)
                self._open[ours] = number
        finally:
            signal.signal(signal.SIGINT, before)
        return self

    def __exit__(self, *error: object) -> None:
        """None is left: who does not come to an end by himself is ended."""
        for link in self._links:
            link.close()
        for process in self._processes:
            process.join(STOP_S)
            if process.is_alive():
                process.kill()
                process.join()

    @property
    def at_work(self) -> int:
        """How many have not ended."""
        return len(self._open)

    def start(self) -> None:
        """Wait until all are connected, then let all go."""
        deadline = time.monotonic() + START_S
        while len(self._ready) < len(self.tasks) and not self.failures:
            if time.monotonic() > deadline:
                raise CallTimeout(f"the processes of the benchmark were not ready within {START_S:.0f} s")
            self._listen()
        self._check()
        for number in range(len(self.tasks)):
            self._say(GO, number)

    def run(self, on_look: Callable[[], None], is_enough: Callable[[], bool] = lambda: False) -> None:
        """Until all are done, or it is enough."""
        while self._open and not is_enough():
            self._listen()
            on_look()
        self.stop()
        self._check()

    def stop(self) -> None:
        """Tell all to stop, and hear their last words."""
        for number in range(len(self.tasks)):
            self._say(STOP, number)
        deadline = time.monotonic() + STOP_S
        while self._open and time.monotonic() < deadline:
            self._listen()

    def _check(self) -> None:
        if self.failures:
            raise BenchFailed(self.failures[0])

    def _say(self, word: str, number: int) -> None:
        try:
            self._links[number].send(word)
        except OSError:  # it has ended
            pass

    def _listen(self) -> None:
        for link in wait(list(self._open), LOOK_S):
            assert isinstance(link, Connection)
            number = self._open[link]
            try:
                word, about, report = link.recv()
            except (EOFError, OSError):
                del self._open[link]
                self.failures.append("a process of the benchmark ended before it was done")
                continue
            self.reports[number] = report
            if word == READY:
                self._ready.add(number)
            elif word in (DONE, FAILED):
                del self._open[link]
                if word == FAILED:
                    self.failures.append(about)


class Machine:
    """How busy the processors of this machine are, since we last began to look."""

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self._before = _processor_times()

    def busy(self) -> float:
        """The share of all cores that were at work."""
        idle, total = (now - before for now, before in zip(_processor_times(), self._before, strict=True))
        return 1 - idle / total if total > 0 else 0.0


def _processor_times() -> tuple[int, int]:
    try:
        with open("/proc/stat") as file:
            times = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return 0, 0
    return times[3] + times[4], sum(times)  # idle, and idle while the disk works
