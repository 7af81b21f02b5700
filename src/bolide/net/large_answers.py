"""Large answers: those that grow with the number of topics, groups or queues.

Their bodies are made piece by piece: however many ask at once, a turn of the event loop makes one piece, now for this
connection and then for the next.  So who asks for little waits for one piece of each other connection at a time, and
not for whole answers.

Of an answer in the making its pieces are kept, and a copy of the names that are still to be told of.  So only some are
in the making, and a few of those that become long; one that becomes long when a few others are is thrown away, and
begins anew when its turn has come.  Who waits has nothing but its request.

A connection can have a few answers in the making, one after the other.  One that has not read what it was sent before
gets none meanwhile, and one that has closed gets no more pieces.

No answer is larger than a frame may be: who asked would close the connection, and all that is under way on it would
fail.  An error in words takes its place; a part of the list would look like the whole.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO

from bolide.model.errors import RequestError, TooBusy
from bolide.model.limits import (
    LARGE_ANSWER_BYTES_MAX,
    LARGE_ANSWER_SMALL_BYTES,
    LARGE_ANSWERS_AT_ONCE,
    LARGE_ANSWERS_BEGUN_MAX,
    LARGE_ANSWERS_MAX,
)
from bolide.net.link import Link
from bolide.wire.command import Command


class _Line:
    """The answers that one connection waits for."""

    def __init__(self) -> None:
        self.length = 0
        self.turn = asyncio.Lock()


class _Making:
    """An answer in the making: nothing is there of it before its first piece is asked for."""

    def __init__(self, link: Link, pieces: Callable[[], Iterable[bytes]]) -> None:
        self._link = link
        self._pieces = pieces
        self._left: Iterator[bytes] | None = None
        self.body = BytesIO()  # at the end it is there: joining megabytes would be the longest step of all

    def add_piece(self) -> bool:
        """Whether there was one more, and somebody who waits for it."""
        if not self._link.is_open:
            return False
        if self._left is None:
            self._left = iter(self._pieces())
        piece = next(self._left, None)
        if piece is None:
            return False
        if self.body.tell() + len(piece) > LARGE_ANSWER_BYTES_MAX:
            raise RequestError(
                f"the answer would have more than {LARGE_ANSWER_BYTES_MAX} bytes, which clients do not take: ask"
                " for less, such as the topics of one cluster, or delete what nobody uses"
            )
        self.body.write(piece)
        self._link.account.charge(len(piece))
        return True

    def throw_away(self) -> None:
        """Keep nothing; the next piece is the first one again."""
        self._link.account.release(self.body.tell())
        self._left, self.body = None, BytesIO()


class LargeAnswers:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # it goes to whoever has waited longest
        self._begun = asyncio.Semaphore(LARGE_ANSWERS_BEGUN_MAX)
        self._long_ones = asyncio.Semaphore(LARGE_ANSWERS_AT_ONCE)
        self._lines: dict[Link, _Line] = {}

    async def make(
        self, link: Link, request: Command, pieces: Callable[[], Iterable[bytes]]
    ) -> Command | None:
        """The answer with these pieces as its body; None when nobody wants it, or is there any more to read it.

        `pieces` is called when they are to be made, and perhaps a second time: what it copies is not kept by who waits.
        """
        if request.is_one_way:
            return None
        line = self._lines.setdefault(link, _Line())
        if line.length >= LARGE_ANSWERS_MAX:
            raise TooBusy(f"{LARGE_ANSWERS_MAX} large answers to this connection are being made already")
        line.length += 1
        making = _Making(link, pieces)
        try:
            async with line.turn:
                while link.is_congested and link.is_open:
                    await link.drained()
                await self._collect(making)
            return request.answer(body=making.body.getvalue()) if link.is_open else None
        finally:
            making.throw_away()
            line.length -= 1
            if not line.length:
                del self._lines[link]

    async def _collect(self, making: _Making) -> None:
        async with self._begun:
            while making.body.tell() <= LARGE_ANSWER_SMALL_BYTES:
                if not await self._add_piece(making):
                    return
        if self._long_ones.locked():
            making.throw_away()
        async with self._long_ones:
            while await self._add_piece(making):
                pass

    async def _add_piece(self, making: _Making) -> bool:
        await self._turn.acquire()
        is_more = False
        try:
            is_more = making.add_piece()
        finally:
            if is_more:  # by the loop: whoever made it may be let on late, and others would wait for him
                asyncio.get_running_loop().call_soon(self._turn.release)
            else:
                self._turn.release()
        return is_more
