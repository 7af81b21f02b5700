"""SharedRun: work that looks through everything there is, asked for by many and done once for all who wait.

Whoever asks gets a run that begins after he has asked, so what he did before is seen by it: the next one, which he
shares with all who ask until it begins.  So there are two at most, one under way and one behind it, however many ask.
A run belongs to none of them: who no longer waits ends it for nobody else.
"""

import asyncio
from collections.abc import Awaitable, Callable

from bolide.net.trouble import goes_on


class SharedRun:
    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._wanted = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # for a run that has not begun

    def done(self) -> "asyncio.Future[None]":
        """When a run that begins after this has ended; with its error, if it fails."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._wanted.set()
        return done

    @goes_on("work that requests share")
    async def run(self) -> None:
        """What the owner runs as a task: work whenever somebody waits."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            waiting, self._waiting = self._waiting, []
            if all(done.done() for done in waiting):
                continue
            try:
                await self._work()
            except Exception as error:
                _tell(waiting, error)
            else:
                _tell(waiting, None)


def _tell(waiting: list["asyncio.Future[None]"], error: Exception | None) -> None:
    for done in waiting:
        if done.done():
            continue
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)
