"""Topics on a broker: the whole table (21), one topic (351), bounds of its queues (202), groups of a topic (300)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import java_json, json_pieces
from bolide.model.config_json import topic_as_json, topic_from_json
from bolide.model.errors import InvalidRequest
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.wire.bodies.members import number, parse_answer, parse_object, table, texts
from bolide.wire.bodies.queue import queue_as_key, queue_from_key


@dataclass(frozen=True, slots=True)
class QueueBounds:
    """One queue's offsets, and when its last message was stored (RocketMQ: TopicOffset)."""

    offset_min: int
    offset_max: int
    last_stored_ms: int

    def as_json(self) -> dict[str, int]:
        return {
            "lastUpdateTimestamp": self.last_stored_ms,
            "maxOffset": self.offset_max,
            "minOffset": self.offset_min,
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "QueueBounds":
        return cls(
            offset_min=number(members, "minOffset"),
            offset_max=number(members, "maxOffset"),
            last_stored_ms=number(members, "lastUpdateTimestamp"),
        )


def topic_stats_pieces(
    queues: Iterable[tuple[MessageQueue, QueueBounds]], per_second: float = 0.0
) -> Iterator[bytes]:
    """The answer to 202 (RocketMQ: TopicStatsTable); `per_second` is how fast messages come."""
    rows = ((queue_as_key(queue), bounds.as_json()) for queue, bounds in queues)
    return json_pieces.compact({"offsetTable": json_pieces.Entries(rows), "topicPutTps": per_second})


def decode_topic_stats(body: bytes) -> dict[MessageQueue, QueueBounds]:
    members = parse_object(body, "the topic's state", dialect_bytes_max=None)  # a topic may have many queues
    queues = table(members, "offsetTable")
    return {queue_from_key(key): QueueBounds.from_json(table(queues, key)) for key in queues}


def encode_topic_config(config: TopicConfig) -> bytes:
    """The answer to 351."""
    return java_json.dumps(topic_as_json(config))


def decode_topic_config(body: bytes) -> TopicConfig:
    return topic_from_json(parse_answer(body, "the topic"))


def decode_topic_table(body: bytes) -> dict[str, TopicConfig]:
    """From the answer to 21 (RocketMQ: TopicConfigSerializeWrapper)."""
    topics = table(parse_answer(body, "the topic table"), "topicConfigTable")
    return {name: topic_from_json(topics[name]) for name in topics}


def group_list_pieces(groups: Iterable[str]) -> Iterator[bytes]:
    """The answer to 300 (RocketMQ: GroupList)."""
    return json_pieces.compact({"groupList": json_pieces.Items(groups)})


def decode_groups(body: bytes) -> list[str]:
    return texts(parse_answer(body, "the group list"), "groupList")


def parse_attribute_changes(changes: str) -> dict[str, str]:
    """`+key=value,-key` (field `attributes` of 17) as signed keys and their values, the form of group bodies (200)."""
    parsed: dict[str, str] = {}
    for change in filter(None, changes.split(",")):
        key, separator, value = change.partition("=")
        if change[0] not in "+-" or bool(separator) != (change[0] == "+"):
            raise InvalidRequest(f"{change[:64]!r} is neither +key=value nor -key")
        parsed[key] = value
    return parsed


def alter_attributes(current: Mapping[str, str], changes: Mapping[str, str]) -> dict[str, str]:
    """Attributes after changes by signed keys: plus sets one, minus removes it."""
    altered = dict(current)
    for signed, value in changes.items():
        sign, key = signed[:1], signed[1:]
        if not key or sign not in ("+", "-"):
            raise InvalidRequest(f"the attribute {signed[:64]!r} begins with neither + nor -")
        if sign == "+":
            altered[key] = value
        elif altered.pop(key, None) is None:
            raise InvalidRequest(f"the attribute {key[:64]!r} is not set and cannot be removed")
    return altered
