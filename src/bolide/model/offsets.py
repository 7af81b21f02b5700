"""Four offsets, four types, and the queue they belong to."""

from dataclasses import dataclass
from typing import NewType

from bolide.model.printable import printable

LogOffset = NewType("LogOffset", int)
"""A byte position in the commit log (RocketMQ: physical offset)."""

QueueOffset = NewType("QueueOffset", int)
"""The number of an entry in one queue (RocketMQ: logic offset)."""

GroupOffset = NewType("GroupOffset", int)
"""How far a group has come in one queue: the next `QueueOffset` it wants."""


@dataclass(frozen=True, slots=True, order=True)
class MessageQueue:
    """One queue of a topic on one broker.  The order is the one that all members of a group must share.

    Example::

        for queue in reader.queues("orders"):
            print(queue.topic, queue.broker_name, queue.queue_id)
    """

    topic: str
    broker_name: str
    queue_id: int

    def __str__(self) -> str:
        return printable(f"{self.topic}@{self.broker_name}:{self.queue_id}")
