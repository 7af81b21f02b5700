"""Shares that need to know nothing but the lists: `averagely`, `circle`, and what somebody has written down.

Queues, of one topic, and members come in order and without repeats; there is at least one queue, and I am one of the
members (`strategy` sees to that).
"""

from collections.abc import Iterable, Sequence

from bolide.model.errors import ConfigError
from bolide.model.names import RETRY_PREFIX
from bolide.model.offsets import MessageQueue


def averagely(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Sequence[MessageQueue]:
    """A run of neighbours each; the first members take one more when it does not divide (RocketMQ: AVG)."""
    rank = members.index(me)
    share, extra = divmod(len(queues), len(members))
    start = rank * share + min(rank, extra)
    return queues[start : start + share + (rank < extra)]


def circle(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Sequence[MessageQueue]:
    """One each, round after round (RocketMQ: AVG_BY_CIRCLE)."""
    return queues[members.index(me) :: len(members)]


class ConfigStrategy:
    """This member has the queues that it was given, whoever else is there (RocketMQ: CONFIG).

    Nobody sees to it that the lists of all members together are complete and do not overlap: whoever writes them does.
    Queues that do not exist are left out, until they do.

    The group's retry topic, by which failed messages come again, is shared averagely unless the list has queues of it:
    else nobody would ever read it.  Members written in Java leave it unread.

    Example::

        mine = ConfigStrategy([MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)])
        consumer = PushConsumer("127.0.0.1:9876", group="billing", listener=handle, strategy=mine)

    Args:
        queues: the queues of this member, of all topics that it subscribes to.
    """

    def __init__(self, queues: Iterable[MessageQueue]) -> None:
        self._queues = _listed(queues)
        self._topics = frozenset(queue.topic for queue in self._queues)

    def __repr__(self) -> str:
        return f"ConfigStrategy({len(self._queues)} queues)"

    def __call__(
        self, queues: Sequence[MessageQueue], members: Sequence[str], me: str
    ) -> Sequence[MessageQueue]:
        topic = queues[0].topic  # they are of one topic, and there are some
        if topic.startswith(RETRY_PREFIX) and topic not in self._topics:
            return averagely(queues, members, me)
        existing = set(queues)
        return [queue for queue in self._queues if queue in existing]


def _listed(queues: object) -> list[MessageQueue]:
    """Each once, in the order in which they were given."""
    listed: dict[MessageQueue, None] = {}
    for queue in queues if isinstance(queues, Iterable) else [queues]:
        if not isinstance(queue, MessageQueue):
            raise ConfigError(
                f"queues is a list of MessageQueue(topic, broker_name, queue_id), not of {queue!r:.64}"
            )
        listed[queue] = None
    return list(listed)
