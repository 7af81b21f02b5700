"""A disk that forgets what was not flushed: one big file in a FUSE mount, to be put under a real file system.

    python -m tests.fault.volatile_disk FOLDER

serves FOLDER/mount/disk, an ext4 image.  A loop device on it is a disk with a volatile write cache: the kernel's own
ext4, its journal and its page cache run above, and their flushes (barriers, fsync, fdatasync) arrive here as fsync.
Two images are kept: `current`, what the running machine sees, and `durable`, what is certainly there after power loss.
A flush copies everything written before it; nothing else does.

Commands on standard input, each answered by one line:

    cut N PAGES SEED   lose power before the Nth write or flush from now on (0: at once), or a later one if at that
                 moment fewer pages than that wait for a flush; then answer with the time in milliseconds and what
                 survived, and stand still.  Of what was written since the last flush any part survives, by pages, and
                 one page torn in sectors.  Where power is lost already: nothing, and no answer
    thaw         go on serving the machine that has no power, so that its processes can be ended; nothing is kept of it
    boot         wait until the loop device has let go, then show the next machine what is durable

`ready` is said once, when the file is there.
"""

import errno
import os
import random
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import mfusepy

SIZE = 1024 * 1024 * 1024
PAGE, SECTOR = 4096, 512
NAME = "/disk"
RELEASE_SECONDS = 100
PATIENCE_STEPS = 300


class Images:
    """What was written, what is durable, and what lies between."""

    def __init__(self, folder: Path) -> None:
        self._current = _open(folder / "current")
        self._durable = _open(folder / "durable")
        self._unflushed: list[tuple[int, bytes]] = []
        self._touched: list[tuple[int, int]] = []
        self.has_power = True

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self._current, size, at)

    def write(self, at: int, data: bytes) -> None:
        os.pwrite(self._current, data, at)
        self._touched.append((at, len(data)))
        if self.has_power:
            self._unflushed.append((at, data))

    def flush(self) -> None:
        if self.has_power:
            for at, data in self._unflushed:
                os.pwrite(self._durable, data, at)
            self._unflushed.clear()

    @property
    def pages_unflushed(self) -> int:
        return sum(-(-len(data) // PAGE) for _, data in self._unflushed)

    def lose_power(self, chance: random.Random) -> str:
        """Let a random part of what was not flushed reach the disk; says how much."""
        likelihood = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0, chance.random()))
        pages = [
            (at + start, data[start : start + PAGE])
            for at, data in self._unflushed
            for start in range(0, len(data), PAGE)
        ]
        kept = [page for page in pages if chance.random() < likelihood]
        for at, data in kept:
            os.pwrite(self._durable, data, at)
        # One more was being written at that moment; not the superblock, of which ext4 expects that it is never torn.
        torn = [page for page in pages if page[0] != 0]
        if torn:
            at, data = chance.choice(torn)
            for start in range(0, len(data), SECTOR):
                if chance.random() < 0.5:
                    os.pwrite(self._durable, data[start : start + SECTOR], at + start)
        self._unflushed.clear()
        self.has_power = False
        return f"{len(kept)} of {len(pages)} unflushed pages survived"

    def boot(self) -> None:
        for at, size in self._touched:
            os.pwrite(self._current, os.pread(self._durable, size, at), at)
        self._touched.clear()
        self.has_power = True


class VolatileDisk(mfusepy.Operations):  # type: ignore[misc]  # the library ships no types
    """The file system with the one file.  Its calls come one at a time."""

    use_ns = True

    def __init__(self, images: Images) -> None:
        self._images = images
        self._steps_left: int | None = None
        self._pages_wanted = 0
        self._chance = random.Random()
        self._lock = threading.Lock()
        self._thawed = threading.Event()
        self._thawed.set()
        self._opened = 0
        self._closed = threading.Condition()

    # ---- commands

    def obey(self) -> None:
        """Take commands until there are no more, then end with everything."""
        for line in sys.stdin:
            verb, *numbers = line.split()
            if verb == "cut":
                with self._lock:
                    if not self._images.has_power:
                        continue  # the moment came before its command to hurry
                    self._steps_left, self._pages_wanted = int(numbers[0]), int(numbers[1])
                    self._chance = random.Random(int(numbers[2]))
                    if self._steps_left == 0:
                        self._cut()
            elif verb == "thaw":
                self._thawed.set()
                _say("thawed")
            elif verb == "boot":
                with self._closed:
                    gone = self._closed.wait_for(lambda: self._opened == 0, RELEASE_SECONDS)
                self._images.boot()
                _say("booted" if gone else "still in use")
        os._exit(0)

    def _step(self) -> None:
        """Called before each write and flush."""
        with self._lock:
            if self._steps_left is not None:
                self._steps_left -= 1
                enough = self._images.pages_unflushed >= self._pages_wanted
                if self._steps_left <= 0 and (enough or self._steps_left < -PATIENCE_STEPS):
                    self._cut()
        self._thawed.wait()

    def _cut(self) -> None:
        self._steps_left = None
        self._thawed.clear()
        now_ms = time.time_ns() // 1_000_000  # noqa: TID251 - compared with what Java notes on this machine
        _say(f"cut {now_ms} {self._images.lose_power(self._chance)}")

    # ---- what the kernel asks

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path == NAME:
            return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": SIZE}
        raise mfusepy.FuseOSError(errno.ENOENT)

    def init(self, path: str) -> None:
        _say("ready")

    def open(self, path: str, flags: int) -> int:
        with self._closed:
            self._opened += 1
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return self._images.read(offset, size)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._step()
        self._images.write(offset, data)
        return len(data)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._step()
        self._images.flush()
        return 0

    def release(self, path: str, fh: int) -> int:
        with self._closed:
            self._opened -= 1
            self._closed.notify()
        return 0


def make_images(folder: Path) -> None:
    """Two equal images of an empty ext4."""
    for name in ("current", "durable"):
        with (folder / name).open("wb") as file:
            file.truncate(SIZE)
    at_once = "lazy_itable_init=0,lazy_journal_init=0"  # nothing is left for the kernel to write later
    words = ["mkfs.ext4", "-q", "-F", "-b", str(PAGE), "-N", "4096", "-J", "size=16"]
    words += ["-E", at_once, str(folder / "current")]
    subprocess.run(words, check=True)
    subprocess.run(["cp", "--sparse=always", folder / "current", folder / "durable"], check=True)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "mount").mkdir(parents=True)
    make_images(folder)
    disk = VolatileDisk(Images(folder))
    threading.Thread(target=disk.obey, daemon=True).start()
    mfusepy.FUSE(disk, str(folder / "mount"), foreground=True, nothreads=True, fsname="volatile-disk")


if __name__ == "__main__":
    main()
