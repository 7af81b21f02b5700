"""Large answers: those that grow with the number of topics, groups or queues.

Their bodies are made piece by piece, and answer after answer: however many ask at once, a turn of the event loop makes
one piece.  Connections take turns, so who asks for one answer waits for one of each other connection at most.  A
connection can have a few of them in the making.  One that has not read what it was sent before gets none meanwhile,
and one that has closed gets no more pieces.

No answer is larger than a frame may be: who asked would close the connection, and all that is under way on it would
fail.  An error in words takes its place; a part of the list would look like the whole.
"""

import asyncio
from collections.abc import Iterable
from io import BytesIO

from bolide.model.errors import RequestError, TooBusy
from bolide.model.limits import LARGE_ANSWER_BYTES_MAX, LARGE_ANSWERS_MAX
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.turns import in_turns
from bolide.wire.command import Command


class _Line:
    """The answers that one connection waits for."""

    def __init__(self) -> None:
        self.length = 0
        self.turn = asyncio.Lock()


class LargeAnswers:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._lines: dict[Link, _Line] = {}

    async def make(self, link: Link, request: Command, pieces: Iterable[bytes]) -> Command | None:
        """The answer with these pieces as its body; None when nobody wants it, or is there any more to read it."""
        if request.is_one_way:
            return None
        line = self._lines.setdefault(link, _Line())
        if line.length >= LARGE_ANSWERS_MAX:
            raise TooBusy(f"{LARGE_ANSWERS_MAX} large answers to this connection are being made already")
        line.length += 1
        try:
            async with line.turn:
                while link.is_congested and link.is_open:
                    await link.drained()
                async with self._turn:
                    body = BytesIO()
                    await in_turns(_collected(link, pieces, body))
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[link]
        return request.answer(body=body.getvalue()) if link.is_open else None


def _collected(link: Link, pieces: Iterable[bytes], body: BytesIO) -> Steps[None]:
    """One piece per step, while somebody waits for them."""
    left = iter(pieces)
    while link.is_open and (piece := next(left, None)) is not None:
        if body.tell() + len(piece) > LARGE_ANSWER_BYTES_MAX:
            raise RequestError(
                f"the answer would have more than {LARGE_ANSWER_BYTES_MAX} bytes, which clients do not take: ask for"
                " less, such as the topics of one cluster, or delete what nobody uses"
            )
        body.write(piece)  # at the end it is there: joining megabytes would be the longest step of all
        yield
