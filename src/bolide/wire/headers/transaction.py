"""Transactions: codes 37, 39 and 323."""

import dataclasses
from enum import IntEnum

from bolide.wire.schema import Header, Int, Long, wire


class Verdict(IntEnum):
    """How a transaction ends, in the bits of a sysFlag."""

    UNKNOWN = 0
    COMMIT = 8
    ROLLBACK = 12


@dataclasses.dataclass(frozen=True)
class EndTransaction(Header):
    """`tran_state_table_offset` is the half message's offset in its queue."""

    producer_group: str
    tran_state_table_offset: Long
    commit_log_offset: Long
    commit_or_rollback: Int
    from_transaction_check: bool = False
    msg_id: str | None = None
    transaction_id: str | None = None
    topic: str | None = None


@dataclasses.dataclass(frozen=True)
class CheckTransaction(Header):
    """One-way, to a member of the producer group; the body is the message, as if it was in its own topic.

    Brokers of 4.x say less.
    """

    tran_state_table_offset: Long
    commit_log_offset: Long
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
    topic: str | None = None
    broker_name: str | None = wire("bname", default=None)


@dataclasses.dataclass(frozen=True)
class ResumeCheck(Header):
    """`msg_id` is an offset id."""

    msg_id: str
    topic: str | None = None
