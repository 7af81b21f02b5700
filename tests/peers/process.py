"""One child process: started with a log file, ended by its own id, and asked what it costs."""

import atexit
import os
import signal
import subprocess
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.peers.waiting import PATIENCE_SECONDS, wait_until

STOP_SECONDS = PATIENCE_SECONDS
LOG_TAIL_LINES = 40

_running: "weakref.WeakSet[ManagedProcess]" = weakref.WeakSet()


class ManagedProcess:
    """A child whose stderr goes to a log; its stdout too, unless it is piped to the caller."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        piped: bool = False,
    ) -> None:
        self.name = name
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        self.started_at = time.monotonic()
        with log.open("ab") as out:
            self._child = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else out,
                stderr=out,
                env={**os.environ, **env} if env else None,
                cwd=cwd,
            )
        self.pid = self._child.pid
        _running.add(self)

    @property
    def stdin(self) -> IO[bytes]:
        assert self._child.stdin is not None
        return self._child.stdin

    @property
    def stdout(self) -> IO[bytes]:
        assert self._child.stdout is not None
        return self._child.stdout

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._child.poll()

    def wait_exit(self, seconds: float = STOP_SECONDS) -> int:
        return self._child.wait(seconds)

    def wait_ready(self, ready: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Until `ready()` is true; a child that died meanwhile is reported at once with the end of its log."""

        def ready_or_dead() -> bool:
            if not self.alive:
                code = self.exit_code
                raise RuntimeError(f"{self.name} ended with code {code}\n{self.log_tail()}")
            return ready()

        wait_until(ready_or_dead, seconds, lambda: f"{self.name} is not ready\n{self.log_tail()}", 0.02)

    def signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.kill(self.pid, number)

    def stop(self) -> None:
        """Ask it to end, as an operator would; if it does not, end it and say so."""
        self.signal(signal.SIGTERM)
        try:
            self.wait_exit()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"{self.name} ignored SIGTERM for {STOP_SECONDS} s\n{self.log_tail()}"
            ) from None
        finally:
            self._close_pipes()

    def kill(self) -> None:
        """End it with no chance to tidy up."""
        self.signal(signal.SIGKILL)
        self._child.wait(STOP_SECONDS)
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return "\n".join([f"--- end of {self.log.name}", *lines[-LOG_TAIL_LINES:]])

    def cpu_seconds(self) -> float:
        """User and system time of the whole process so far."""
        after_name = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")

    def rss_anon_bytes(self) -> int:
        """Memory of its own: resident pages that belong to no file."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("the kernel reports no RssAnon")


@atexit.register
def _end_what_is_left() -> None:
    for process in list(_running):
        if process.alive:
            process.kill()
