"""Who is connected to a broker: the answers to 203 (consumers of a group) and 204 (producers of a group)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bolide.model import json_pieces
from bolide.model.topic import Subscription
from bolide.wire.bodies.group import (
    ConsumerData,
    subscription_as_json,
    subscription_from_json,
)
from bolide.wire.bodies.members import parse_answer, rows, small_number, table, text, texts


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """One connected client (RocketMQ: Connection)."""

    client_id: str
    address: str
    language: str
    version: int

    def as_json(self) -> dict[str, Any]:
        return {
            "clientAddr": self.address,
            "clientId": self.client_id,
            "language": self.language,
            "version": self.version,
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ClientConnection":
        return cls(
            client_id=text(members, "clientId"),
            address=text(members, "clientAddr"),
            language=text(members, "language", "OTHER"),
            version=small_number(members, "version"),
        )


@dataclass(frozen=True, slots=True)
class SubscriptionDifference:
    """Members of a group that subscribe to the same, where others of it subscribe to something else."""

    client_ids: tuple[str, ...]
    subscriptions: tuple[tuple[str, str], ...] | None
    """Topics with the expression for each; None where the broker had no room to keep them."""

    def as_json(self) -> dict[str, Any]:
        known = {} if self.subscriptions is None else {"subscriptions": dict(self.subscriptions)}
        return {"clientIds": list(self.client_ids), **known}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "SubscriptionDifference":
        known = None
        if members.get("subscriptions") is not None:
            listed = table(members, "subscriptions")
            known = tuple((topic, text(listed, topic)) for topic in listed)
        return cls(tuple(texts(members, "clientIds")), known)


@dataclass(frozen=True, slots=True)
class GroupConnections:
    """What the answer to 203 says (RocketMQ: ConsumerConnection); `group` says how the group consumes."""

    connections: tuple[ClientConnection, ...]
    group: ConsumerData
    differences: tuple[SubscriptionDifference, ...] = ()
    """Empty where all members subscribe to the same, and from brokers that do not tell."""

    @classmethod
    def decode(cls, group: str, body: bytes) -> "GroupConnections":
        members = parse_answer(body, "the connections")
        subscriptions = table(members, "subscriptionTable")
        read: list[Subscription] = [
            subscription_from_json(table(subscriptions, topic)) for topic in subscriptions
        ]
        described = ConsumerData.from_json({**members, "groupName": group, "subscriptionDataSet": None})
        return cls(
            connections=_connections(members),
            group=ConsumerData(
                group,
                described.consume_type,
                described.message_model,
                described.consume_from,
                tuple(read),
            ),
            differences=tuple(
                SubscriptionDifference.from_json(row) for row in rows(members, "subscriptionDifferences")
            ),
        )


def consumer_connection_pieces(
    connections: Iterable[ClientConnection],
    group: ConsumerData,
    differences: Sequence[SubscriptionDifference] = (),
) -> Iterator[bytes]:
    """The answer to 203 as it is written; `group` says how the group consumes.

    What members subscribe to stands there only if they differ; readers of the original pass over it.
    """
    differing = json_pieces.Items(one.as_json() for one in differences)
    subscriptions = ((one.topic, subscription_as_json(one)) for one in group.subscriptions)
    return json_pieces.compact(
        {
            "connectionSet": json_pieces.Items(one.as_json() for one in connections),
            "consumeFromWhere": group.consume_from.value,
            "consumeType": group.consume_type.value,
            "messageModel": group.message_model.value,
            **({"subscriptionDifferences": differing} if differences else {}),
            "subscriptionTable": json_pieces.Entries(subscriptions),
        }
    )


def producer_connection_pieces(connections: Iterable[ClientConnection]) -> Iterator[bytes]:
    """The answer to 204 (RocketMQ: ProducerConnection)."""
    return json_pieces.compact({"connectionSet": json_pieces.Items(one.as_json() for one in connections)})


def decode_producer_connections(body: bytes) -> tuple[ClientConnection, ...]:
    return _connections(parse_answer(body, "the connections"))


def _connections(members: Mapping[str, Any]) -> tuple[ClientConnection, ...]:
    return tuple(ClientConnection.from_json(row) for row in rows(members, "connectionSet"))
