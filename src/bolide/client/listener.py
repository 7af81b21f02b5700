"""ListenerCalls: calls the application's function and tells how it went.

A plain function is called in threads of its own, as many as calls may run at once; a coroutine function on the event
loop.  Nothing that it raises goes any further: an exception is an outcome, and so is one that it returns instead of
raising.  All is done when it returns None: rather a message that comes again than one that is lost.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from contextvars import ContextVar

from bolide.client import checks
from bolide.client.application import awaited, called
from bolide.client.context import ConsumeContext
from bolide.model.errors import ClientError, ClientNotRunning
from bolide.model.functions import is_coroutine_function
from bolide.model.verdicts import Later, Suspend
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage

Verdict = Later | Suspend | None
Listener = (
    Callable[[list[StoredMessage]], Awaitable[Verdict] | Verdict]
    | Callable[[list[StoredMessage], ConsumeContext], Awaitable[Verdict] | Verdict]
)
"""Returns nothing when all is done."""

TAKES = "a list of messages"
_CONTEXT = "context"


class ListenerCalls:
    """Calls one listener."""

    def __init__(self, listener: Listener, surroundings: Surroundings, concurrency: int) -> None:
        self._wants_context = _wants_context(listener)
        self._listener: Callable[..., Awaitable[Verdict] | Verdict] = listener
        self._on_loop = is_coroutine_function(listener)
        self._surroundings = surroundings
        self._concurrency = concurrency
        self._threads: Executor | None = None
        self._tasks: set[asyncio.Task[object] | None] = set()
        """Those that are in a call of the listener."""

    def check_outside(self) -> None:
        """Whether who asks, on the event loop or in a thread, may wait for the end of all calls."""
        try:
            is_inside = asyncio.current_task() in self._tasks
        except RuntimeError:  # no event loop is here
            is_inside = _thread_calls.get() is self
        if is_inside:
            raise ClientNotRunning(
                "close() inside the listener would wait for the call that it is in: set an event there, and close the"
                " consumer where it was started"
            )

    async def outcome(self, messages: list[StoredMessage], context: ConsumeContext) -> Exception | None:
        """What the listener raised, or returned to the same effect; None when all is done."""
        arguments = (messages, context) if self._wants_context else (messages,)
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            if self._on_loop:
                found = self._listener(*arguments)
            else:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._thread(), called, self._call, *arguments)
            if inspect.isawaitable(found):
                found = await awaited(found)
        except Exception as error:
            return error
        finally:
            self._tasks.discard(task)
        return None if found is None else _not_done(found)

    def _call(self, *arguments: object) -> Awaitable[Verdict] | Verdict:
        """In a thread."""
        token = _thread_calls.set(self)
        try:
            return self._listener(*arguments)
        finally:
            _thread_calls.reset(token)

    def resize(self, concurrency: int) -> None:
        """The next calls run in so many threads; those that run end where they are."""
        self._concurrency = concurrency
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    def close(self) -> None:
        """Calls in threads cannot be ended from outside: they are left alone."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    def _thread(self) -> Executor:
        if self._threads is None:
            self._threads = self._surroundings.threads(
                "bolide-listener", self._concurrency, for_application=True
            )
        return self._threads


_thread_calls: ContextVar[ListenerCalls | None] = ContextVar("_thread_calls", default=None)
"""Whose listener this thread is in."""


def _not_done(found: object) -> Exception:
    """Nobody means "done" by an error or by False; and what else is returned may be another library's "not done"."""
    if isinstance(found, type) and issubclass(found, Later | Suspend):
        found = found()
    if isinstance(found, Exception):
        return found
    return ClientError(
        "a listener returns None when all is done, Later() or Suspend() when messages are to come again, and this"
        f" one returned {checks.described(found)}"
    )


def _wants_context(listener: object) -> bool:
    """Whether it has to be called with a context, or names one.

    A second parameter with a default of its own is the application's: `lambda messages, n=n: …` is common.
    """
    value = checks.function("listener", listener, TAKES)
    try:
        own = inspect.signature(value)
    except (TypeError, ValueError):  # some compiled ones do not tell
        return False
    if _CONTEXT in own.parameters:
        checks.can_take("listener", value, 2, f"{TAKES} and a context")
        return True
    try:
        own.bind(None)
    except TypeError:
        checks.can_take("listener", value, 2, f"{TAKES}, or that and a context")
        return True
    return False
