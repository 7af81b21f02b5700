"""Stopwatch: times every callback of an asyncio loop and keeps the longest one of each kind of work.

What a callback is called depends on what asyncio runs: a step of a task has the task's name, a read from a socket the
side that reads, everything else the function.

A callback's time is that from its begin to its end, without the time in which it was ready to run and the machine ran
somebody else: on a few cores the driver alone would show up in every kind.  Waiting for the disk, for the interpreter's
lock and for the garbage collector is in it.
"""

import asyncio
import gc
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

UNNAMED_TASK = re.compile(r"Task-\d+")

Callback = Callable[..., object]


@dataclass
class Longest:
    """The longest callback of one kind, what it was, and what it did with its time."""

    where: str = ""
    ms: float = 0.0
    processor_ms: float = 0.0
    """Of it: at work.  The rest is waiting."""
    garbage_ms: float = 0.0
    """Of it: the garbage collector."""
    delayed_ms: float = 0.0
    """Beside it: ready to run, but without a processor."""
    count: int = 0
    """How many callbacks this kind had."""


class Stopwatch:
    """`kind` is the work that is going on; `kind_of` may know better from a callback's name."""

    def __init__(self, kind: str, kind_of: Callable[[str, str], str], side_of_port: dict[int, str]) -> None:
        self.kind = kind
        self.longest: dict[str, Longest] = {}
        self.long_at = time.perf_counter()
        """When the last callback ended that took a millisecond or more."""
        self._kind_of = kind_of
        self._side_of_port = side_of_port
        self._garbage_s = 0.0
        self._garbage_since = 0.0

    def install(self) -> None:
        """For every callback of this thread, and for good."""
        run = asyncio.events.Handle._run
        schedule = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
        gc.callbacks.append(self._collecting)

        def timed(handle: asyncio.Handle) -> None:
            callback: Callback = handle._callback  # type: ignore[attr-defined]
            before = time.perf_counter()  # outside the others: what is taken off was in between
            garbage_s, delayed_s, processor_s = self._garbage_s, _delayed_s(schedule), time.thread_time()
            run(handle)
            processor_s = time.thread_time() - processor_s
            delayed_s = _delayed_s(schedule) - delayed_s
            took_s = time.perf_counter() - before
            self._note(callback, took_s - delayed_s, processor_s, self._garbage_s - garbage_s, delayed_s)

        asyncio.events.Handle._run = timed  # type: ignore[method-assign, assignment]

    def _note(
        self, callback: Callback, took_s: float, processor_s: float, garbage_s: float, delayed_s: float
    ) -> None:
        where = self.name_of(callback)
        longest = self.longest.setdefault(self._kind_of(self.kind, where), Longest())
        longest.count += 1
        if took_s >= 0.001:
            self.long_at = time.perf_counter()
        if took_s * 1000 > longest.ms:
            longest.where = where
            longest.ms = took_s * 1000
            longest.processor_ms = processor_s * 1000
            longest.garbage_ms = garbage_s * 1000
            longest.delayed_ms = delayed_s * 1000

    def name_of(self, callback: Callback) -> str:
        owner = getattr(callback, "__self__", None)
        if isinstance(owner, asyncio.Task):
            name = owner.get_name()
            return getattr(owner.get_coro(), "__qualname__", name) if UNNAMED_TASK.fullmatch(name) else name
        if isinstance(owner, asyncio.Transport):
            port = (owner.get_extra_info("sockname") or ("", 0))[1]
            return f"{self._side_of_port.get(port, 'caller')}: {callback.__name__}"
        return getattr(callback, "__qualname__", None) or repr(callback)

    def _collecting(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self._garbage_since = time.perf_counter()
        else:
            self._garbage_s += time.perf_counter() - self._garbage_since


def _delayed_s(schedule: int) -> float:
    """For how long the thread has been without a processor when it could have run."""
    return int(os.pread(schedule, 128, 0).split()[1]) / 1e9
