"""Clients and groups: heartbeats (34), subscription checks (46) and member lists (38), as values and as JSON bodies.

Heartbeats come from clients in many languages, so they are read leniently: C++ sends ordinals for enum names, text for
numbers and leaves empty sets out; Go counts versions in nanoseconds; old clients name no expression type.  Everything
is counted before it is kept, and a long heartbeat is read in steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from bolide.model import java_json
from bolide.model.errors import InvalidRequest
from bolide.model.java_hash import java_hash
from bolide.model.limits import (
    CLIENT_BODY_BYTES_MAX,
    CONNECTION_GROUPS_MAX,
    EXPRESSION_LENGTH_MAX,
    HEARTBEAT_SUBSCRIPTIONS_MAX,
    HEARTBEAT_TAGS_LENGTH_MAX,
    HEARTBEAT_TAGS_MAX,
    SUBSCRIPTION_TAGS_MAX,
)
from bolide.model.names import check_id
from bolide.model.steps import Steps, at_once
from bolide.model.topic import TAG, Subscription
from bolide.wire.bodies.members import (
    as_number,
    flag,
    number,
    parse_answer,
    parse_object,
    rows,
    table,
    text,
    texts,
)

STEP_CHARACTERS, SUBSCRIPTION_CHARACTERS, CODE_CHARACTERS = 16_384, 96, 8
"""Of one step, and what a subscription and a code count for beside their texts: it takes about a millisecond."""

PLAIN_BYTES_MAX = 32 * 1024
"""Bodies in Java's dialect, which no client sends here, are read many times more slowly."""


class ConsumeType(StrEnum):
    """How a group gets its messages; the order gives the ordinals that C++ sends."""

    ACTIVELY = "CONSUME_ACTIVELY"
    PASSIVELY = "CONSUME_PASSIVELY"
    POP = "CONSUME_POP"


class MessageModel(StrEnum):
    """Whether each message reaches every member or one of them; again in ordinal order."""

    BROADCASTING = "BROADCASTING"
    CLUSTERING = "CLUSTERING"


class ConsumeFrom(StrEnum):
    """Where a group without an offset begins; again in ordinal order."""

    LAST_OFFSET = "CONSUME_FROM_LAST_OFFSET"
    LAST_OFFSET_AND_MIN_AT_FIRST = "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST"
    MIN_OFFSET = "CONSUME_FROM_MIN_OFFSET"
    MAX_OFFSET = "CONSUME_FROM_MAX_OFFSET"
    FIRST_OFFSET = "CONSUME_FROM_FIRST_OFFSET"
    TIMESTAMP = "CONSUME_FROM_TIMESTAMP"


@dataclass(frozen=True, slots=True)
class ConsumerData:
    """One consumer group of a client."""

    group: str
    consume_type: ConsumeType = ConsumeType.PASSIVELY
    message_model: MessageModel = MessageModel.CLUSTERING
    consume_from: ConsumeFrom = ConsumeFrom.LAST_OFFSET
    subscriptions: tuple[Subscription, ...] = ()
    unit_mode: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "consumeFromWhere": self.consume_from.value,
            "consumeType": self.consume_type.value,
            "groupName": self.group,
            "messageModel": self.message_model.value,
            "subscriptionDataSet": [subscription_as_json(one) for one in self.subscriptions],
            "unitMode": self.unit_mode,
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ConsumerData":
        rows_ = rows(members, "subscriptionDataSet")
        return cls.with_subscriptions(members, tuple(subscription_from_json(row) for row in rows_))

    @classmethod
    def with_subscriptions(
        cls, members: Mapping[str, Any], subscriptions: tuple[Subscription, ...]
    ) -> "ConsumerData":
        return cls(
            group=_name(members, "groupName"),
            consume_type=_choice(members, "consumeType", ConsumeType.PASSIVELY),
            message_model=_choice(members, "messageModel", MessageModel.CLUSTERING),
            consume_from=_choice(members, "consumeFromWhere", ConsumeFrom.LAST_OFFSET),
            subscriptions=subscriptions,
            unit_mode=flag(members, "unitMode"),
        )


@dataclass(frozen=True, slots=True)
class HeartbeatData:
    """All groups of one client.  `without_sub`: keep the subscriptions that the broker knows already."""

    client_id: str
    producers: tuple[str, ...] = ()
    consumers: tuple[ConsumerData, ...] = ()
    without_sub: bool = False

    def encode(self) -> bytes:
        return java_json.dumps(
            {
                "clientID": self.client_id,
                "consumerDataSet": [consumer.as_json() for consumer in self.consumers],
                "heartbeatFingerprint": 0,
                "producerDataSet": [{"groupName": group} for group in self.producers],
                "withoutSub": self.without_sub,
            }
        )

    @classmethod
    def decode(cls, body: bytes) -> "HeartbeatData":
        return at_once(cls.decoding(body))

    @classmethod
    def decoding(cls, body: bytes) -> Steps["HeartbeatData"]:
        members = _parse("the heartbeat", body)
        producers, consumers = rows(members, "producerDataSet"), rows(members, "consumerDataSet")
        _check_count("groups", len(producers) + len(consumers), CONNECTION_GROUPS_MAX)
        counted, read = _Counted(), []
        for consumer in consumers:
            subscriptions = []
            for row in rows(consumer, "subscriptionDataSet"):
                if counted.is_step(row):
                    yield
                subscriptions.append(subscription_from_json(row))
            read.append(ConsumerData.with_subscriptions(consumer, tuple(subscriptions)))
        return cls(
            client_id=_name(members, "clientID"),
            producers=tuple(_name(row, "groupName") for row in producers),
            consumers=tuple(read),
            without_sub=flag(members, "withoutSub"),
        )


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """The body of 46: would the broker take this subscription?"""

    client_id: str
    group: str
    subscription: Subscription | None

    def encode(self) -> bytes:
        members: dict[str, Any] = {"clientId": self.client_id, "group": self.group}
        if self.subscription is not None:
            members["subscriptionData"] = subscription_as_json(self.subscription)
        return java_json.dumps(members)

    @classmethod
    def decode(cls, body: bytes) -> "ClientCheck":
        members = _parse("the client check", body)
        subscription = table(members, "subscriptionData")
        _Counted().is_step(subscription)
        return cls(
            client_id=text(members, "clientId"),
            group=text(members, "group"),
            subscription=subscription_from_json(subscription) if subscription else None,
        )


def encode_member_ids(client_ids: list[str]) -> bytes:
    """The answer to 38 (RocketMQ: GetConsumerListByGroupResponseBody)."""
    return java_json.dumps({"consumerIdList": client_ids})


def decode_member_ids(body: bytes) -> list[str]:
    members = parse_answer(body, "the member list")
    if "consumerIdList" not in members:
        raise InvalidRequest("the member list has no consumerIdList")
    return texts(members, "consumerIdList")


def subscription_as_json(subscription: Subscription) -> dict[str, Any]:
    """RocketMQ: SubscriptionData."""
    return {
        "classFilterMode": False,
        "codeSet": sorted(subscription.codes),
        "expressionType": subscription.expression_type,
        "subString": subscription.expression,
        "subVersion": subscription.version,
        "tagsSet": sorted(subscription.tags),
        "topic": subscription.topic,
    }


def subscription_from_json(members: Mapping[str, Any]) -> Subscription:
    """Codes that a client left out are worked out from its tags, and tags from its expression."""
    topic, expression = _name(members, "topic"), text(members, "subString", "*")
    expression_type = check_id("expressionType", text(members, "expressionType") or TAG)
    version = number(members, "subVersion")
    tags, codes = texts(members, "tagsSet"), _codes(members)
    _check_count("characters of an expression", len(expression), EXPRESSION_LENGTH_MAX)
    if expression_type == TAG and not tags and not codes:
        return Subscription.parse(topic, expression, version)
    return Subscription(
        topic,
        expression,
        tags=frozenset(tags),
        codes=frozenset(as_number(code, "codeSet") for code in codes) or frozenset(map(java_hash, tags)),
        version=version,
        expression_type=expression_type,
    )


def _parse(what: str, body: bytes) -> dict[str, Any]:
    if len(body) > CLIENT_BODY_BYTES_MAX:
        raise InvalidRequest(f"{what} has {len(body)} bytes; {CLIENT_BODY_BYTES_MAX} are allowed")
    return parse_object(body, what, dialect_bytes_max=PLAIN_BYTES_MAX)


E = TypeVar("E", bound=StrEnum)


def _choice(members: Mapping[str, Any], name: str, default: E) -> E:
    """An enum by name or ordinal; a value that only newer clients know counts as the default."""
    value, choices = members.get(name), list(type(default))
    if type(value) is int:
        return choices[value] if 0 <= value < len(choices) else default
    return next((choice for choice in choices if choice.value == value), default)


def _name(members: Mapping[str, Any], name: str) -> str:
    return check_id(name, text(members, name))


def _codes(members: Mapping[str, Any]) -> list[Any]:
    codes = members.get("codeSet") or []
    if not isinstance(codes, list):
        raise InvalidRequest("codeSet is not a list")
    return codes


class _Counted:
    """What has come of one request; each subscription is counted before anything is made of it."""

    def __init__(self) -> None:
        self._subscriptions = self._tags = self._length = 0
        self._step = 0

    def is_step(self, row: dict[str, Any]) -> bool:
        """Whether this subscription had better begin another step."""
        tags, codes = texts(row, "tagsSet"), _codes(row)
        count, length = len(tags) + len(codes), len(text(row, "subString"))
        _check_count("tags of a subscription", count, SUBSCRIPTION_TAGS_MAX)
        _check_count("characters of an expression", length, EXPRESSION_LENGTH_MAX)
        tags_length = sum(map(len, tags))
        _check_count("characters of the tags of a subscription", tags_length, EXPRESSION_LENGTH_MAX)
        self._subscriptions += 1
        self._tags += count
        self._length += length + tags_length
        _check_count("subscriptions", self._subscriptions, HEARTBEAT_SUBSCRIPTIONS_MAX)
        _check_count("tags", self._tags, HEARTBEAT_TAGS_MAX)
        _check_count("characters of tags", self._length, HEARTBEAT_TAGS_LENGTH_MAX)
        size = SUBSCRIPTION_CHARACTERS + length + tags_length + CODE_CHARACTERS * count
        is_full = self._step > 0 and self._step + size > STEP_CHARACTERS
        self._step = size if is_full else self._step + size
        return is_full


def _check_count(what: str, count: int, count_max: int) -> None:
    if count > count_max:
        raise InvalidRequest(f"{count} {what} in one request; {count_max} are allowed")
