"""SimThreads: threads whose work takes simulated time and is then done in one go.

They belong to the process that made them: with its death, work that had not been done is not done.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

QUICK_S = (0.000_1, 0.002)
SLOW_S = (0.01, 0.5)
"""One piece of work in fifty takes so much longer: a disk that has other things to do."""


class SimThread(Executor):
    """`count` threads with one queue.  See `concurrent.futures.Executor`."""

    def __init__(self, threads: "SimThreads", count: int) -> None:
        self._threads = threads
        self._rng = threads.rng
        self._count = count
        self._busy = 0
        self._queue: deque[tuple[Future[Any], Callable[[], Any]]] = deque()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self._queue.append((future, lambda: fn(*args, **kwargs)))
        if self._busy < self._count:
            self._busy += 1
            self._begin()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Who waits for a thread holds up its whole process: what is left is done at once."""
        while cancel_futures and self._queue:
            self._queue.popleft()[0].cancel()
        while wait and self._queue:
            self._do()

    def _begin(self) -> None:
        seconds = self._rng.uniform(*(SLOW_S if self._rng.random() < 0.02 else QUICK_S))
        seconds += self._threads.slowness_s * self._rng.random()
        asyncio.get_running_loop().call_later(seconds, self._next)

    def _next(self) -> None:
        if self._queue:
            self._do()
        if self._queue:
            self._begin()
        else:
            self._busy -= 1

    def _do(self) -> None:
        future, work = self._queue.popleft()
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = work()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)


class SimThreads:
    """See `net.surroundings.Threads`."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.slowness_s = 0.0
        """How much longer work takes at most: the disk is slow."""

    def __call__(self, name: str, count: int = 1, *, for_application: bool = False) -> Executor:
        return SimThread(self, count)
