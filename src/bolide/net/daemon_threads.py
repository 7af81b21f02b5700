"""DaemonThreads: threads for functions of an application, which may never return.

Python waits for the threads of a `ThreadPoolExecutor` before a process ends, and those refuse work from that moment on.
Nobody waits for these, and until the process is gone they go on.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

_Work = tuple["Future[Any]", Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class DaemonThreads(Executor):
    """Up to `count` threads, made when they are needed."""

    def __init__(self, name: str, count: int) -> None:
        self._name = name
        self._count = count
        self._threads: list[threading.Thread] = []
        self._changed = threading.Condition()
        self._waiting = 0  # threads that wait for work; each of them takes one that is there
        self._work: deque[_Work] = deque()
        self._is_shut_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        with self._changed:
            if self._is_shut_down:
                raise RuntimeError("these threads are shut down")
            if len(self._work) >= self._waiting and len(self._threads) < self._count:
                self._start_one()
            self._work.append((future, fn, args, kwargs))
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._changed:
            self._is_shut_down = True
            while cancel_futures and self._work:
                self._work.popleft()[0].cancel()
            self._changed.notify_all()
        if wait:
            for thread in self._threads:
                thread.join()

    def _start_one(self) -> None:
        name = f"{self._name}_{len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system gives no more
            if not self._threads:
                raise
        else:
            self._threads.append(thread)

    def _run(self) -> None:
        while (work := self._next()) is not None:
            _do(*work)
            del work  # what it holds would live until the next one comes

    def _next(self) -> _Work | None:
        with self._changed:
            while not self._work:
                if self._is_shut_down:
                    return None
                self._waiting += 1
                self._changed.wait()
                self._waiting -= 1
            return self._work.popleft()


def _do(future: "Future[Any]", fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        found = fn(*args, **kwargs)
    except BaseException as error:
        future.set_exception(error)
        del future  # the trace of the error holds this frame
    else:
        future.set_result(found)
