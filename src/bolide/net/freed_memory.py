"""Freed memory is kept for the next block of its size.

The C library gives large blocks back to the kernel when they are freed, and the kernel fills every page of the next one
with zeros.  Where blocks of megabytes come and go (answers to bulk pulls, batches for Spark) that costs a third of the
processor's time.  So a process that is ours tells the library to keep some.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt
_BLOCK_BYTES_MAX = 32 * 1024 * 1024
"""Larger blocks go back at once; the library takes no larger number."""


def keep_freed_memory(size_bytes: int) -> bool:
    """Keep so many bytes at the end of the heap.  For whole processes: a library does not decide that for others.

    False where the C library is another one, which has rules of its own.
    """
    if sys.platform != "linux":
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(
        set_option(_MMAP_THRESHOLD, min(_BLOCK_BYTES_MAX, size_bytes))
        and set_option(_TRIM_THRESHOLD, size_bytes)
    )
