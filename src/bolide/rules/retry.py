"""Messages that their group could not consume: when each comes again, and when it is dead.

Pure.  A message comes back in two ways: its consumer names it (code 36), or sends it once more by itself, to the
group's retry topic, where the first way has failed or its queue is consumed in order.
"""

from bolide.model.limits import DELAY_LEVELS_MAX
from bolide.model.numbers import INT32_MAX
from bolide.model.topic import GroupConfig

FIRST_LEVEL = 3
"""The delay level of a first retry, ten seconds unless it is set otherwise; every further one takes the next level."""

VERSION_WITH_LIMIT = 121
"""MQVersion.V3_4_9: what older clients send as their own limit is not one."""


def times_max(group: GroupConfig, asked: int | None, client_version: int) -> int:
    """How often a message is brought again: as often as the consumer says, else as its group's settings say."""
    return group.retry_max_times if asked is None or client_version < VERSION_WITH_LIMIT else asked


def next_level(asked: int, times: int, times_allowed: int) -> int | None:
    """The delay level of a message that is sent back after so many retries; None when it is dead.

    A level below 0 asks for that; 0 leaves the choice to us.  A count below 0, which brokers store as it was sent, is
    none: added to the first level it would be no delay at all.
    """
    times = max(times, 0)
    if asked < 0 or times >= times_allowed:
        return None
    return asked or min(FIRST_LEVEL + times, DELAY_LEVELS_MAX)


def one_more(times: int) -> int:
    """The count of a message that is brought again once more, as far as a record holds it."""
    return min(max(times, 0) + 1, INT32_MAX)


def is_retry(times: int, asked: int | None) -> bool:
    """Whether a consumer has sent a message to its group's retry topic, and not somebody a new one, as a replay does.

    Clients count the retries, or say how many they allow: an ordered one of 4.x that allows none counts none.
    """
    return times > 0 or asked is not None


def is_dead_on_arrival(times: int, times_allowed: int, *, is_ordered: bool) -> bool:
    """Whether a message that comes by itself to its group's retry topic is dead; `times` counts this retry too.

    An ordered group gives a message up after the retries that it makes by itself, so one that it sends is dead at
    once.  It counts as ordered while any of its members holds a lock (RocketMQ: isLockAllExpired).
    """
    return is_ordered or times > times_allowed
