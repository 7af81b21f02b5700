"""Locks on queues for ordered consumption: codes 41 and 42."""

from collections.abc import Iterable
from dataclasses import dataclass

from bolide.model import java_json
from bolide.model.errors import InvalidRequest
from bolide.model.limits import CLIENT_BODY_BYTES_MAX, LOCK_QUEUES_MAX
from bolide.model.offsets import MessageQueue
from bolide.wire.bodies.members import parse_answer, parse_object, rows, text
from bolide.wire.bodies.queue import queue_as_json, queue_from_json


@dataclass(frozen=True, slots=True)
class LockRequest:
    """Who wants to have, or gives back, which queues.  C++ leaves an empty set out."""

    group: str
    client_id: str
    queues: tuple[MessageQueue, ...]

    def encode(self) -> bytes:
        return java_json.dumps(
            {
                "clientId": self.client_id,
                "consumerGroup": self.group,
                "mqSet": [queue_as_json(queue) for queue in self.queues],
                "onlyThisBroker": False,
            }
        )

    @classmethod
    def decode(cls, body: bytes) -> "LockRequest":
        if len(body) > CLIENT_BODY_BYTES_MAX:
            raise InvalidRequest(
                f"the lock request has {len(body)} bytes; {CLIENT_BODY_BYTES_MAX} are allowed"
            )
        members = parse_object(body, "the lock request")
        queues = rows(members, "mqSet")
        if len(queues) > LOCK_QUEUES_MAX:
            raise InvalidRequest(f"{len(queues)} queues in one request; {LOCK_QUEUES_MAX} are allowed")
        return cls(
            group=text(members, "consumerGroup"),
            client_id=text(members, "clientId"),
            queues=tuple(queue_from_json(row) for row in queues),
        )


def encode_locked(queues: Iterable[MessageQueue]) -> bytes:
    """The answer to 41: what the client holds of what it asked for (RocketMQ: LockBatchResponseBody)."""
    return java_json.dumps({"lockOKMQSet": [queue_as_json(queue) for queue in queues]})


def decode_locked(body: bytes) -> list[MessageQueue]:
    return [queue_from_json(row) for row in rows(parse_answer(body, "the locks"), "lockOKMQSet")]
