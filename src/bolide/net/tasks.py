"""Tasks: background tasks with an owner.  Nothing is started that nobody ends and awaits, and none ends unheard."""

import asyncio
import logging
from collections.abc import Coroutine

log = logging.getLogger(__name__)


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

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the background task %r ended with an error", task.get_name(), exc_info=error)
