"""Offsets of groups and queues: codes 14, 15, 29, 30, 31, 32."""

import dataclasses

from bolide.wire.schema import Header, Int, Long


@dataclasses.dataclass(frozen=True)
class QueryGroupOffset(Header):
    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None


@dataclasses.dataclass(frozen=True)
class UpdateGroupOffset(Header):
    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long


@dataclasses.dataclass(frozen=True)
class SearchOffset(Header):
    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: str | None = None


@dataclasses.dataclass(frozen=True)
class QueueRequest(Header):
    """Max offset, min offset and earliest store time ask with these two fields."""

    topic: str
    queue_id: Int


@dataclasses.dataclass(frozen=True)
class OffsetAnswer(Header):
    offset: Long


@dataclasses.dataclass(frozen=True)
class TimestampAnswer(Header):
    timestamp: Long
