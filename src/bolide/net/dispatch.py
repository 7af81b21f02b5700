"""From a request to its handler, and from an error to its answer: done once, here.

The guard is asked before the handler runs.  A handler takes the link and the request and returns the answer, None when
it will answer later, or an awaitable of either.  Plain functions are called in the order of the connection's frames,
so a heartbeat is in force before the pull that follows it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from bolide.machines.shares import room
from bolide.model.addresses import host_of
from bolide.model.errors import BolideError, CodeNotSupported, TooBusy
from bolide.model.limits import IN_FLIGHT_MAX, IN_FLIGHT_OF_ONE_MAX
from bolide.model.response_code import ResponseCode
from bolide.net.error_codes import response_code_of
from bolide.net.guard import Guard, OpenHouse
from bolide.net.link import Link
from bolide.net.registry import Outcome, Registry
from bolide.wire.absent import ABSENT
from bolide.wire.command import Command

log = logging.getLogger(__name__)


class Dispatcher:
    """Takes every request that is not served in bulk."""

    def __init__(
        self,
        registry: Registry,
        guard: Guard | None = None,
        patience_ms: Callable[[int], int | None] = lambda code: None,
    ) -> None:
        """`patience_ms` is how long a request may have waited for its turn and still be served; None: without end."""
        self._registry = registry
        self._guard = guard or OpenHouse()
        self._patience_ms = patience_ms
        self._tasks: dict[asyncio.Task[None], str] = {}  # with the host that asked
        self._held: Counter[str] = Counter()  # by host

    @property
    def codes(self) -> frozenset[int]:
        return frozenset(self._registry)

    def on_request(self, link: Link, request: Command) -> None:
        row = self._registry.find(request.code)
        try:
            if row is None:
                raise CodeNotSupported(_why_not(request.code))
            if link.waited_ms and not request.is_one_way and self.is_overdue(link.waited_ms, request.code):
                raise TooBusy(
                    "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, period in queue: "
                    f"{link.waited_ms}ms, size of queue: {len(link.round)}"
                )
            self._guard.check(link, row.need, request)
            self._check_room(link)  # before anything is done: who is told to try again does
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
            self._tasks[task] = host = host_of(link.remote)
            self._held[host] += 1
            link.began(request)
            task.add_done_callback(lambda task: self._ended(task, link, request, outcome))

    def _check_room(self, link: Link) -> None:
        """A host has no more requests waiting than stays free for others, so that one cannot keep all others out."""
        count = len(self._tasks)
        if count < IN_FLIGHT_OF_ONE_MAX:
            return
        if not room(self._held[host_of(link.remote)], IN_FLIGHT_MAX, count, small=IN_FLIGHT_OF_ONE_MAX):
            raise TooBusy("too many requests are waiting, or too many of this host's: try again")

    def is_overdue(self, waited_ms: int, code: int) -> bool:
        """Whether a request has waited for longer than its client has patience; one-way ones are served all the same:
        nobody would hear that they were not."""
        patience_ms = self._patience_ms(code)
        return patience_ms is not None and waited_ms > patience_ms

    async def close(self) -> None:
        """End what is still waiting."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(
        self, task: "asyncio.Task[None]", link: Link, request: Command, outcome: Awaitable[Outcome]
    ) -> None:
        host = self._tasks.pop(task)
        self._held[host] -= 1
        if not self._held[host]:
            del self._held[host]
        if asyncio.iscoroutine(outcome):  # one that never began, because the server is being closed
            outcome.close()
        link.ended(request)

    async def _finish(self, link: Link, request: Command, outcome: Awaitable[Outcome]) -> None:
        try:
            _answer(link, request, await link.round.charged(link, outcome))
        except Exception as error:
            _answer(link, request, error_answer(request, error))


def _why_not(code: int) -> str:
    absent = ABSENT.get(code)
    said = f"request code {code} is not supported"
    return said if absent is None else f"{said} ({absent[0]}): {absent[1]}"


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
