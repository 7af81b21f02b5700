"""Large answers: those that grow with the number of topics, groups or queues.

Their bodies are made piece by piece: however many ask at once, a turn of the event loop makes one piece, now for this
connection and then for the next.  So who asks for little waits for one piece of each other connection at a time, and
not for whole answers.  Of those that become long only a few are in the making, since each is kept until it is whole.

A connection can have a few answers in the making, one after the other.  One that has not read what it was sent before
gets none meanwhile, and one that has closed gets no more pieces.

No answer is larger than a frame may be: who asked would close the connection, and all that is under way on it would
fail.  An error in words takes its place; a part of the list would look like the whole.
"""

import asyncio
from collections.abc import Iterable, Iterator
from io import BytesIO

from bolide.model.errors import RequestError, TooBusy
from bolide.model.limits import (
    LARGE_ANSWER_BYTES_MAX,
    LARGE_ANSWER_SMALL_BYTES,
    LARGE_ANSWERS_AT_ONCE,
    LARGE_ANSWERS_MAX,
)
from bolide.net.link import Link
from bolide.net.turns import next_turn
from bolide.wire.command import Command


class _Line:
    """The answers that one connection waits for."""

    def __init__(self) -> None:
        self.length = 0
        self.turn = asyncio.Lock()


class LargeAnswers:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()  # it goes to whoever has waited longest
        self._long_ones = asyncio.Semaphore(LARGE_ANSWERS_AT_ONCE)
        self._lines: dict[Link, _Line] = {}

    async def make(self, link: Link, request: Command, pieces: Iterable[bytes]) -> Command | None:
        """The answer with these pieces as its body; None when nobody wants it, or is there any more to read it."""
        if request.is_one_way:
            return None
        line = self._lines.setdefault(link, _Line())
        if line.length >= LARGE_ANSWERS_MAX:
            raise TooBusy(f"{LARGE_ANSWERS_MAX} large answers to this connection are being made already")
        line.length += 1
        body = BytesIO()  # at the end it is there: joining megabytes would be the longest step of all
        try:
            async with line.turn:
                while link.is_congested and link.is_open:
                    await link.drained()
                await self._collect(link, iter(pieces), body)
        finally:
            link.account.release(body.tell())
            line.length -= 1
            if not line.length:
                del self._lines[link]
        return request.answer(body=body.getvalue()) if link.is_open else None

    async def _collect(self, link: Link, pieces: Iterator[bytes], body: BytesIO) -> None:
        while body.tell() <= LARGE_ANSWER_SMALL_BYTES:
            if not await self._add_piece(link, pieces, body):
                return
        async with self._long_ones:
            while await self._add_piece(link, pieces, body):
                pass

    async def _add_piece(self, link: Link, pieces: Iterator[bytes], body: BytesIO) -> bool:
        """Whether there was one more, and somebody who waits for it."""
        async with self._turn:
            piece = next(pieces, None) if link.is_open else None
            if piece is None:
                return False
            if body.tell() + len(piece) > LARGE_ANSWER_BYTES_MAX:
                raise RequestError(
                    f"the answer would have more than {LARGE_ANSWER_BYTES_MAX} bytes, which clients do not take: ask"
                    " for less, such as the topics of one cluster, or delete what nobody uses"
                )
            body.write(piece)
            link.account.charge(len(piece))
            await next_turn()
        return True
