"""From a request to its handler, and from an error to its answer: done once, here.

The guard is asked before the handler runs.  A handler takes the link and the request and returns the answer, None when
it will answer later, or an awaitable of either.  Plain functions are called in the order of the connection's frames,
so a heartbeat is in force before the pull that follows it.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from bolide.model.errors import BolideError, CodeNotSupported, TooBusy
from bolide.model.limits import IN_FLIGHT_MAX
from bolide.model.response_code import ResponseCode
from bolide.net.error_codes import response_code_of
from bolide.net.guard import Guard, OpenHouse
from bolide.net.link import Link
from bolide.net.registry import Outcome, Registry
from bolide.wire.command import Command

log = logging.getLogger(__name__)


class Dispatcher:
    """Takes every request that is not served in bulk."""

    def __init__(self, registry: Registry, guard: Guard | None = None) -> None:
        self._registry = registry
        self._guard = guard or OpenHouse()
        self._tasks: dict[asyncio.Task[None], None] = {}

    @property
    def codes(self) -> frozenset[int]:
        return frozenset(self._registry)

    def on_request(self, link: Link, request: Command) -> None:
        row = self._registry.find(request.code)
        try:
            if row is None:
                raise CodeNotSupported(f"request code {request.code} is not supported")
            self._guard.check(link, row.need, request)
            if len(self._tasks) >= IN_FLIGHT_MAX:  # before anything is done: who is told to try again does
                raise TooBusy("too many requests are waiting")
            outcome = row.handler(link, request)
        except Exception as error:
            _answer(link, request, error_answer(request, error))
            return
        if outcome is None or isinstance(outcome, Command):
            _answer(link, request, outcome)
        else:
            task = asyncio.get_running_loop().create_task(
                self._finish(link, request, outcome), name=f"request {request.code}"
            )
            self._tasks[task] = None
            link.began(request)
            task.add_done_callback(lambda task: self._ended(task, link, request))

    async def close(self) -> None:
        """End what is still waiting."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[None]", link: Link, request: Command) -> None:
        del self._tasks[task]
        link.ended(request)

    async def _finish(self, link: Link, request: Command, outcome: Awaitable[Outcome]) -> None:
        try:
            _answer(link, request, await link.round.charged(link, outcome))
        except Exception as error:
            _answer(link, request, error_answer(request, error))


def error_answer(request: Command, error: Exception) -> Command:
    """The response that an error becomes."""
    code = response_code_of(error)
    if code is not None:
        return request.answer(code, remark=str(error))
    if not isinstance(error, BolideError):
        log.error("request %d failed", request.code, exc_info=error)
    remark = f"{type(error).__name__}: {error}"
    return request.answer(ResponseCode.SYSTEM_ERROR, remark=remark)


def _answer(link: Link, request: Command, answer: Any) -> None:
    if answer is not None and not request.is_one_way:
        link.answer(answer)
