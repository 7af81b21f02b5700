"""Fair turns: one at a time does something, in the order of a `FairLine`; a lock would serve first who comes first."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bolide.machines.fair_line import FairLine
from bolide.model.addresses import host_of
from bolide.net.link import Link


class FairTurns:
    def __init__(self) -> None:
        self._line: FairLine[asyncio.Future[None]] = FairLine()
        self._is_taken = False

    @asynccontextmanager
    async def turn(self, link: Link) -> AsyncIterator[None]:
        """Who has more to do than one turn may take comes again, behind all others."""
        if self._is_taken:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._line.add(host_of(link.remote), link, mine)
            try:
                await mine
            except asyncio.CancelledError:
                if not mine.cancelled():  # it was just given
                    self._pass_on()
                raise
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        while self._line:
            waiter = self._line.next()
            if not waiter.done():
                waiter.set_result(None)  # it stays taken meanwhile
                return
        self._is_taken = False
