"""Topics, groups and subscriptions as values.

A `TopicConfig` or `GroupConfig` that exists can be written to its file, read from it again and registered: whatever
could not is refused when one is made, be it from the wire, from a file or by hand.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from bolide.model import java_json
from bolide.model.errors import InvalidRequest, SubscriptionMalformed
from bolide.model.filter import EVERYTHING, Filter
from bolide.model.java_hash import java_hash
from bolide.model.limits import (
    CONFIG_BYTES_MAX,
    CONFIG_DEPTH_MAX,
    EXPRESSION_LENGTH_MAX,
    TOLD_QUEUES_MAX,
)
from bolide.model.numbers import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

TAG = "TAG"
"""The kind of expression that every consumer knows (RocketMQ: ExpressionType)."""

RESOURCE_NAME_LENGTH_MAX = 255
"""Of a topic or a group, whoever made it; what may be made here is narrower (`model.names`)."""

FILTER_TYPE_LENGTH_MAX = 64

_VALUE_BYTES, _NUMBER_BYTES = 256, 36  # of a value with its fields, of a number in a set of them

UNIT_SUBSCRIPTION = 2
"""Bit of a retry topic's sysFlag: its group has members in unit mode."""


class Permission(IntFlag):
    """Who may do what with a topic's queues (RocketMQ: PermName)."""

    NONE = 0
    INHERIT = 1
    WRITE = 2
    READ = 4
    READ_WRITE = 6


# Plain numbers for tests on the way of every pull: an IntFlag costs microseconds.
_READ = int(Permission.READ)
_WRITE = int(Permission.WRITE)


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What a broker knows of one topic."""

    name: str
    read_queues: int = 16
    write_queues: int = 16
    perm: int = Permission.READ_WRITE
    filter_type: str = "SINGLE_TAG"
    sys_flag: int = 0
    order: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What other versions wrote beside it: kept and handed on, never read."""

    def __post_init__(self) -> None:
        _check_name("topic", self.name)
        for what, queues in (("readQueueNums", self.read_queues), ("writeQueueNums", self.write_queues)):
            _check_range(what, queues, 0, TOLD_QUEUES_MAX)
        _check_range("perm", self.perm, INT32_MIN, INT32_MAX)
        _check_range("topicSysFlag", self.sys_flag, INT32_MIN, INT32_MAX)
        # A registration has the filter type as a word among words.
        if not 0 < len(self.filter_type) <= FILTER_TYPE_LENGTH_MAX or not self.filter_type.isidentifier():
            raise InvalidRequest(f"topicFilterType cannot be {self.filter_type[:64]!r}")
        _check_rest("topic", self.name, self.attributes, self.extras)

    @property
    def queues(self) -> int:
        """How many queues exist physically."""
        return max(self.read_queues, self.write_queues)

    @property
    def readable(self) -> bool:
        return bool(self.perm & _READ)

    @property
    def writable(self) -> bool:
        return bool(self.perm & _WRITE)

    @property
    def inherited(self) -> bool:
        """Whether topics may be created on demand from this one."""
        return bool(self.perm & Permission.INHERIT)


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """What a broker knows of one consumer group (RocketMQ: SubscriptionGroupConfig)."""

    name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queues: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    attributes: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)
    """What other versions wrote beside it: kept and handed on, never read."""

    def __post_init__(self) -> None:
        _check_name("group", self.name)
        for what, number in (
            ("retryQueueNums", self.retry_queues),
            ("retryMaxTimes", self.retry_max_times),
            ("groupSysFlag", self.group_sys_flag),
            ("consumeTimeoutMinute", self.consume_timeout_minute),
        ):
            _check_range(what, number, INT32_MIN, INT32_MAX)
        _check_range("brokerId", self.broker_id, INT64_MIN, INT64_MAX)
        slow_id = self.which_broker_when_consume_slowly
        _check_range("whichBrokerWhenConsumeSlowly", slow_id, INT64_MIN, INT64_MAX)
        _check_rest("group", self.name, self.attributes, self.extras)


@dataclass(frozen=True, slots=True)
class Subscription:
    """Which messages of one topic a group wants (RocketMQ: SubscriptionData)."""

    topic: str
    expression: str = "*"
    tags: frozenset[str] = frozenset()
    codes: frozenset[int] = frozenset()
    version: int = 0
    expression_type: str = TAG

    @property
    def takes_all(self) -> bool:
        return self.expression == "*" or not self.codes

    @property
    def filter(self) -> Filter:
        """What its tags want; other kinds of expression are the business of `rules.filters`."""
        return EVERYTHING if self.takes_all else Filter(self.codes)

    @property
    def kept_bytes(self) -> int:
        """About what it takes in memory."""
        texts = (self.topic, self.expression, self.expression_type, *self.tags)
        sets = sys.getsizeof(self.tags) + sys.getsizeof(self.codes)
        return _VALUE_BYTES + sum(map(sys.getsizeof, texts)) + sets + _NUMBER_BYTES * len(self.codes)

    @classmethod
    def parse(
        cls, topic: str, expression: str | None, version: int = 0, expression_type: str = TAG
    ) -> "Subscription":
        """A tag expression: `*` or nothing for all, else `A || B`.  One of another kind is kept as it is."""
        if expression is not None and len(expression) > EXPRESSION_LENGTH_MAX:
            raise SubscriptionMalformed(
                f"the expression has {len(expression)} characters; {EXPRESSION_LENGTH_MAX} are allowed"
            )
        if expression_type != TAG:
            return cls(topic, expression or "", version=version, expression_type=expression_type)
        tags = [tag.strip() for tag in (expression or "*").split("||")]
        tags = [tag for tag in tags if tag]
        if not tags or tags == ["*"]:
            return cls(topic, "*", version=version)
        return cls(
            topic,
            " || ".join(tags),
            tags=frozenset(tags),
            codes=frozenset(java_hash(tag) for tag in tags),
            version=version,
        )


def _check_name(what: str, name: str) -> None:
    if not 0 < len(name) <= RESOURCE_NAME_LENGTH_MAX or name.isspace():
        raise InvalidRequest(f"{name[:64]!r} cannot be the name of a {what}")


def _check_range(what: str, number: int, low: int, high: int) -> None:
    if not low <= number <= high:
        raise InvalidRequest(f"{what} is {number}; {low} to {high} are possible")


def _check_rest(what: str, name: str, attributes: Mapping[str, str], extras: Mapping[str, Any]) -> None:
    """What is kept for others has a size, and a form that can be written."""
    if not attributes and not extras:
        return
    try:
        rest = java_json.dumps(extras)
        size = len(java_json.dumps(attributes)) + len(rest)
    except (RecursionError, TypeError, ValueError) as error:
        raise InvalidRequest(f"the {what} {name[:255]!r} holds what cannot be written: {error}") from None
    if size > CONFIG_BYTES_MAX:
        raise InvalidRequest(
            f"the {what} {name[:255]!r} has {size} bytes of attributes and unknown members;"
            f" {CONFIG_BYTES_MAX} are allowed"
        )
    if (depth := java_json.depth_of(rest, CONFIG_DEPTH_MAX)) > CONFIG_DEPTH_MAX:
        raise InvalidRequest(
            f"the {what} {name[:255]!r} is nested {depth} deep; {CONFIG_DEPTH_MAX} levels are allowed"
        )
