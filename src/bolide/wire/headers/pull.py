"""Pulling: codes 11 and 361."""

import dataclasses

from bolide.wire.schema import Header, Int, Long, wire


class PullFlag:
    """Bits of a pull's sysFlag (RocketMQ: PullSysFlag).  Plain numbers: an IntFlag costs microseconds per test."""

    COMMIT_OFFSET = 1
    SUSPEND = 2
    SUBSCRIPTION = 4
    CLASS_FILTER = 8
    LITE_PULL = 16


@dataclasses.dataclass(frozen=True)
class PullRequest(Header):
    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int = wire(required=True, default=0)
    commit_offset: Long = wire(required=True, default=0)
    suspend_timeout_millis: Long = wire(required=True, default=0)
    sub_version: Long = wire(required=True, default=0)
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    bulk: bool = False


@dataclasses.dataclass  # not frozen: made for every pull, and the constructor of a frozen class is slow
class PullAnswer(Header):
    """Java clients fail when one of the first four is missing, whatever the response code."""

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None
