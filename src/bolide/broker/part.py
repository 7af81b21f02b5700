"""Part: one feature of a broker, with everything that the rest of the house has to know of it.

A broker is a list of parts (`parts.py`).  Each is built on the shared state when the store is open, and says what it
brings: handlers of requests, work in the background, figures for operators.  What it does not bring it need not
mention.  A table with a file of its own it opens by `state.files`.
"""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.ticks import ticks
from bolide.net.trouble import Trouble
from bolide.wire.codes import RequestCode

log = logging.getLogger(__name__)

Work = tuple[str, Coroutine[None, None, None]]
"""Background work and what it is called in the log; it runs until it is cancelled."""


class Part:
    """What a part may bring.  Parts override what they need."""

    def handlers(self) -> Mapping[RequestCode, Handler]:
        """The requests that it serves."""
        return {}

    def work(self) -> Sequence[Work]:
        """What it does in the background while the broker runs."""
        return ()

    def figures(self) -> Mapping[str, str]:
        """Its state for operators, under the names that admin tools know (request 28)."""
        return {}

    def connection_lost(self, link: Link) -> None:
        """A connection has closed."""

    def close(self) -> None:
        """The broker stops: no more requests come, and the background work has ended."""


P = TypeVar("P", bound=Part)


async def every(seconds: float, work: Callable[[], object]) -> None:
    """Background work that is one plain call now and then."""
    trouble = Trouble(log, "background work failed and is tried again")
    async for _ in ticks(seconds):
        try:
            work()
        except Exception as error:  # a broker without it would look healthy and not be it
            trouble.met(error)
        else:
            trouble.over()
