"""QueueChanges: tells an application which queues of a topic are its own now.

One call after the other, each with the newest state of its topic: what changes while a call runs is told once, behind
it.  A plain function is called in a thread of its own, a coroutine function on the event loop.  One that raises is
said in the log, and nothing else comes of it.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

from bolide.client import checks
from bolide.client.application import Calls
from bolide.model.offsets import MessageQueue
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import CANCELLED_MS, Tasks

log = logging.getLogger(__name__)

QueuesListener = Callable[[str, list[MessageQueue], list[MessageQueue]], Awaitable[None] | None]
"""Takes a topic, all its queues and those that belong to this member (RocketMQ: MessageQueueListener)."""

_TAKES = "a topic, all its queues and those of this member"


class QueueChanges:
    """News for one listener; without one there are none."""

    def __init__(self, listener: QueuesListener | None, surroundings: Surroundings) -> None:
        if listener is not None:
            function = checks.function("on_queues_changed", listener, _TAKES)
            checks.can_take("on_queues_changed", function, 3, _TAKES)
        self._listener = listener
        self._news: dict[str, tuple[list[MessageQueue], list[MessageQueue]]] = {}
        self._is_telling = False
        self._tasks = Tasks()
        self._calls = Calls(surroundings, "bolide-queues", 1)

    def tell(self, topic: str, queues: Sequence[MessageQueue], ours: Sequence[MessageQueue]) -> None:
        """The listener hears of it soon."""
        if self._listener is None:
            return
        self._news[topic] = list(queues), list(ours)
        if not self._is_telling:
            self._is_telling = True
            self._tasks.start(self._tell_all(self._listener), "news of queues")

    async def close(self) -> None:
        """Nothing is told any more."""
        await self._tasks.close_within(CANCELLED_MS)
        self._calls.close()

    async def _tell_all(self, listener: QueuesListener) -> None:
        try:
            while self._news:
                topic = next(iter(self._news))
                await self._call(listener, topic, *self._news.pop(topic))
        finally:
            self._is_telling = False

    async def _call(
        self, listener: QueuesListener, topic: str, queues: list[MessageQueue], ours: list[MessageQueue]
    ) -> None:
        try:
            await self._calls.call(listener, topic, queues, ours)
        except Exception:
            log.exception("on_queues_changed failed for %s", topic)
