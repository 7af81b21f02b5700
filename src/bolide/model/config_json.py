"""Topics and groups as JSON objects: the same in `config/*.json`, in registrations and in answers to admin tools.

Writing gives RocketMQ's keys in its alphabetical order.  Reading is lenient about what is missing, strict about the
type of what is there, and keeps keys it does not know in `extras`, so that a file of another version survives us.
How large a number or a text may be the values themselves say; names from the wire go through `model.names` as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from bolide.model import java_json
from bolide.model.errors import InvalidRequest
from bolide.model.numbers import INT32_MIN, INT64_MIN, is_int64
from bolide.model.topic import GroupConfig, TopicConfig

_TOPIC_KEYS = {
    "attributes": "attributes",
    "order": "order",
    "perm": "perm",
    "readQueueNums": "read_queues",
    "topicFilterType": "filter_type",
    "topicName": "name",
    "topicSysFlag": "sys_flag",
    "writeQueueNums": "write_queues",
}
_GROUP_KEYS = {
    "attributes": "attributes",
    "brokerId": "broker_id",
    "consumeBroadcastEnable": "consume_broadcast_enable",
    "consumeEnable": "consume_enable",
    "consumeFromMinEnable": "consume_from_min_enable",
    "consumeMessageOrderly": "consume_message_orderly",
    "consumeTimeoutMinute": "consume_timeout_minute",
    "groupName": "name",
    "groupSysFlag": "group_sys_flag",
    "notifyConsumerIdsChangedEnable": "notify_consumer_ids_changed_enable",
    "retryMaxTimes": "retry_max_times",
    "retryQueueNums": "retry_queues",
    "whichBrokerWhenConsumeSlowly": "which_broker_when_consume_slowly",
}
_GROUP_DEFAULTS = {"groupRetryPolicy": {"type": "CUSTOMIZED"}}
"""Written by 5.x for every group; read back into `extras` when it says something else."""


def topic_as_json(config: TopicConfig) -> dict[str, Any]:
    """A topic as RocketMQ writes it (TopicConfig)."""
    return _as_json(config, _TOPIC_KEYS, {})


def topic_from_json(value: object) -> TopicConfig:
    """A topic from parsed JSON; `InvalidRequest` says which key is wrong."""
    return TopicConfig(**_from_json("topic", value, _TOPIC_KEYS, _TOPIC_READERS, {}))


def topic_bytes(config: TopicConfig) -> int:
    """At most so many bytes of compact JSON are a topic's in a table, which names it twice.

    What is unknown counts as in the table's file, where each part of it has a line of its own; of the rest the file has
    less than twice as much.
    """
    return _TOPIC_BYTES + len((2 * config.name + config.filter_type).encode()) + _extra_bytes(config)


def group_as_json(config: GroupConfig) -> dict[str, Any]:
    """A group as RocketMQ writes it (SubscriptionGroupConfig)."""
    return _as_json(config, _GROUP_KEYS, _GROUP_DEFAULTS)


def group_from_json(value: object) -> GroupConfig:
    """A group from parsed JSON; `InvalidRequest` says which key is wrong."""
    return GroupConfig(**_from_json("group", value, _GROUP_KEYS, _GROUP_READERS, _GROUP_DEFAULTS))


def group_bytes(config: GroupConfig) -> int:
    """The same for a group."""
    return _GROUP_BYTES + 2 * len(config.name.encode()) + _extra_bytes(config)


def _extra_bytes(config: TopicConfig | GroupConfig) -> int:
    if not config.attributes and not config.extras:
        return 0
    return len(java_json.text_of([config.attributes, config.extras], "\n\t\t").encode())


def _as_json(
    config: TopicConfig | GroupConfig, keys: Mapping[str, str], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    members = {key: getattr(config, name) for key, name in keys.items()}
    if not defaults and not config.extras:
        return members
    return dict(sorted({**members, **defaults, **config.extras}.items()))


def _from_json(
    what: str,
    value: object,
    keys: Mapping[str, str],
    readers: Mapping[str, Callable[[str, Any], Any]],
    defaults: Mapping[str, Any],
) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"a {what} is not a JSON object")
    values: dict[str, Any] = {}
    extras: dict[str, Any] = {}
    for key, item in value.items():
        name = keys.get(key)
        if name is None:
            if defaults.get(key) != item:
                extras[key] = item
        elif item is not None:
            values[name] = readers[name](key, item)
    if "name" not in values:
        raise InvalidRequest(f"a {what} has no name")
    return {**values, "extras": extras}


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{key} is not text")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{key} is neither true nor false")
    return value


def _number(key: str, value: Any) -> int:
    if not is_int64(value):
        raise InvalidRequest(f"{key} is not a number")
    return value


def _attributes(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{key} is not a JSON object")
    return {str(name): _text(f"{key}.{name}", text) for name, text in value.items()}


def _readers_of(config: type) -> dict[str, Callable[[str, Any], Any]]:
    """How to read each field, chosen by the type of its default."""
    by_type: dict[type, Callable[[str, Any], Any]] = {str: _text, bool: _flag, int: _number}
    readers: dict[str, Callable[[str, Any], Any]] = {"name": _text, "attributes": _attributes}
    for item in fields(config):
        default = item.default
        kind = next((kind for kind in (bool, int, str) if isinstance(default, kind)), None)
        if kind is not None:
            readers[item.name] = by_type[kind]
    return readers


_TOPIC_READERS = _readers_of(TopicConfig)
_GROUP_READERS = _readers_of(GroupConfig)


def _bytes_beside_texts(members: dict[str, Any], texts: int, widest: int) -> int:
    """In a table, with numbers as long as they get, and without texts of so many characters."""
    numbers = {
        key for key, value in members.items() if isinstance(value, int) and not isinstance(value, bool)
    }
    return len(java_json.dumps({"": {**members, **dict.fromkeys(numbers, widest)}})) - texts


_TOPIC_BYTES = _bytes_beside_texts(topic_as_json(TopicConfig("t", filter_type="F")), 2, INT32_MIN)
_GROUP_BYTES = _bytes_beside_texts(group_as_json(GroupConfig("g")), 1, INT64_MIN)
