"""Whole tables of a broker: its groups (201) and how far each has come (43), as tools read them."""

from typing import Any

from bolide.model.config_json import group_from_json
from bolide.model.errors import InvalidRequest
from bolide.model.topic import GroupConfig
from bolide.wire.bodies.members import as_number, parse_answer, table


def decode_group_table(body: bytes) -> dict[str, GroupConfig]:
    """RocketMQ: SubscriptionGroupWrapper."""
    groups = table(parse_answer(body, "the group table"), "subscriptionGroupTable")
    return {name: group_from_json(groups[name]) for name in groups}


def decode_offset_table(body: bytes) -> dict[tuple[str, str], dict[int, int]]:
    """RocketMQ: ConsumerOffsetSerializeWrapper.  By topic and group, the offset in each queue."""
    offsets = table(parse_answer(body, "the offset table"), "offsetTable")
    return {_topic_and_group(key): _queues(table(offsets, key)) for key in offsets}


def _topic_and_group(key: str) -> tuple[str, str]:
    topic, separator, group = key.partition("@")
    if not separator:
        raise InvalidRequest(f"{key[:64]!r} is no topic@group")
    return topic, group


def _queues(queues: dict[str, Any]) -> dict[int, int]:
    return {
        as_number(queue_id, "a queue"): as_number(offset, "an offset") for queue_id, offset in queues.items()
    }
