"""Large answers: those that grow with the number of topics, groups or queues.

Their bodies are made piece by piece, and answer after answer: however many ask at once, a turn of the event loop makes
one piece.  A connection can have a few of them in the making, and one that has closed gets no more pieces.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from io import BytesIO

from bolide.model.errors import TooBusy
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.turns import in_turns
from bolide.wire.command import Command

WAITING_MAX = 16
"""Of one connection.  Such an answer takes megabytes, and who has not read it yet may have asked for more."""


class LargeAnswers:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._waiting: Counter[Link] = Counter()

    async def make(self, link: Link, request: Command, pieces: Iterable[bytes]) -> Command | None:
        """The answer with these pieces as its body; None when nobody is there any more to read it."""
        if self._waiting[link] >= WAITING_MAX:
            raise TooBusy(f"{WAITING_MAX} large answers to this connection are being made already")
        self._waiting[link] += 1
        try:
            async with self._turn:
                body = BytesIO()
                await in_turns(_collected(link, pieces, body))
        finally:
            self._waiting[link] -= 1
            if not self._waiting[link]:
                del self._waiting[link]
        return request.answer(body=body.getvalue()) if link.is_open else None


def _collected(link: Link, pieces: Iterable[bytes], body: BytesIO) -> Steps[None]:
    """One piece per step, while somebody waits for them."""
    left = iter(pieces)
    while link.is_open and (piece := next(left, None)) is not None:
        body.write(piece)  # at the end it is there: joining megabytes would be the longest step of all
        yield
