"""Signals that ask a program to end, for consumers that run until one comes.

While somebody waits for them here, SIGINT (Ctrl-C) and SIGTERM do nothing but end the wait.  Afterwards they do what
they did before, so a second one ends a close that takes too long.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from queue import SimpleQueue

from bolide.model.errors import ClientNotRunning

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def caught() -> "Iterator[SimpleQueue[int]]":
    """A queue that gets their numbers; unlike an event, a handler may put into it whatever it has interrupted."""
    came: SimpleQueue[int] = SimpleQueue()
    before = _handlers()
    try:
        for number in SIGNALS:
            signal.signal(number, lambda number, _: came.put(number))
    except ValueError as error:
        raise _not_here() from error
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@asynccontextmanager
async def caught_on_loop() -> AsyncIterator[asyncio.Event]:
    """The same for the running event loop."""
    came = asyncio.Event()
    loop = asyncio.get_running_loop()
    before = _handlers()
    try:
        for number in SIGNALS:
            loop.add_signal_handler(number, came.set)
    except (ValueError, RuntimeError, NotImplementedError) as error:
        raise _not_here() from error
    try:
        yield came
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _handlers() -> "dict[signal.Signals, signal._HANDLER]":
    """What they do now; one that was not set from Python cannot be set again, and becomes the system's own."""
    return {number: signal.getsignal(number) or signal.SIG_DFL for number in SIGNALS}


def _not_here() -> ClientNotRunning:
    return ClientNotRunning(
        "run() waits for signals, and those reach the main thread only: call start() and close() here"
    )
