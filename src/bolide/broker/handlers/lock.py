"""Locks for ordered consumption: a queue belongs to one member of its group (41, 42)."""

from bolide.broker.part import Part, Work, every
from bolide.broker.state import BrokerState
from bolide.machines.locks import QueueLocks
from bolide.model.errors import InvalidRequest
from bolide.model.names import check_group
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.wire.bodies.lock import LockRequest, encode_locked
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

SWEEP_S = 10.0


class Locks(Part):
    """A lock ends by its owner's word or by time, never with a connection: whoever was cut off for a moment still
    works on the queue, and trusts its lock."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.locks = QueueLocks()

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def work(self) -> list[Work]:
        return [("old locks", every(SWEEP_S, self.expire))]

    def expire(self) -> None:
        """Forget locks that nobody has asked for in a long time."""
        self.locks.expire(self._state.clock.monotonic_ms())

    def lock(self, link: Link, request: Command) -> Command:
        """41: the answer lists what the client now holds; what it could not get is simply not in it."""
        asked = _lock_request(request)
        known = [
            queue
            for queue in asked.queues
            if (topic := self._state.topics.get(queue.topic)) is not None
            and 0 <= queue.queue_id < topic.queues
        ]
        held = self.locks.lock(asked.group, asked.client_id, known, self._state.clock.monotonic_ms())
        return request.answer(body=encode_locked(held))

    def unlock(self, link: Link, request: Command) -> Command:
        """42."""
        asked = _lock_request(request)
        self.locks.unlock(asked.group, asked.client_id, asked.queues)
        return request.answer()


def _lock_request(request: Command) -> LockRequest:
    asked = LockRequest.decode(request.body)
    check_group(asked.group)
    if not asked.client_id:
        raise InvalidRequest("the lock request names no client")
    return asked
