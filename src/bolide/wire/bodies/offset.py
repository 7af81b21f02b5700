"""A group's progress by queue: the answer to 208."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import json_pieces
from bolide.model.offsets import MessageQueue
from bolide.wire.bodies.members import number, parse_object, table
from bolide.wire.bodies.queue import queue_as_key, queue_from_key


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """How far a group is behind in one queue (RocketMQ: OffsetWrapper)."""

    broker_offset: int
    """The next offset that a message will get."""
    group_offset: int
    pull_offset: int
    last_consumed_ms: int
    """When the last message that the group has finished was stored; 0 when there is none."""

    @property
    def behind(self) -> int:
        return self.broker_offset - self.group_offset

    def as_json(self) -> dict[str, int]:
        return {
            "brokerOffset": self.broker_offset,
            "consumerOffset": self.group_offset,
            "lastTimestamp": self.last_consumed_ms,
            "pullOffset": self.pull_offset,
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "QueueProgress":
        group_offset = number(members, "consumerOffset")
        return cls(
            broker_offset=number(members, "brokerOffset"),
            group_offset=group_offset,
            pull_offset=number(members, "pullOffset", group_offset),
            last_consumed_ms=number(members, "lastTimestamp"),
        )


def consume_stats_pieces(
    queues: Iterable[tuple[MessageQueue, QueueProgress]], per_second: Callable[[], float] = float
) -> Iterator[bytes]:
    """RocketMQ: ConsumeStats; `per_second` tells how fast the group consumes, once all queues were asked for."""

    def members() -> Iterator[tuple[str, object]]:
        rows = ((queue_as_key(queue), progress.as_json()) for queue, progress in queues)
        yield "offsetTable", json_pieces.Entries(rows)
        yield "consumeTps", per_second()

    return json_pieces.compact(json_pieces.Entries(members()))


def decode_consume_stats(body: bytes) -> dict[MessageQueue, QueueProgress]:
    members = parse_object(body, "the progress", dialect_bytes_max=None)  # a group may have many queues
    queues = table(members, "offsetTable")
    return {queue_from_key(key): QueueProgress.from_json(table(queues, key)) for key in queues}
