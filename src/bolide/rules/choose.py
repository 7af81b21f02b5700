"""Which queue the next message goes to: one after the other, and after a failure not to the same broker."""

from collections.abc import Sequence

from bolide.model.offsets import MessageQueue


class QueueTurn:
    """Round robin over a topic's queues.  `start` should differ between producers, so that they spread."""

    __slots__ = ("_turn",)

    def __init__(self, start: int = 0) -> None:
        self._turn = start

    def next(self, queues: Sequence[MessageQueue], avoid_broker: str | None = None) -> MessageQueue:
        """The next queue; one of another broker than `avoid_broker` if there is any."""
        assert queues, "the caller has found at least one queue"
        for _ in queues:
            queue = self._step(queues)
            if queue.broker_name != avoid_broker:
                return queue
        return self._step(queues)

    def _step(self, queues: Sequence[MessageQueue]) -> MessageQueue:
        queue = queues[self._turn % len(queues)]
        self._turn += 1
        return queue
