"""Trouble: what goes wrong in the background, and how work goes on all the same.

Background work has nobody whom it could fail: without it a server looks healthy and is not.  So it says what it met,
once and not every time, and tries again.

`Trouble` is for our own work, which is in one state at a time.  What strangers can make a server say goes through
`net/provoked.py`, which bounds all of it together; what servers can make a client say through `client/rounds.Seldom`.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from bolide.model.errors import BolideError
from bolide.net.ticks import pause

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""How long work that ended with an error rests before it begins again."""

WELL_S = 600.0
"""Work that ran for so long had got over its last error: the same one is said again."""

S = TypeVar("S")
Run = Callable[[S], Coroutine[Any, Any, None]]


class Trouble:
    """Of one piece of work.  It is said when it begins, when it becomes another one, and when it is over."""

    def __init__(
        self,
        log: logging.Logger,
        text: str,
        level: int = logging.ERROR,
        *,
        over_level: int = logging.WARNING,
    ) -> None:
        """`text` says what does not work; the reason is put behind it."""
        self._log = log
        self._text = text
        self._level = level
        self._over_level = over_level
        self.reason: str | None = None
        """In words, while it lasts."""

    def met(self, why: Exception | str) -> str:
        """Gives the reason in words, for whoever waits."""
        unforeseen = None if isinstance(why, BolideError | OSError | str) else why
        reason = (isinstance(why, OSError) and why.strerror) or str(why) or type(why).__name__
        if reason != self.reason:
            self.reason = reason
            self._log.log(self._level, "%s: %s", self._text, reason, exc_info=unforeseen)
        return reason

    def over(self) -> None:
        """It works, again or still."""
        if self.reason is not None:
            self._log.log(self._over_level, "%s: the trouble has passed, it works again", self._text)
            self.reason = None

    def __bool__(self) -> bool:
        """Whether it lasts."""
        return self.reason is not None


def goes_on(what: str) -> Callable[[Run[S]], Run[S]]:
    """For a method that runs until it is cancelled: one that ends with an error begins again a moment later."""

    def around(run: Run[S]) -> Run[S]:
        @functools.wraps(run)
        async def going_on(self: S) -> None:
            trouble = Trouble(log, f"{what} met an error and begins again")
            time = asyncio.get_running_loop().time
            while True:
                began = time()
                try:
                    return await run(self)
                except Exception as error:
                    if time() - began >= WELL_S:
                        trouble.over()
                    trouble.met(error)
                await pause(AGAIN_S)

        return going_on

    return around
