"""What a record's queue entry says, as a function of the record and of what the delay levels mean.

An append and a recovery ask the same functions, so a queue that is made again from the log holds what it held before.
The compiled walk over the log (`_walk.pyx`) asks `entry_code` where a record is not a plain one.
"""

from bolide.model.delay_levels import DelayLevels
from bolide.model.message import TRANSACTION_MASK, SysFlag
from bolide.model.names import SCHEDULE_TOPIC
from bolide.record.codec import tags_code_of
from bolide.store.deliver_time import deliver_time_of

_UNQUEUED = (int(SysFlag.PREPARED), int(SysFlag.ROLLBACK))


def has_entry(sys_flag: int) -> bool:
    """Whether a record is one of its queue's.  The halves of a transaction are not; each says number 0."""
    return sys_flag & TRANSACTION_MASK not in _UNQUEUED


def entry_code(topic: str, properties: bytes, store_timestamp_ms: int, levels: DelayLevels) -> int:
    """The hash of the record's tags; of a delayed message, the time when it is due."""
    if topic == SCHEDULE_TOPIC:
        due_ms = deliver_time_of(properties, store_timestamp_ms, levels)
        if due_ms is not None:
            return due_ms
    return tags_code_of(properties)
