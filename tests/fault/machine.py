"""A machine whose power can be lost: a broker, its mount and its disk.  See `power.py` for what it is good for."""

import os
import select
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.peers.bolide import Bolide
from tests.peers.process import ManagedProcess
from tests.peers.server import Broker

IDLE_SECONDS = 20
"""So long a disk may take to come to the moment of its power loss; then it is now."""
ANSWER_SECONDS = 120
"""The disk is broken when it has not answered a command by then."""


def missing_tools() -> str:
    """What this machine lacks, in words; empty when all is there."""
    tools = [tool for tool in ("unshare", "nsenter", "mount", "mkfs.ext4") if shutil.which(tool) is None]
    if tools:
        return f"{', '.join(tools)} not installed"
    if not Path("/dev/fuse").exists() or not Path("/dev/loop-control").exists():
        return "no /dev/fuse or no /dev/loop-control"
    try:
        import mfusepy  # noqa: F401 - fails where libfuse is missing
    except (ImportError, OSError) as error:
        return f"{error}: on Debian, apt-get install fuse3"
    return "" if os.geteuid() == 0 else "mounting needs root"


class Disk:
    """The process that serves the disk; see `volatile_disk.py` for its commands."""

    def __init__(self, home: Path) -> None:
        self.image = home / "mount" / "disk"
        self.process = ManagedProcess(
            "volatile disk",
            ["unshare", "--mount", sys.executable, "-m", "tests.fault.volatile_disk", home],
            home.with_suffix(".log"),
            piped=True,
        )
        self._expect("ready")

    def cut(self, steps: int, pages: int, seed: int) -> None:
        self._tell(f"cut {steps} {pages} {seed}")

    def wait_cut(self) -> tuple[int, str]:
        """When it was, in milliseconds, and what survived; a disk too idle to come to the moment is cut now."""
        if not self._has_said_something(IDLE_SECONDS):
            self._tell("cut 0 0 0")
        cut_ms, _, survived = self._expect("cut").partition(" ")
        return int(cut_ms), survived

    def thaw(self) -> None:
        self._tell("thaw")
        self._expect("thawed")

    def boot(self) -> None:
        """What the next machine will see is what was durable."""
        self._tell("boot")
        self._expect("booted")

    def close(self) -> None:
        self.process.kill()

    def _tell(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def _has_said_something(self, seconds: float) -> bool:
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def _expect(self, word: str) -> str:
        """The next line, which must begin with a word."""
        assert self._has_said_something(ANSWER_SECONDS), f"no {word!r}\n{self.process.log_tail()}"
        line = self.process.stdout.readline().decode().strip()
        assert line.split(" ")[0] == word, f"expected {word!r}, got {line!r}\n{self.process.log_tail()}"
        return line.partition(" ")[2]


@dataclass(frozen=True)
class OnVolatileDisk(Bolide):
    """A broker whose disk is mounted for it alone; the mount ends with it."""

    disk: Disk | None = None
    mount: Path = Path()

    def launch_broker(self, home: Path, config: Path, name: str) -> ManagedProcess:
        assert self.disk is not None
        self.mount.mkdir(parents=True, exist_ok=True)
        bolide = Path(sys.executable).with_name("bolide")
        command = f"mount -o loop {self.disk.image} {self.mount} && exec {bolide} broker -c {config}"
        namespace = f"--mount=/proc/{self.disk.process.pid}/ns/mnt"
        words = ["nsenter", namespace, "unshare", "--mount", "sh", "-c", command]
        return ManagedProcess(f"bolide broker {name}", words, home / "stdout.log")

    def broker_settings(self, store: Path) -> dict[str, str]:
        return {"storePathRootDir": str(self.mount / "store")}


def lose_power(broker: Broker, disk: Disk) -> tuple[int, str]:
    """Wait for the moment that was given to the disk, end the broker there, and keep what is durable.

    Returns when it was, in milliseconds, and what survived.
    """
    cut = disk.wait_cut()
    assert broker.process is not None
    broker.process.signal(signal.SIGKILL)  # before the disk moves again: nothing it does from now on counts
    disk.thaw()
    broker.kill()
    return cut
