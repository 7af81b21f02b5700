"""Locks for ordered consumption: a queue belongs to one member of its group (41, 42)."""

from bolide.broker.part import Part, Work, every
from bolide.broker.state import BrokerState
from bolide.model.addresses import host_of
from bolide.model.names import check_group, check_id
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.turns import Slices
from bolide.wire.bodies.lock import LockRequest, encode_locked
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

SWEEP_S = 10.0
EXPIRED_PER_TURN = 2048


class Locks(Part):
    """A lock ends by its owner's word or by time, never with a connection: whoever was cut off for a moment still
    works on the queue, and trusts its lock."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.locks = state.locks
        self._expiring = Slices(self._expire_some)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {RequestCode.LOCK_BATCH_MQ: self.lock, RequestCode.UNLOCK_BATCH_MQ: self.unlock}

    def work(self) -> list[Work]:
        return [("old locks", every(SWEEP_S, self.expire))]

    def close(self) -> None:
        self._expiring.close()

    def expire(self) -> None:
        """Forget locks that nobody has asked for in a long time."""
        self._expiring.go()

    def lock(self, link: Link, request: Command) -> Command:
        """41: the answer lists what the client now holds; what it could not get is simply not in it.

        A queue is known by the name that the topic table has, so that a lock keeps no text of the request but the
        client's id and the group's name.
        """
        asked = _lock_request(request)
        known = {}
        for queue in asked.queues:
            topic = self._state.topics.get(queue.topic)
            if topic is not None and 0 <= queue.queue_id < topic.queues:
                known[topic.name, queue.queue_id] = queue
        held = self.locks.lock(
            asked.group, asked.client_id, known, self._state.clock.monotonic_ms(), host=host_of(link.remote)
        )
        return request.answer(body=encode_locked(known[queue] for queue in held))

    def unlock(self, link: Link, request: Command) -> Command:
        """42."""
        asked = _lock_request(request)
        queues = ((queue.topic, queue.queue_id) for queue in asked.queues)
        self.locks.unlock(asked.group, asked.client_id, queues)
        return request.answer()

    def _expire_some(self) -> bool:
        return self.locks.expire(self._state.clock.monotonic_ms(), EXPIRED_PER_TURN)


def _lock_request(request: Command) -> LockRequest:
    asked = LockRequest.decode(request.body)
    check_group(asked.group)
    check_id("client id", asked.client_id)
    return asked
