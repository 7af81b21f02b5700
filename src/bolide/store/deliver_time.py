"""When a delayed message is to be delivered: what its queue entry holds in the place of the hash of its tags.

Messages with a delay level wait in queues of their own (`SCHEDULE_TOPIC_XXXX`).  Their time is counted from when they
were stored.
"""

import re

from bolide.model.message import NAME_END, PAIR_END, Property
from bolide.model.numbers import INT64_MAX, parse_whole

DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
"""RocketMQ: messageDelayLevel."""

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LEVEL = re.compile(r"(\d+)([smhd])")
_DELAYS_MS = [int(count) * _UNIT_MS[unit] for count, unit in _LEVEL.findall(DELAY_LEVELS)]


def deliver_time_of(properties: bytes, store_timestamp_ms: int) -> int | None:
    """The time for a record of these properties; None when it has no delay level."""
    level = 0
    for pair in properties.decode("utf-8", "replace").split(PAIR_END):
        name, _, value = pair.partition(NAME_END)
        if name == Property.DELAY:
            level = parse_whole(value) or 0
    if level <= 0:
        return None
    return min(store_timestamp_ms + _DELAYS_MS[min(level, len(_DELAYS_MS)) - 1], INT64_MAX)
