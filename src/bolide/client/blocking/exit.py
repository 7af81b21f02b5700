"""The end of a program that has not closed its producers: what `send_soon` has collected is sent, or said to be lost.

Python runs this while the thread of the clients still lives.  A process that was forked leaves alone what was given to
its parent.
"""

import atexit
import logging
import os
from asyncio import gather
from weakref import WeakKeyDictionary

from bolide.client.loop_thread import LoopThread
from bolide.client.soon import Soon

log = logging.getLogger(__name__)

STUCK_MS = 1_000
"""How much later than it should the loop may answer: a callback that never returns must not keep the program."""


class _AtExit:
    """The producers, each with its loop; those that collect something are held by what is to be done there."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[Soon, LoopThread] = WeakKeyDictionary()

    def add(self, loop: LoopThread, soon: Soon) -> None:
        self._loops[soon] = loop

    def end(self) -> None:
        ours = {soon: loop for soon, loop in list(self._loops.items()) if loop.pid == os.getpid()}
        waiting = [soon for soon in ours if soon.pool.messages]
        if not waiting:
            return
        lost = sum(soon.pool.messages for soon in waiting)
        try:
            lost = ours[waiting[0]].run_within(
                _sent(waiting), max(soon.time_ms for soon in waiting) + STUCK_MS
            )
        except TimeoutError:
            pass  # none of them, for all that is known
        finally:  # of a Ctrl-C too
            if lost:
                log.warning(
                    "%d messages of send_soon were never acknowledged before the program ended:"
                    " close the producer, or use `with`",
                    lost,
                )


async def _sent(waiting: list[Soon]) -> int:
    return sum(await gather(*(soon.at_exit() for soon in waiting)))


_at_exit = _AtExit()
atexit.register(_at_exit.end)


def send_at_exit(loop: LoopThread, soon: Soon) -> None:
    """Do so for this producer's, unless it is closed before."""
    _at_exit.add(loop, soon)
