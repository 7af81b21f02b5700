"""LoopThread: an event loop in a thread of its own, on which the blocking clients of a process run.

All of them share one; a process that was forked gets its own.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bolide.model.errors import ClientNotRunning

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.pid = os.getpid()
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bolide-clients", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop and wait for it.  An interrupt here cancels it there."""
        if self.pid != os.getpid():  # threads do not survive a fork: nobody would ever run it
            work.close()
            raise ClientNotRunning(
                "this client was made before the process was forked, and its connections belong to the other"
                " process: make a new client in this one"
            )
        if threading.current_thread() is self._thread:
            work.close()
            raise ClientNotRunning(
                "a blocking client was called from a coroutine of a listener, where it would wait for itself:"
                " use the clients of bolide.aio there"
            )
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise


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
