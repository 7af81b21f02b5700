"""Tasks: background tasks with an owner.  Nothing is started that nobody ends and awaits, and none ends unheard."""

import asyncio
import logging
from collections.abc import Coroutine

log = logging.getLogger(__name__)

CANCELLED_MS = 1_000
"""How long the work of an application may go on after it was cancelled, before nobody waits for it any more."""


class Tasks:
    """Background tasks of one owner."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order of their start, in which they end too

    def start(self, work: Coroutine[None, None, None], name: str) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def end_within(self, timeout_ms: int) -> None:
        """Wait until all have ended by themselves; cancel those that have not in time."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=timeout_ms / 1000)
        await self.close()

    async def close_within(self, timeout_ms: int) -> None:
        """The same for work of an application, which may be deaf to its cancellation: then it is left alone."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, deaf = await asyncio.wait(tasks, timeout=timeout_ms / 1000)
        if deaf:
            log.warning(
                "%d tasks go on although they were cancelled, and are left alone; one of them: %s",
                *(len(deaf), next(iter(deaf)).get_name()),
            )

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the background task %r ended with an error", task.get_name(), exc_info=error)
