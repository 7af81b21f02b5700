"""Free memory that is really there.

A virtual machine may give its free memory back to its host.  The first write to a page then waits for the host: eight
microseconds where it is otherwise less than one.  A log writes to new pages only, so whoever writes more messages a
second waits more, and how often depends on what ran before: the same server differs by a third.  A machine that has
been up for a while has no such pages, its memory is full of files.  So before sending is measured nearly all free
memory is held here, and as much as a measurement needs is given back, on both sides.
"""

import mmap
from pathlib import Path

READY_BYTES = 4 << 30
"""Free when a measurement begins: more than a server takes and writes until it ends."""

_SPARE_BYTES = 256 << 20
"""Never held: the rest of the machine goes on."""

_PIECE_BYTES = 64 << 20

_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)

_held: list[mmap.mmap] = []


def fetch_free_memory() -> None:
    """Hold what is free, then give back `READY_BYTES`; a machine with less free memory than that keeps what it has.

    The first time may take half a minute, if the host has to provide all of it.
    """
    if _free_bytes() + len(_held) * _PIECE_BYTES < READY_BYTES:
        return
    while _free_bytes() > _SPARE_BYTES + _PIECE_BYTES:
        piece = mmap.mmap(-1, _PIECE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
        _held.append(piece)
    while _held and _free_bytes() < READY_BYTES:
        _held.pop(0).close()  # what was held longest is what the kernel hands out first


def release_memory() -> None:
    """Hold nothing any more."""
    while _held:
        _held.pop().close()


def _free_bytes() -> int:
    """What neither processes nor files use, of the machine and of the control group that bounds this process."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemFree:"))
    for limit, used in _LIMITS:
        if Path(limit).exists() and (most := Path(limit).read_text().strip()).isdigit():
            free = min(free, int(most) - int(Path(used).read_text()))
    return max(0, free)
