"""When a delayed message is to be delivered: what its queue entry holds in the place of the hash of its tags.

Messages with a delay level wait in queues of their own (`SCHEDULE_TOPIC_XXXX`).  Their time is counted from when they
were stored.
"""

import re

from bolide.model.delay_levels import DelayLevels
from bolide.model.message import Property
from bolide.model.numbers import INT64_MAX, parse_whole

_LEVELS = re.compile(rb"(?:^|(?<=\x02))" + Property.DELAY.encode() + rb"\x01([^\x02]+)(?=\x02|$)")
"""A pair without a value is none, for all who read properties."""


def deliver_time_of(properties: bytes, store_timestamp_ms: int, levels: DelayLevels) -> int | None:
    """The time for a record of these properties; None when it has no delay level."""
    found = _LEVELS.findall(properties)  # the last counts
    level = (parse_whole(found[-1].decode("utf-8", "replace")) or 0) if found else 0
    if level <= 0:
        return None
    return min(store_timestamp_ms + levels.delay_ms(level), INT64_MAX)
