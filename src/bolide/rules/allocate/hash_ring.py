"""Shares by a ring of hashes: a member that comes or goes moves its own queues and hardly any others."""

import hashlib
from bisect import bisect_left
from collections.abc import Sequence

from bolide.model.errors import ConfigError
from bolide.model.offsets import MessageQueue

VIRTUAL_NODES = 10
VIRTUAL_NODES_MAX = 1000


class ConsistentHashStrategy:
    """Every member stands on a ring in several places, and a queue belongs to the next one (RocketMQ: CONSISTENT_HASH).

    Shares are less even than with the other strategies.  All members need the same number of places.

    Example::

        consumer = PushConsumer(
            "127.0.0.1:9876", group="billing", listener=handle, strategy=ConsistentHashStrategy(virtual_nodes=100)
        )

    Args:
        virtual_nodes: how many places each member has; the strategy by its name, "consistent_hash", has 10, as
            clients written in Java have if they are not told otherwise.  More of them make shares more even.
    """

    def __init__(self, virtual_nodes: int = VIRTUAL_NODES) -> None:
        if type(virtual_nodes) is not int or not 1 <= virtual_nodes <= VIRTUAL_NODES_MAX:
            raise ConfigError(
                f"virtual_nodes is a whole number from 1 to {VIRTUAL_NODES_MAX}, not {virtual_nodes!r:.64}"
            )
        self._virtual_nodes = virtual_nodes

    def __repr__(self) -> str:
        return f"ConsistentHashStrategy({self._virtual_nodes})"

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], me: str
    ) -> Sequence[MessageQueue]:
        # Where two places have one hash, the later member has it, as in the original (ConsistentHashRouter.addNode).
        ring = {
            _hash(f"{member}-{number}"): member for member in members for number in range(self._virtual_nodes)
        }
        places = sorted(ring)
        return [queue for queue in queues if ring[_next(places, _hash(_text(queue)))] == me]


def _next(places: Sequence[int], place: int) -> int:
    """The first at this place or behind it; behind the last comes the first."""
    return places[bisect_left(places, place) % len(places)]


def _hash(text: str) -> int:
    """The first four bytes of MD5.  What has no bytes in UTF-8, half a surrogate pair, is a question mark in Java."""
    digest = hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


def _text(queue: MessageQueue) -> str:
    """As Java prints it (MessageQueue.toString)."""
    return f"MessageQueue [topic={queue.topic}, brokerName={queue.broker_name}, queueId={queue.queue_id}]"
