"""UnderWay: requests that are not answered yet, bounded in number and in bytes."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from bolide.net.ticks import pause


class UnderWay:
    """Whoever sends waits for room, and starts."""

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._sizes: dict[asyncio.Task[None], int] = {}
        self._bytes = 0

    async def room(self, size: int) -> None:
        """Until a request of this size may go; one may always go alone."""
        while self._sizes and (len(self._sizes) >= self._count_max or self._bytes + size > self._bytes_max):
            await self._some_done()

    async def start(self, work: Coroutine[Any, Any, None], size: int) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._sizes[task] = size
        self._bytes += size
        await pause(0)  # so that it is written while the next one is collected
        return task

    async def all_done(self) -> None:
        while self._sizes:
            await self._some_done()

    async def abandon(self) -> None:
        """Nobody wants to know any more: end what is under way."""
        for task in self._sizes:
            task.cancel()
        await asyncio.gather(*self._sizes, return_exceptions=True)

    async def _some_done(self) -> None:
        done, _ = await asyncio.wait(self._sizes, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            self._bytes -= self._sizes.pop(task)
            task.result()
