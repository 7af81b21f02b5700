"""Bodies that clients read: routes (105) and members of a group (38).  What is none is a `ProtocolError`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import java_json
from bolide.model.errors import ProtocolError, RequestError
from bolide.model.limits import ANSWER_DIALECT_BYTES_MAX, TOLD_QUEUES_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Permission
from bolide.wire.bodies.group import decode_member_ids
from bolide.wire.bodies.members import as_number
from bolide.wire.bodies.route import MASTER_ID


@dataclass(frozen=True, slots=True)
class RouteQueues:
    """How many queues of a topic one broker name has."""

    broker_name: str
    read_queues: int
    write_queues: int
    perm: int


@dataclass(frozen=True, slots=True)
class Route:
    """Where a topic lives.  `brokers` is broker name to broker id to address; id 0 is the master."""

    queues: tuple[RouteQueues, ...]
    brokers: Mapping[str, Mapping[int, str]]

    def readable(self, topic: str) -> list[MessageQueue]:
        """The queues that consumers share, in their common order."""
        return [
            MessageQueue(topic, part.broker_name, queue_id)
            for part in self.queues
            if part.perm & Permission.READ and part.broker_name in self.brokers
            for queue_id in range(part.read_queues)
        ]

    def writable(self, topic: str, queues_max: int = TOLD_QUEUES_MAX) -> list[MessageQueue]:
        """The queues that can be sent to: permitted, and with a master to send to."""
        return [
            MessageQueue(topic, part.broker_name, queue_id)
            for part in self.queues
            if part.perm & Permission.WRITE and MASTER_ID in self.brokers.get(part.broker_name, ())
            for queue_id in range(min(part.write_queues, queues_max))
        ]


def decode_route(body: bytes) -> Route:
    """TopicRouteData; broker ids may come as text or as bare numbers."""
    try:
        data = java_json.loads(body, dialect_length_max=ANSWER_DIALECT_BYTES_MAX)
        queues = [
            RouteQueues(
                str(item["brokerName"]),
                _queue_count(item["readQueueNums"]),
                _queue_count(item["writeQueueNums"]),
                as_number(item["perm"], "perm"),
            )
            for item in data.get("queueDatas") or ()
        ]
        brokers = {
            str(item["brokerName"]): {
                as_number(broker_id, "a broker id"): str(address)
                for broker_id, address in (item["brokerAddrs"] or {}).items()
            }
            for item in data.get("brokerDatas") or ()
        }
    except (AttributeError, KeyError, TypeError, ValueError, RequestError) as error:
        raise ProtocolError(f"a route that cannot be read: {error!r}") from error
    return Route(tuple(sorted(queues, key=lambda item: item.broker_name)), brokers)


def _queue_count(value: Any) -> int:
    count = as_number(value, "a number of queues")
    if not 0 <= count <= TOLD_QUEUES_MAX:
        raise ValueError(f"{count} queues")
    return count


def decode_members(body: bytes) -> list[str]:
    """Client ids of a group."""
    try:
        return decode_member_ids(body)
    except RequestError as error:
        raise ProtocolError(f"a list of members that cannot be read: {error}") from error
