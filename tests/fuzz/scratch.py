"""A folder for files that are written again for every input."""

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

_PARENT = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


def scratch() -> Path:
    """In memory where that is possible; every process has its own."""
    return _folder_of(os.getpid())


def remove_scratch(pid: int) -> None:
    """Of a process that is gone, or about to go."""
    for folder in Path(_PARENT).glob(f"bolide-fuzz-{pid}-*"):
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _folder_of(pid: int) -> Path:
    atexit.register(lambda: remove_scratch(pid) if os.getpid() == pid else None)  # forked ones leave it alone
    return Path(tempfile.mkdtemp(prefix=f"bolide-fuzz-{pid}-", dir=_PARENT))
