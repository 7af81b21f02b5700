"""LoopThread: an event loop in a thread of its own, on which the blocking clients of a process run.

All of them share one; a process that was forked gets its own.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import CancelledError
from typing import Any, Generic, TypeVar

from bolide.client import checks
from bolide.client.gather import Batch, Lane
from bolide.model.errors import CallTimeout, ClientNotRunning, InvalidRequest

log = logging.getLogger(__name__)

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.pid = os.getpid()
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._run_on, name="bolide-clients", daemon=True)
        self._thread.start()

    def _run_on(self) -> None:
        """Every blocking client of the process lives here: `sys.exit()` in a coroutine of one listener ends nothing."""
        while not self._loop.is_closed():
            try:
                self._loop.run_forever()
                log.error("the event loop of the blocking clients was stopped from outside, and goes on")
            except BaseException:
                log.exception(
                    "something on the event loop of the blocking clients wants to end it; it goes on"
                )

    @property
    def is_here(self) -> bool:
        """Whether it is this thread."""
        return threading.current_thread() is self._thread

    def check_process(self) -> None:
        """Threads do not survive a fork: nobody would ever run it."""
        if self.pid != os.getpid():
            raise ClientNotRunning(
                "this client was made before the process was forked, and its connections belong to the other"
                " process: make a new client in this one"
            )

    def check_caller(self) -> None:
        """Whether this thread may wait for something of the loop."""
        self.check_process()
        if self.is_here:
            raise ClientNotRunning(
                "a blocking client was called from a coroutine of a listener or from a callback of send_soon, where it"
                " would wait for itself: use the clients of bolide.aio in coroutines, and leave to another thread what"
                " a callback wants done"
            )

    def call_soon(self, work: Callable[[T], None], what: T) -> None:
        """Have it done on the loop."""
        self._loop.call_soon_threadsafe(work, what)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for it.  An interrupt here cancels it there."""
        return self.run_within(work, None)

    def run_within(self, work: Coroutine[Any, Any, T], timeout_ms: int | None) -> T:
        """The same, and a `TimeoutError` when the loop has not done it in time, whatever keeps it."""
        try:
            self.check_caller()
        except ClientNotRunning:
            work.close()
            raise
        call = _Call(work)
        try:
            self._loop.call_soon_threadsafe(call.begin)
            return call.wait(-1 if timeout_ms is None else timeout_ms / 1000)
        except BaseException:
            self._loop.call_soon_threadsafe(call.cancel)
            raise


class _Call(Generic[T]):
    """A coroutine that a thread waits for: half of what it costs with the futures that asyncio has for this."""

    __slots__ = ("_done", "_task", "_work")

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work)
        self._task.add_done_callback(self._end)

    def _end(self, _: "asyncio.Task[T]") -> None:
        self._done.release()

    def wait(self, timeout_s: float) -> T:
        """In the thread that waits: its outcome."""
        if not self._done.acquire(timeout=timeout_s):
            raise TimeoutError
        assert self._task is not None
        if self._task.cancelled():
            raise CancelledError
        return self._task.result()

    def cancel(self) -> None:
        """The thread waits no more."""
        if self._task is not None:
            self._task.cancel()


_shared: LoopThread | None = None
_shared_lock = threading.Lock()


def shared_loop() -> LoopThread:
    """The loop of this process, started when it is first needed."""
    global _shared  # noqa: PLW0603 - one loop per process is the point
    with _shared_lock:
        if _shared is None or _shared.pid != os.getpid():
            _shared = LoopThread(_new_loop)
        return _shared


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class ThreadShell:
    """How messages of `send_soon` are given by threads, and waited for there."""

    def __init__(self, loop: LoopThread) -> None:
        self.guard = threading.Lock()
        self._loop = loop

    def wait(self, batch: Batch, timeout_ms: int | None) -> None:
        self._loop.check_process()
        if self._loop.is_here:
            raise ClientNotRunning(
                "a callback of send_soon would wait for itself: look at future.done() there"
            )
        if timeout_ms is not None:
            timeout_ms = checks.number("timeout_ms", timeout_ms, 0, checks.DAY_MS, InvalidRequest)
        done = threading.Event()
        batch.when_done(done.set)
        if not done.wait(None if timeout_ms is None else timeout_ms / 1000):
            raise CallTimeout(f"the message to {batch.topic} was not acknowledged within {timeout_ms} ms")

    def wait_for(self, batch: Batch) -> Generator[Any, None, None]:
        raise ClientNotRunning("a future of the blocking producer is asked with future.result(), not awaited")

    def on_loop(self, work: Callable[[Lane], None], lane: Lane) -> None:
        self._loop.call_soon(work, lane)
