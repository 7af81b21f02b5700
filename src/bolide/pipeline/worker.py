"""What a Python worker of Spark is told before it reads for the first time; it lives on for many tasks.

Spark looks for garbage behind every task, among all that was ever imported: a tenth of a second, for what stays anyway.
"""

import gc
from functools import cache

from bolide.model.limit import MIB
from bolide.net.freed_memory import keep_freed_memory

KEPT_BYTES = 64 * MIB
"""Freed memory that a worker keeps: about what a task has of answers and batches at a time."""


@cache
def settle_worker() -> None:
    """Once in the life of a process."""
    keep_freed_memory(KEPT_BYTES)
    gc.freeze()
