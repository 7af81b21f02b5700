"""SimLoop: an event loop without real time.  When nothing is ready, the time is that of the next timer.

It keeps what asyncio promises and code relies on: callbacks run in the order in which they became ready, one after
the other, and a timer never runs before its time.  Nothing here is chosen by chance: chance is in the network, the disk
and the scenario.  A callback of a dead process is dropped.
"""

import asyncio
import contextvars
import heapq
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from tests.simulation.process import Process, current, owner_of

if TYPE_CHECKING:
    from tests.simulation.network import Network

T = TypeVar("T")


class NothingToDo(Exception):
    """Everybody waits and no timer is set: this world stands still for ever."""


class SimLoop(asyncio.AbstractEventLoop):
    def __init__(self) -> None:
        self.network: Network
        self._now = 0.0
        self._ready: deque[tuple[asyncio.Handle, Process | None]] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Process | None]] = []
        self._made = 0
        self._running = False
        self._closed = False
        self._orphans: list[asyncio.Task[Any]] = []
        self.errors: list[str] = []

    # ---- running -------------------------------------------------------------------------------------------

    def run_until_complete(self, future: "Coroutine[Any, Any, T] | asyncio.Future[T]") -> T:  # type: ignore[override]
        main = asyncio.ensure_future(future, loop=self)
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while not main.done():
                self._turn()
        finally:
            self._running = False
            asyncio._set_running_loop(None)
        return main.result()

    def _turn(self) -> None:
        timers, ready = self._timers, self._ready
        if not ready:
            if not timers:
                raise NothingToDo("nothing is ready and no timer is set")
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            _, _, handle, process = heapq.heappop(timers)
            if not handle.cancelled():
                ready.append((handle, process))
        for _ in range(len(ready)):
            some, process = ready.popleft()
            if not some.cancelled() and (process is None or process.is_alive):
                some._run()

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Forget everything.  Tasks that have not ended are closed here and not whenever memory is collected."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        for task in self._orphans:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                coroutine = task.get_coro()
                try:
                    if coroutine is not None:
                        coroutine.close()
                except Exception:
                    pass
        self._ready.clear()
        self._timers.clear()

    # ---- scheduling ----------------------------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append((handle, current() if context is None else owner_of(context)))
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there are no threads

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        self._made += 1
        whose = current() if context is None else owner_of(context)
        heapq.heappush(self._timers, (when, self._made, handle, whose))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: "Coroutine[Any, Any, T] | Generator[Any, None, T]",
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> "asyncio.Task[T]":
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=name, context=context)
        self._remember(task)
        return task

    def _remember(self, task: "asyncio.Task[Any]") -> None:
        """Tasks of dead processes never end: somebody must keep them until the world does."""
        self._orphans.append(task)
        if len(self._orphans) >= 10_000:
            self._orphans = [one for one in self._orphans if not one.done()]

    def run_in_executor(self, executor: Executor | None, func: Callable[..., T], *args: Any) -> Any:  # type: ignore[override]
        assert executor is not None, "threads come from the surroundings"
        return asyncio.wrap_future(executor.submit(func, *args), loop=self)

    # ---- the network ---------------------------------------------------------------------------------------

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return self.network.listen(protocol_factory, host, port)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any
    ) -> Any:
        transport = await self.network.connect(host, port)
        protocol = protocol_factory()
        transport.begin(protocol)
        return transport, protocol

    # ---- what asyncio asks ---------------------------------------------------------------------------------

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        pass

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error that nobody handled is a finding."""
        whose = current() or "world"
        self.errors.append(f"{whose}: {context.get('message')}: {context.get('exception')!r}")

    async def shutdown_asyncgens(self) -> None:
        pass

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        pass
