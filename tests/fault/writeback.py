"""The kernel's writeback, on fast forward: pages of a store go to the disk in any order, and none of it is flushed.

A kernel writes dirty pages when it likes, after seconds and in an order of its own.  Here a thread asks for it, for
random ranges of random files, all the time.  It makes nothing durable (sync_file_range without a flush), so after
a loss of power any part of these pages may be there.
"""

import contextlib
import ctypes
import os
import random
import threading
from pathlib import Path

START_WRITING = 2  # SYNC_FILE_RANGE_WRITE
RANGE_BYTES_MAX = 256 * 1024
PAUSE_SECONDS = 0.003

_libc = ctypes.CDLL(None, use_errno=True)
_libc.sync_file_range.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)


class Writeback:
    """Runs from its making until `stop`; holds no file open longer than one request takes."""

    def __init__(self, store: Path, seed: int) -> None:
        self._store = store
        self._chance = random.Random(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="writeback")
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(PAUSE_SECONDS):
            with contextlib.suppress(OSError, IndexError):  # a store that is gone, or has no such file yet
                self._start_writing(self._some_file())

    def _some_file(self) -> Path:
        """The newest segment of the log as often as one of the queues' files."""
        if self._chance.random() < 0.5:
            return sorted((self._store / "commitlog").iterdir())[-1]
        return self._chance.choice(
            [path for path in self._store.glob("consumequeue/*/*/*") if path.is_file()]
        )

    def _start_writing(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            size = os.fstat(descriptor).st_size
            count = self._chance.randrange(1, RANGE_BYTES_MAX)
            _libc.sync_file_range(descriptor, self._chance.randrange(size or 1), count, START_WRITING)
        finally:
            os.close(descriptor)
