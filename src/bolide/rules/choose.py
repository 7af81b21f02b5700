"""Which queue a message goes to: one after the other, and after a failure not to the same broker; or by its key."""

from collections.abc import Callable, Sequence

from bolide.model.java_hash import java_hash
from bolide.model.offsets import MessageQueue

Wish = Callable[[str], bool]
"""Whether a broker of this name would be liked."""


class QueueTurn:
    """Round robin over a topic's queues.  `start` should differ between producers, so that they spread."""

    __slots__ = ("_turn",)

    def __init__(self, start: int = 0) -> None:
        self._turn = start

    def next(
        self, queues: Sequence[MessageQueue], avoid_broker: str | None = None, wishes: Sequence[Wish] = ()
    ) -> MessageQueue:
        """The next queue; one of another broker than `avoid_broker` if there is any, and by the first wish that any of
        these fulfils.
        """
        assert queues, "the caller has found at least one queue"
        for wish in (*wishes, None):
            for _ in queues:
                queue = self._step(queues)
                if queue.broker_name != avoid_broker and (wish is None or wish(queue.broker_name)):
                    return queue
        return self._step(queues)

    def _step(self, queues: Sequence[MessageQueue]) -> MessageQueue:
        queue = queues[self._turn % len(queues)]
        self._turn += 1
        return queue


def hashed(key: str, queues: Sequence[MessageQueue]) -> MessageQueue:
    """The queue of a key, the same as in Java (RocketMQ: SelectMessageQueueByHash)."""
    return queues[abs(java_hash(key)) % len(queues)]
