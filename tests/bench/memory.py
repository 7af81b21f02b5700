"""Free memory that is really there.

A virtual machine may give its free memory back to its host.  The first write to a page then waits for the host: eight
microseconds where it is otherwise less than one.  A log writes to new pages only, so whoever stores more messages a
second waits more, and how often depends on what ran before: the same server differs by a third.  So free memory is
written to before sending is measured, on both sides.

The kernel keeps free memory by the size of its pieces and breaks up the smallest that is enough.  So memory is taken
here in both ways in which servers take it: page by page, as heaps and mappings do, and in large pieces, as large
writes to a file do.
"""

import mmap
import tempfile

_PAGES_BYTES_MAX = 3 << 30
_FILE_BYTES_MAX = 2 << 30
"""More than any workload writes; little enough that the kernel does not begin to write it to the disk."""

_WRITE = bytes(128 * 1024)


def touch_free_memory() -> None:
    """A machine that has its memory does this in two seconds."""
    free = _free_bytes()
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(min(_FILE_BYTES_MAX, free // 4) // len(_WRITE)):
            file.write(_WRITE)
        count = min(_PAGES_BYTES_MAX, free // 2)
        mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()


def _free_bytes() -> int:
    """Not what is available: what holds files is of use there."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemFree:"))
